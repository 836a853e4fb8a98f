#!/bin/sh
# Links the shared library for packages that must run on older systems than this one.
#
# Usage: portable.sh BUILD_DIRECTORY TOOLS OUTPUT
# TOOLS is what package-tools.sh prints. The code is that of the static library, so nothing is compiled again. Zig
# links it, because Zig knows the symbols of every glibc version. Only libgcc_s is linked from this system. Every
# system with glibc has a libgcc_s, and the system's own one unwinds a thread that is cancelled.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=$1 tools=$2 output=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

. "$here/packaging/version.sh"
sh "$here/packaging/static.sh" "$build/libredlock.a" "$scratch/libredlock.a"
{
    echo '{ global:'
    nm -g --defined-only "$scratch/libredlock.a" | sed -n 's/.* . \(RedLock.*\)/    \1;/p'
    echo 'local: *; };'
} > "$scratch/exports"
# The options are those of build.rs and of rustc.
"$tools/bin/python" -m ziglang cc -target "$portable_target" -shared -o "$scratch/library" \
    -Wl,-soname,"libredlock.so.$interface" -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections \
    -Wl,--version-script="$scratch/exports" -Wl,--whole-archive "$scratch/libredlock.a" -Wl,--no-whole-archive \
    "$("${CC:-cc}" -print-file-name=libgcc_s.so.1)" -lpthread -lm -ldl -s
chmod 644 "$scratch/library"
mv "$scratch/library" "$output"
