#!/bin/sh
# Installs into scratch trees and uses the result, as programs, people and packagers would.
#
# Usage: test-install.sh [PART...]: the parts are files in test-install; without one, these:
parts='tree linking languages cmake manual'
# Environment: MAKE, CC, CXX. Some parts also use CARGO and CARGO_TARGET_DIR.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'end_servers; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# Only what is installed here may be found.
unset PREFIX DESTDIR BINDIR LIBDIR INCLUDEDIR MANDIR MAKEFLAGS MAKEOVERRIDES MFLAGS
unset LD_LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH CMAKE_PREFIX_PATH redlock_DIR CFLAGS CXXFLAGS LDFLAGS

. packaging/test-install/common.sh
. packaging/test-install/servers.sh
[ $# -gt 0 ] || eval "set -- $parts"
for part in "$@"; do
    # shellcheck disable=SC1090
    . "packaging/test-install/$part.sh"
    "check_$(printf '%s' "$part" | tr - _)"
done
echo "install: $*: ok"
