# Programs linked with the libraries in every way, with the flags of pkg-config. docs/install.md shows one of them.
# shellcheck shell=sh disable=SC2154

check_linking() {
    check_static_library
    check_wholly_static_program
    check_loading_by_name
}

# If there is no shared library, --static gives everything that is needed.
check_static_library() {
    cp -R "$(installed)/lib" "$scratch/static-only"
    mkdir -p "$scratch/static/lib" "$scratch/static/include"
    cp -R "$(installed)/include/." "$scratch/static/include/"
    cp -R "$scratch/static-only/." "$scratch/static/lib/"
    rm "$scratch/static/lib/$linked" "$scratch/static/lib/$wanted" "$scratch/static/lib/$real"
    compile "$scratch/static/lib" "$scratch/static-c" --static "$cc" "$ours/programs/program.c"
    run_with /none "$scratch/static-c"
    compile "$scratch/static/lib" "$scratch/static-cpp" --static "$cxx" -std=c++11 -pthread "$ours/programs/program.cpp"
    run_with /none "$scratch/static-cpp"
}

# The linker warns about getaddrinfo, which loads parts of the C library at run time. Only name lookups need those
# parts.
check_wholly_static_program() {
    [ "$(uname -s)" = Linux ] || return 0
    compile "$(installed)/lib" "$scratch/whole" --static "$cc" -static "$ours/programs/program.c" 2> "$scratch/said" \
        || fail "no program can be linked wholly statically: $(cat "$scratch/said")"
    ! readelf -d "$scratch/whole" | grep -q NEEDED || fail "the static program needs something"
    run_with /none "$scratch/whole"
}

check_loading_by_name() {
    functions=$(sed -n 's/.*\<\(RedLock[A-Za-z]*_[A-Za-z]*\)(.*/\1/p' include/redlock.h | sort -u)
    [ "$(printf '%s\n' "$functions" | wc -l)" -gt 25 ] || fail "the functions of redlock.h were not found"
    "$cc" -std=c99 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -o "$scratch/by_name" "$ours/programs/by_name.c" -ldl
    for name in "$linked" "$wanted" "$(installed)/lib/$real"; do
        # shellcheck disable=SC2086
        said=$(LD_LIBRARY_PATH=$(installed)/lib "$scratch/by_name" "$name" $functions) \
            || fail "$name cannot be loaded, or lacks something"
        [ "$said" = "$version" ] || fail "what was loaded as $name says: $said"
    done
}
