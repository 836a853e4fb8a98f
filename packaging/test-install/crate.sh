# The crate, as a dependency of a program elsewhere. Runs the example in docs/packages.md.
# shellcheck shell=sh disable=SC2154

check_crate() {
    start_servers
    crate=$(package rust)
    tar -xzf "$crate" -C "$scratch"
    unpacked=$scratch/redlock-core-$version
    for file in LICENSE README.md include/redlock.h man/redlock.7 packaging/cmake/redlock-config.cmake src/protocol/command/release.lua; do
        [ -f "$unpacked/$file" ] || fail "the crate has no $file"
    done
    [ ! -e "$unpacked/tests" ] || fail "the crate has tests that nobody can run"
    for field in description license readme documentation keywords categories rust-version '\[package.metadata.docs.rs\]'; do
        grep -q "^$field" "$unpacked/Cargo.toml" || fail "the crate's Cargo.toml has no $field"
    done
    RUSTDOCFLAGS='-D warnings' "${CARGO:-cargo}" doc --quiet --no-deps --package redlock-core || fail "docs.rs would warn"
    project=$scratch/rust-project
    mkdir -p "$project/src"
    printf '[package]\nname = "program"\nedition = "2024"\n' > "$project/Cargo.toml"
    # The same versions, so that cargo looks nothing up.
    cp "$unpacked/Cargo.lock" "$project/"
    shown rust > "$project/src/main.rs"
    by_cargo_there add --quiet redlock-core --path "$unpacked" 2> "$scratch/said" || fail "cargo add: $(cat "$scratch/said")"
    by_cargo_there build --quiet || fail "a program with the crate cannot be built"
    locks clean "$target/test-packages-crate/debug/program"
}

by_cargo_there() {
    command=$1
    shift
    (cd "$project" && CARGO_TARGET_DIR=$target/test-packages-crate "${CARGO:-cargo}" "$command" --offline "$@")
}
