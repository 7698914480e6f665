#!/bin/sh
# kills.sh COUNT OUTPUT COMMAND...: runs the command COUNT times, and kills it each time when OUTPUT.part has grown. Then runs it to
# its end. Prints the number of kills before OUTPUT was complete, which is less than COUNT if the command was too fast.
set -eu
wanted=$1 output=$2 kills=0
shift 2
size() {
  stat -c %s "$output.part" 2> /dev/null || echo 0
}
while [ $kills -lt "$wanted" ]; do
  before=$(size)
  "$@" &
  pid=$!
  while kill -0 $pid 2> /dev/null && [ "$(size)" -le "$before" ]; do :; done
  sleep 0.00$((kills % 10)) # into the middle of what it does
  kill -9 $pid 2> /dev/null || true
  wait $pid 2> /dev/null && break
  kills=$((kills + 1))
done
"$@"
echo "$kills kills"
