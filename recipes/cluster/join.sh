#!/usr/bin/env bash
# Joins the N parts that shard.sh made, in order.
#
#   join.sh N INPUT OUTPUT [OPTION OF pipe.lua...]       OUTPUT.1 to OUTPUT.N become OUTPUT, which has a line for each of INPUT
#
# If OUTPUT exists, join.sh does nothing. Otherwise it counts, and says on standard error how many lines have no answer. It
# fails (status 1, the parts stay) if a part is missing, if the number of answers differs from the number of lines, or if too
# many lines have no answer. Too many means all lines, or more than the share --max-errors, an option of the workers.
set -euo pipefail
usage() {
  echo "usage: join.sh N INPUT OUTPUT [OPTION OF pipe.lua...]" >&2
  exit 2
}
if [ $# -lt 3 ] || ! [ "$1" -ge 1 ] 2> /dev/null; then
  usage
fi
n=$1 input=$2 output=$3
shift 3
share=
while [ $# -gt 0 ]; do
  case $1 in
  --max-errors=*) share=${1#*=} ;;
  --max-errors) [ $# -gt 1 ] || usage && share=$2 ;;
  esac
  shift
done
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

# For a line without an answer pipe.lua writes a record that ends with the line's number and the error. No other record ends
# like that.
failed=$(LC_ALL=C grep -nE '(^\{|,)"line":[0-9]+,"error":"([^"\\]|\\.)*"\}$' "$output.joining" || true)
if [ -n "$failed" ]; then
  errors=$(wc -l <<< "$failed")
  echo "join.sh: $errors of $lines lines have no answer; the first: line ${failed%%$'\n'*}" >&2
  if ! awk -v e="$errors" -v n="$lines" -v s="$share" 'BEGIN { exit s == "" ? e == n : e > s * n }'; then
    echo "join.sh: that is more than --max-errors allows (${share:-not all lines}); $output is not made, the parts stay" >&2
    exit 1
  fi
fi
sync "$output.joining"
mv "$output.joining" "$output"
rm "${parts[@]}"
