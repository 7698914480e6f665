#!/bin/sh
# Runs spec files in several processes at a time, one process for each file, and adds up their counts.
#
#   sh spec/support/run.sh JOBS COMMAND SPEC...
#
# JOBS is the number of processes at a time. COMMAND is one word: the command line that runs busted, which gets the name of a file
# behind it. A SPEC is a file or a folder. Files in spec/slow run only if a SPEC names them or that folder.
#
# The last line is that of a run of one process: 12 passed, 0 failed, 3 skipped: 3 need AMX. The script prints one line for each
# file, and all that busted printed if a test failed. A file counts as one failed test if its process ends with an error
# without naming a failed test, or if it takes longer than LIMIT seconds (default 1200).
#
# With JOBS=1, or if there is only one file, one process runs all files and busted prints as usual.
set -eu
jobs=$1 command=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export command work LIMIT="${LIMIT:-1200}"

# The folders with the longest files come first, so that no process works alone at the end.
for spec; do
  case $spec in
  spec/slow*) find "$spec" -name '*_spec.lua' ;;
  *) find "$spec" -name '*_spec.lua' ! -path 'spec/slow/*' ;;
  esac
done | LC_ALL=C sort -u > "$work/files"
grep -E '^spec/(kernels|golden|recipes)/' "$work/files" > "$work/ordered" || true
grep -vE '^spec/(kernels|golden|recipes)/' "$work/files" >> "$work/ordered" || true

if [ "$jobs" = 1 ] || [ "$(wc -l < "$work/ordered")" = 1 ]; then
  # shellcheck disable=SC2046,SC2086 # several words
  $command $(cat "$work/ordered")
  exit
fi

# shellcheck disable=SC2016 # the shell inside expands it
xargs -P "$jobs" -I '{}' sh -c '
  file=$1 log=$work/$(printf %s "$1" | tr / -) began=$(date +%s) status=0
  timeout --kill-after=10 "$LIMIT" $command "$file" > "$log" 2>&1 < /dev/null || status=$?
  line=$(grep -E "^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped" "$log" | tail -n 1)
  case $status,$line in
  0,?*) ;;
  *,*" 0 failed,"* | *,) line="0 passed, 1 failed, 0 skipped" && echo "$file: the process ended with status $status" >> "$log" ;;
  esac
  exec 9> "$work/lock"
  flock 9
  case $line in *" 0 failed,"*) ;; *) cat "$log" ;; esac
  printf "%4d s  %s: %s\n" $(($(date +%s) - began)) "$file" "$line"
  printf "%s\n" "$line" >> "$work/lines"' sh '{}' < "$work/ordered"
luajit spec/support/counts.lua < "$work/lines"
