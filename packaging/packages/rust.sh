# The crate. Cargo builds it from what is packed.
# shellcheck shell=sh disable=SC2154

make_rust() {
    # What is not committed yet is packed as well. A dependency's path is not told to the crate's users.
    # shellcheck disable=SC2086
    (cd "$here" && quietly "${CARGO:-cargo}" package --allow-dirty --package redlock-core ${CARGOFLAGS:-})
    crate=redlock-core-$version.crate
    cp "${CARGO_TARGET_DIR:-$here/target}/package/$crate" "$scratch/"
    rm -f "$output"/redlock-core-*.crate
    take "$scratch/$crate"
}
