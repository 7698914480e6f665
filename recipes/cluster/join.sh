#!/usr/bin/env bash
# Joins the N parts that shard.sh made, in order.
#
#   join.sh N INPUT OUTPUT       OUTPUT.1 to OUTPUT.N become OUTPUT, which has a line for each of INPUT, or it fails
#
# It does nothing if OUTPUT is there.
set -euo pipefail
if [ $# -ne 3 ] || ! [ "$1" -ge 1 ] 2> /dev/null; then
  echo "usage: join.sh N INPUT OUTPUT" >&2
  exit 2
fi
n=$1 input=$2 output=$3
[ ! -e "$output" ] || exit 0
parts=()
for k in $(seq "$n"); do
  if [ ! -e "$output.$k" ]; then
    echo "join.sh: $output.$k is not there yet" >&2
    exit 1
  fi
  parts+=("$output.$k")
done
trap 'rm -f "$output.joining"' EXIT
cat "${parts[@]}" > "$output.joining"
lines=$(awk 'END { print NR }' "$input") # a last line without an end counts, too
answers=$(wc -l < "$output.joining")
if [ "$lines" != "$answers" ]; then
  echo "join.sh: $input has $lines lines, the parts have $answers answers" >&2
  exit 1
fi
sync "$output.joining"
mv "$output.joining" "$output"
rm "${parts[@]}"
