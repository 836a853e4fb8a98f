#!/bin/sh
# Builds the programs of the Go example. Usage: go-example.sh BUILD_DIRECTORY OUTPUT_DIRECTORY
set -eu
library=$(cd "$1" && pwd)
output=$(cd "$2" && pwd)
include=$(cd "$(dirname "$0")/../include" && pwd)
cd "$(dirname "$0")/../bindings/go"

export CGO_ENABLED=1
export CGO_CFLAGS="-I$include"
export CGO_LDFLAGS="-L$library -Wl,-rpath,$library"
for program in cmd/*; do
    set -x
    go build -buildvcs=false -o "$output/go-${program#cmd/}" "./$program"
    { set +x; } 2>/dev/null
done
