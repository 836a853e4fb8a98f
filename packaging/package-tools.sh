#!/bin/sh
# Prints the directory of the Python programs that make and check packages. Gets them if they are not there.
#
# Usage: package-tools.sh BUILD_DIRECTORY
# The programs are those of packaging/python/tools.txt, in a virtual environment below BUILD_DIRECTORY. The
# packages that packaging/python/beside.txt names are in `wheels` beside it. The first run needs the network. With
# NO_INSTALL=1, or if pip fails, the script says what is missing and ends with status 3.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
lists='tools.txt beside.txt'

main() {
    mkdir -p "$1"
    into=$(cd "$1" && pwd)/package-tools
    # shellcheck disable=SC2086
    (cd "$here/packaging/python" && cat $lists) > "$into.wanted.$$"
    # If the directory was made from another list, it is made again.
    if cmp -s "$into.wanted.$$" "$into/wanted"; then
        rm "$into.wanted.$$"
    else
        trap 'rm -f "$into.wanted.$$"' EXIT
        trap 'exit 1' HUP INT TERM
        get >&2
        mv "$into.wanted.$$" "$into/wanted"
    fi
    echo "$into"
}

get() {
    [ -z "${NO_INSTALL:-}" ] || give_up 'to be installed by you, since NO_INSTALL is set'
    echo "package-tools: getting what packaging/python/tools.txt names, into $into (170 MB)"
    rm -rf "$into"
    python3 -m venv "$into" || give_up 'python3 makes no virtual environment (Debian: apt-get install python3-venv)'
    pip="$into/bin/python -m pip --quiet --disable-pip-version-check"
    $pip install --requirement "$here/packaging/python/tools.txt" || give_up 'pip could not get them'
    $pip wheel --use-pep517 --wheel-dir "$into/wheels" --requirement "$here/packaging/python/beside.txt" \
        || give_up 'pip could not get what is in packaging/python/beside.txt'
}

give_up() {
    echo "package-tools: $*:" >&2
    echo "  python3 -m venv $into" >&2
    echo "  $into/bin/pip install -r packaging/python/tools.txt" >&2
    echo "  $into/bin/pip wheel --use-pep517 -w $into/wheels -r packaging/python/beside.txt" >&2
    echo "  cat packaging/python/tools.txt packaging/python/beside.txt > $into/wanted" >&2
    exit 3
}

main "$@"
