#!/bin/sh
# The programs that are not Rust: formatted Go, JavaScript that can be read, Ruby and Python without warnings. What is not there is left out;
# `make test` sees to it that it is there.
set -eu
cd "$(dirname "$0")/.."

failed=0

if command -v gofmt >/dev/null 2>&1; then
    unformatted=$(find c-examples tests benches -name '*.go' -exec gofmt -l {} +)
    if [ -n "$unformatted" ]; then
        echo "lint: gofmt would change: $unformatted" >&2
        failed=1
    fi
fi

if command -v node >/dev/null 2>&1; then
    find c-examples tests -name node_modules -prune -o -name '*.js' -print | while read -r script; do
        node --check "$script" || exit 1
    done || failed=1
fi

if command -v ruby >/dev/null 2>&1; then
    said=$(find c-examples tests benches packaging \( -name '*.rb' -o -name '*.gemspec' \) -print -exec ruby -wc {} \; 2>&1)
    if printf '%s\n' "$said" | grep -v -e '\.rb$' -e '\.gemspec$' -e '^Syntax OK$' >/dev/null; then
        printf 'lint: ruby -wc:\n%s\n' "$said" >&2
        failed=1
    fi
fi

if command -v python3 >/dev/null 2>&1; then
    compile='import pathlib, sys; [compile(pathlib.Path(it).read_bytes(), it, "exec") for it in sys.argv[1:]]'
    find c-examples tests benches packaging -name '*.py' -exec python3 -B -W error -c "$compile" {} + || failed=1
fi

exit $failed
