#!/bin/sh
# Measures everything that AMX changes, in about ten minutes, and writes it to one file that can be sent to the developers.
#
#   sh spec/bench/amx.sh FILE [CPU]       make bench-amx runs it with FILE=build/bench/amx.txt; CPU 0 is the default
#
# PERIGEE_LIB names build/libperigee_spec.so. The script writes to FILE: the CPU; peaks of registers; kernels of avx512vnni and
# amx; the predictions of the AMX model with the measured times; whole encoders on both instruction sets and in FP32; the
# kernels that selection chose; and other libraries if `make bench-peers` has installed them. FILE has no name of the machine or
# its user.
set -eu
file=$1 cpu=${2:-0}
mkdir -p "$(dirname "$file")"
export PERIGEE_CACHE
PERIGEE_CACHE=$(mktemp -d)
trap 'rm -rf "$PERIGEE_CACHE"' EXIT
pinned() { taskset -c "$cpu" "$@"; }
title() { printf '\n==== %s\n' "$1"; }

if ! reason=$(PERIGEE_ISA=amx luajit recipes/bench.lua --random minilm --tokens 16 --seconds 0.1 2>&1); then
  echo "bench-amx: AMX does not run here: $(printf %s "$reason" | tail -n 1)" >&2
  exit 1
fi

encoders() {
  for shape in 'minilm 1 32' 'minilm 32 128' 'distilbert 1 128' 'bert-large 1 128' 'bert-large 8 128'; do
    # shellcheck disable=SC2086
    set -- $shape
    for kind in f32 'static avx512vnni' 'static amx' 'dynamic amx'; do
      activations=${kind%% *} isa=${kind#* }
      [ "$isa" != "$kind" ] || isa=amx
      title "$1, $2 x $3 tokens, $activations, $isa"
      pinned luajit recipes/bench.lua --random "$1" --batch "$2" --tokens "$3" --activations "$activations" --isa "$isa" \
        --seconds 3 --profile
    done
  done
}

measure() {
  title "machine"
  date -u +%Y-%m-%d
  lscpu | grep -E '^(Model name|CPU family|Model|Stepping|CPU\(s\)|Thread|Core|Socket|L1d|L2|L3|Hypervisor)'
  uname -sr
  title "kernels of avx512vnni and amx; peaks of registers"
  for isa in avx512vnni amx; do
    pinned luajit spec/bench/kernels.lua --isa $isa
  done
  title "expected by counting, and measured"
  for tokens in 32 128 512; do
    pinned luajit spec/bench/amx_model.lua --tokens $tokens
  done
  title "encoders"
  encoders
  title "selection"
  cat "$PERIGEE_CACHE/select.json"
  if [ -e build/peers/installed ]; then
    title "other libraries, CPU milliseconds"
    pinned build/peers/bin/python spec/bench/peers.py minilm:1x32 minilm:32x128 distilbert:1x128 bert-large:1x128 --cpu --rounds 3
  fi
}

began=$(date +%s)
measure > "$file" 2>&1 || { tail -n 5 "$file" >&2; echo "bench-amx: stopped early; $file has what was measured" >&2; exit 1; }
echo "$file: $(wc -l < "$file") lines, $((($(date +%s) - began + 59) / 60)) minutes"
