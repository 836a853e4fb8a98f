# The crate.
# shellcheck shell=sh disable=SC2154

make_rust() {
    # Uncommitted files are packed as well. packaging/test-install/crate.sh and `cargo publish` check that the crate can
    # be built. Here, cargo would build it in the build directory, which contains the library that the tests use.
    # shellcheck disable=SC2086
    (cd "$here" && quietly "${CARGO:-cargo}" package --no-verify --allow-dirty --package redlock-core ${CARGOFLAGS:-})
    crate=redlock-core-$version.crate
    cp "${CARGO_TARGET_DIR:-$here/target}/package/$crate" "$scratch/"
    rm -f "$output"/redlock-core-*.crate
    take "$scratch/$crate"
}
