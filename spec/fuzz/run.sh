#!/bin/sh
# Runs the targets of `make fuzz`, one after another: run.sh SECONDS [TARGET...]. Each has SECONDS.
#
# Inputs that fail are kept in build/fuzz/found/TARGET; then the status is 1.
set -u
seconds=$1
shift
[ $# -gt 0 ] || set -- safetensors vocabulary definition image encode checkpoint sentencepiece artifact jsonl arguments
export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS-}"
status=0

# Coverage-guided: inputs that reach new code are kept in build/fuzz/corpus.
guided() {
  [ -e "build/fuzz/bin/$1" ] || ln -s fuzz "build/fuzz/bin/$1"
  mkdir -p "spec/fuzz/corpus/$1"
  build/fuzz/bin/"$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$1/" build/fuzz/corpus/"$1" build/fuzz/seeds/"$1" spec/fuzz/corpus/"$1"
}

driven() {
  PERIGEE_LIB="$PWD/build/hard/libperigee_spec.so" PERIGEE_HARD=1 build/hard/bin/luajit spec/fuzz/drive.lua "$1" "$seconds"
}

PERIGEE_LIB="$PWD/build/hard/libperigee_spec.so" build/hard/bin/luajit spec/fuzz/seeds.lua || exit 1
for target; do
  mkdir -p "build/fuzz/found/$target" "build/fuzz/corpus/$target" "build/fuzz/seeds/$target"
  printf '\n==== %s\n' "$target"
  if [ -f "spec/fuzz/drivers/$target.lua" ]; then
    driven "$target"
  else
    guided "$target"
  fi || {
    status=1
    echo "==== $target failed; its inputs are in build/fuzz/found/$target"
  }
done
exit $status
