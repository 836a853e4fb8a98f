#!/bin/sh
# Checks the programs that are not Rust: Go is formatted and vet finds nothing, JavaScript can be parsed, and
# scripts, Ruby and Python have no warnings. If a tool is missing, this script says so and leaves its check out.
# `make test` makes sure that the tools are there.
set -eu
cd "$(dirname "$0")/.."

failed=0
package_tools=${CARGO_TARGET_DIR:-target}/package-tools/bin

# Usage: has PROGRAM
has() {
    command -v "$1" >/dev/null 2>&1 || { echo "lint: without $1" >&2 && false; }
}

if has shellcheck; then
    find . \( -name target -o -name node_modules -o -name .git \) -prune -o -name '*.sh' -exec shellcheck {} + || failed=1
fi

if has gofmt; then
    unformatted=$(find bindings tests benches -name '*.go' -exec gofmt -l {} +)
    if [ -n "$unformatted" ]; then
        echo "lint: gofmt would change: $unformatted" >&2
        failed=1
    fi
fi

if has go; then
    (cd bindings/go && CGO_CFLAGS="-I$PWD/../../include" CGO_LDFLAGS='' go vet ./...) || failed=1
fi

if has node; then
    find bindings tests -name node_modules -prune -o -name '*.js' -print | while read -r script; do
        node --check "$script" || exit 1
    done || failed=1
fi

if has ruby; then
    said=$(find bindings tests benches packaging \( -name '*.rb' -o -name '*.gemspec' \) -print -exec ruby -wc {} \; 2>&1)
    if printf '%s\n' "$said" | grep -v -e '\.rb$' -e '\.gemspec$' -e '^Syntax OK$' >/dev/null; then
        printf 'lint: ruby -wc:\n%s\n' "$said" >&2
        failed=1
    fi
fi

if has rubocop; then
    find bindings tests benches packaging \( -name '*.rb' -o -name '*.gemspec' \) -exec rubocop --lint --format quiet --cache false {} + || failed=1
fi

if PATH=$PATH:$package_tools has ruff; then
    PATH=$PATH:$package_tools ruff check --quiet --no-cache . || failed=1
fi

if has python3; then
    compile='import pathlib, sys; [compile(pathlib.Path(it).read_bytes(), it, "exec") for it in sys.argv[1:]]'
    find bindings tests benches packaging -name '*.py' -exec python3 -B -W error -c "$compile" {} + || failed=1
fi

exit $failed
