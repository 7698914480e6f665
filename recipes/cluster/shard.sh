#!/usr/bin/env bash
# The work of one worker on a cluster: recipes/pipe.lua answers one of N parts of a file of lines.
#
#   shard.sh K N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]       part K, from 1 to N, to OUTPUT.K
#
# A worker may be stopped or killed at any moment, and started again on any machine that sees the same files: it continues where
# it stopped. It does nothing if OUTPUT.K or OUTPUT exists. Two workers never write the same part. INPUT must not change
# meanwhile. An error about a line gives the line's number in the part.
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

# First the part is copied to a file of its own, because a pipe that breaks would look like the end of the part. The file gets
# its name when it is complete.
if [ ! -e "$output.$k" ] && [ ! -e "$output.$k.in" ]; then
  trap 'rm -f "$output.$k.in.$$"' EXIT
  split --number="l/$k/$n" "$input" > "$output.$k.in.$$"
  mv "$output.$k.in.$$" "$output.$k.in"
fi
if [ ! -e "$output.$k" ]; then
  luajit "$recipes/pipe.lua" --input "$output.$k.in" --output "$output.$k" --resume "$@"
fi
rm -f "$output.$k.in" "$output.$k.in."*
