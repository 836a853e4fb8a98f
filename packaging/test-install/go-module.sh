# The Go module, from a proxy that is a directory, into a GOPATH that has nothing else. Also vendored.
# Runs the example in docs/packages.md.
# shellcheck shell=sh disable=SC2154

check_go_module() {
    start_servers
    package go > "$scratch/zip"
    proxy=$scratch/packages/go/go
    project=$scratch/go-project
    mkdir "$project"
    (cd "$project" && printf 'module example.com/program\n\ngo 1.19\n' > go.mod)
    shown go > "$project/main.go"
    by_go get "redlock.example/redlock@v$version" 2> "$scratch/said" || fail "go get: $(cat "$scratch/said")"
    # Modules are read-only, and vendoring leaves out directories without Go files.
    by_go mod vendor || fail "go mod vendor fails"
    is_whole "$project/vendor"
    by_go build -mod=vendor -o program . || fail "the program with the module cannot be built"
    locks clean "$project/program"
    ! readelf -d "$project/program" | grep -q 'NEEDED.*redlock' || fail "the program needs an installed library"
    check_go_with_installed
    by_go clean -modcache
}

# With these tags, the module uses the installed library.
check_go_with_installed() {
    tree=$(installed)
    for tag in redlock_pkgconfig redlock_system; do
        by_go build -mod=vendor -tags $tag -o linked . || fail "the module with the tag $tag cannot be built"
        readelf -d "$project/linked" | grep -q "NEEDED.*\[$wanted\]" || fail "the tag $tag changes nothing"
        locks clean LD_LIBRARY_PATH="$tree/lib" "$project/linked"
    done
}

by_go() {
    (cd "$project" && clean GOPATH="$scratch/gopath" GOCACHE="$target/test-packages-go" GOENV=off GOPROXY="file://$proxy" \
        GOFLAGS=-mod=mod GONOSUMDB=redlock.example GOTOOLCHAIN=local CGO_ENABLED=1 CC="$cc" PKG_CONFIG_LIBDIR="${tree:-}/lib/pkgconfig" \
        CGO_CFLAGS="${tree:+-I$tree/include}" CGO_LDFLAGS="${tree:+-L$tree/lib}" go "$@")
}
