#!/usr/bin/env bash
# Answers a file of lines in N parts with GNU parallel, on the cores of this machine or on many machines that share its folder.
#
#   parallel.sh N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]
#   PARALLEL="--sshloginfile nodes.txt --workdir ." parallel.sh 64 texts.jsonl answers.jsonl model.safetensors --keep id
#
# The number of workers is the number of cores, each with one thread, unless PARALLEL has --jobs and the options have --threads.
# A worker that dies is started again, at most three times, and goes on where it stopped. If this script is started again, its
# workers also go on where they stopped.
#
# Status: 0 if OUTPUT has an answer or an error for each line, of which standard error says how many; 1 to 101 if workers failed, by
# GNU parallel's count; 1 if too many lines have no answer (join.sh).
set -euo pipefail
if [ $# -lt 3 ] || ! [ "$1" -ge 1 ] 2> /dev/null; then
  echo "usage: parallel.sh N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]" >&2
  exit 2
fi
n=$1 input=$2 output=$3
shift 3
cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ ! -e "$output" ] || exit 0
case " $input $output $* " in
*'{'*'}'*)
  echo "parallel.sh: GNU parallel would replace what stands in braces in: $input $output $*" >&2
  exit 2
  ;;
esac
case " $*" in
*' --threads'*) ;;
*) set -- "$@" --threads 1 ;;
esac
parallel --quote --retries 4 bash "$cluster/shard.sh" '{}' "$n" "$input" "$output" "$@" ::: $(seq "$n")
bash "$cluster/join.sh" "$n" "$input" "$output" "$@"
