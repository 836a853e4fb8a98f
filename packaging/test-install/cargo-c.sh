# Compares what cargo-c installs with what this project's make installs.
# shellcheck shell=sh disable=SC2154

check_cargo_c() {
    if ! cargo cinstall --version > /dev/null 2>&1; then
        leave_out "cargo cinstall: there is no cargo-c (cargo install cargo-c)"
        return 0
    fi
    by_cargo lib
    listing "$scratch/cinstall" > "$scratch/by-cargo"
    listing "$(installed)" | diff - "$scratch/by-cargo" || fail "cargo cinstall lays down another tree"
    for header in redlock.h redlock.hpp redlock-cpp/redlock.h; do
        cmp "include/$header" "$scratch/cinstall/include/$header" || fail "cargo cinstall has another $header"
    done
    check_pc_fields
    check_shared_program "$scratch/cinstall/lib"
    readelf -d "$scratch/cinstall/lib/$real" | grep -q "SONAME.*\[$wanted\]" || fail "cargo cinstall has another soname"
    check_c_found_by_cmake
}

# Usage: by_cargo LIBDIR. Builds without optimization, because only the places of the files matter.
by_cargo() {
    rm -rf "$scratch/cinstall"
    cargo cinstall --locked --debug --target-dir "${CARGO_TARGET_DIR:-target}/cargo-c" \
        --prefix "$scratch/cinstall" --libdir "$1" > "$scratch/said" 2>&1 \
        || fail "cargo cinstall fails: $(cat "$scratch/said")"
}

check_pc_fields() {
    for field in Name Description Version Cflags Libs; do
        for tree in "$(installed)" "$scratch/cinstall"; do
            grep "^$field: " "$tree/lib/pkgconfig/redlock.pc" || fail "redlock.pc in $tree has no $field"
        done | uniq | wc -l | grep -qx ' *1' || fail "redlock.pc of cargo cinstall has another $field"
    done
}

# With the directory that cargo-c uses where it finds Debian's tools: the libraries are in lib/x86_64-linux-gnu.
check_c_found_by_cmake() {
    . "$ours/cmake.sh"
    by_cargo "lib/$("$cc" -print-multiarch || true)"
    build_project C -DCMAKE_PREFIX_PATH="$scratch/cinstall"
}
