# The Go module with the static library and the header in it, in the layout of a module proxy.
# shellcheck shell=sh disable=SC2154

make_go() {
    begin go
    system=$(go env GOOS) machine=$(go env GOARCH)
    (cd "$here/bindings/go" && find . -path ./tests -prune -o \( -name '*.go' ! -name '*_test.go' -o -name go.mod \) -print) | while read -r file; do
        install -D -m 644 "$here/bindings/go/$file" "$stage/$file"
    done
    path=$(sed -n 's/^module //p' "$stage/go.mod")
    readme go
    cp "$here/include/redlock.h" "$stage/"
    sh "$here/packaging/static.sh" "$build/libredlock.a" "$stage/libredlock_${system}_$machine.a"
    needs=$(sh "$here/packaging/pkg-config.sh" 0 / /lib /include < "$here/packaging/redlock.pc.in" | sed -n 's/^Libs.private: //p')
    sed -e "s/@GOOS@/$system/g" -e "s/@GOARCH@/$machine/g" -e "s/@NATIVE_LIBS@/$needs/" \
        "$here/packaging/go/cgo_vendored.go.in" > "$stage/cgo_vendored.go"
    # The installed library is used if the caller asks for it, and on other systems.
    sed -i "1s/.*/\/\/go:build !redlock_pkgconfig \&\& (redlock_system || !$system || !$machine)/" "$stage/cgo.go"
    unformatted=$(gofmt -l "$stage")
    [ -z "$unformatted" ] || give_up "gofmt would change $unformatted"
    rm -rf "$output/go"
    "$tools/bin/python" "$here/packaging/go/module_proxy.py" "$stage" "$path" "v$version" "$SOURCE_DATE_EPOCH" "$output/go"
    echo "$output/go/$path/@v/v$version.zip"
}
