#!/usr/bin/env bash
# One of N parts of a file of lines, answered by recipes/pipe.lua: what a worker on a cluster does.
#
#   shard.sh K N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]       part K, from 1 to N, to OUTPUT.K
#
# It may be stopped at any moment, killed too, and started again anywhere that sees the same files: it goes on where it stopped,
# does nothing if OUTPUT.K is there, or OUTPUT, and never shares it with another. INPUT must not change meanwhile. The number of a
# line that has no answer is its number in the part.
set -euo pipefail
if [ $# -lt 4 ]; then
  echo "usage: shard.sh K N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]" >&2
  exit 2
fi
k=$1 n=$2 input=$3 output=$4
shift 4
recipes=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case " $*" in
*' --vectors npy'* | *' --vectors=npy'*)
  echo "shard.sh: parts are joined line by line, and a .npy has no lines; expected --vectors base64 or list" >&2
  exit 2
  ;;
esac

[ ! -e "$output" ] || exit 0

# The part is cut into a file of its own first: a pipe that breaks would look like an end. A file with that name is whole.
if [ ! -e "$output.$k" ] && [ ! -e "$output.$k.in" ]; then
  trap 'rm -f "$output.$k.in.$$"' EXIT
  split --number="l/$k/$n" "$input" > "$output.$k.in.$$"
  mv "$output.$k.in.$$" "$output.$k.in"
fi
if [ ! -e "$output.$k" ]; then
  luajit "$recipes/pipe.lua" --input "$output.$k.in" --output "$output.$k" --resume "$@"
fi
rm -f "$output.$k.in" "$output.$k.in."*
