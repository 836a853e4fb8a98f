# The crate.
# shellcheck shell=sh disable=SC2154

make_rust() {
    # What is not committed yet is packed as well. That it can be built, packaging/test-install/crate.sh sees, and
    # `cargo publish` itself: here cargo would do it in the build directory, where the library that the tests use lies.
    # shellcheck disable=SC2086
    (cd "$here" && quietly "${CARGO:-cargo}" package --no-verify --allow-dirty --package redlock-core ${CARGOFLAGS:-})
    crate=redlock-core-$version.crate
    cp "${CARGO_TARGET_DIR:-$here/target}/package/$crate" "$scratch/"
    rm -f "$output"/redlock-core-*.crate
    take "$scratch/$crate"
}
