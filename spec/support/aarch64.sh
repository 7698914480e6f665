#!/bin/sh
# Runs luajit or busted of Debian's arm64 packages under qemu, with the library that was cross-compiled.
#
#   sh spec/support/aarch64.sh BUILD luajit|busted ARGUMENT...
#
# BUILD/root has the packages, put there by .ci/fetch arm64. BUILD/libperigee_spec.so is the library.
#
# Programs that a spec starts as `luajit` run under qemu, too: BUILD/bin is first in PATH.
set -eu
build=$(realpath "$1") program=$2
shift 2
root=$build/root
mkdir -p "$build/bin"
printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" "%s/usr/bin/luajit" "$@"\n' "$root" "$root" > "$build/bin/luajit"
chmod +x "$build/bin/luajit"

shared=$root/usr/share/lua/5.1
export PATH="$build/bin:$PATH"
export LUA_PATH="./?.lua;./lua/?.lua;./lua/?/init.lua;$shared/?.lua;$shared/?/init.lua;$root/usr/share/luajit-2.1/?.lua"
export LUA_CPATH="$root/usr/lib/aarch64-linux-gnu/lua/5.1/?.so"
export PERIGEE_LIB="$build/libperigee_spec.so" PERIGEE_CACHE="$build/cache"
case $program in
luajit) exec luajit "$@" ;;
busted) exec luajit -e 'require "busted.runner" { standalone = false }' - "$@" < /dev/null ;;
*) echo "$program is neither luajit nor busted" >&2 && exit 2 ;;
esac
