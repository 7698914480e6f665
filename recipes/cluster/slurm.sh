#!/usr/bin/env bash
#SBATCH --job-name=perigee
#SBATCH --array=1-8
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --open-mode=append
# Answers a file of lines in N parts with Slurm: each part is a task of a job array.
#
#   cd PERIGEE
#   sbatch --array=1-64 --parsable recipes/cluster/slurm.sh 64 texts.jsonl answers.jsonl model.safetensors --keep id
#   sbatch --dependency=afterok:JOB --wrap 'bash recipes/cluster/join.sh 64 texts.jsonl answers.jsonl'
#
# Task K takes part K, with as many threads as it has CPUs. If a node fails, Slurm queues its task again, and the task goes on
# where it stopped. A task that ran out of time or failed goes on when it is submitted again, alone (--array=7,12) or with all
# others: a task whose part is complete ends at once. The files lie in a folder that all nodes see. PERIGEE_RECIPES names the
# folder of the recipes. Its default is recipes in the folder that the job was submitted from, because Slurm runs a copy of this
# script from another folder.
set -euo pipefail
if [ $# -lt 3 ] || [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
  echo "usage: sbatch --array=1-N slurm.sh N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]" >&2
  exit 2
fi
recipes=${PERIGEE_RECIPES:-${SLURM_SUBMIT_DIR:-.}/recipes}
export PERIGEE_THREADS=${SLURM_CPUS_PER_TASK:-1}
exec bash "$recipes/cluster/shard.sh" "$SLURM_ARRAY_TASK_ID" "$@"
