# Checks which files are installed where, in all kinds of trees, and that uninstall removes them again.
# shellcheck shell=sh disable=SC2154

check_tree() {
    check_default_layout
    check_moved_tree
    check_uninstall
    check_neighbours_stay
    check_staged_multiarch
    check_odd_places
    check_native_libs
}

check_default_layout() {
    install_into PREFIX="$scratch/default"
    listing "$scratch/default" > "$scratch/listing"
    expected_listing lib > "$scratch/expected"
    diff "$scratch/expected" "$scratch/listing" || fail "the installed tree is not as expected"
    check_shared_program "$scratch/default/lib"
    check_soname
    check_stripped
    check_command "$scratch/default/bin/redlock"
}

expected_listing() {
    (cd man && find . -name '*.[37]' | sed 's|^\./\(.*\.\)\([37]\)$|./share/man/man\2/\1\2|') > "$scratch/pages"
    LC_ALL=C sort "$scratch/pages" - <<LIST
./bin/redlock
./share/bash-completion/completions/redlock
./share/fish/vendor_completions.d/redlock.fish
./share/man/man1/redlock.1
./share/zsh/site-functions/_redlock
./include/redlock-cpp/redlock.h
./include/redlock.h
./include/redlock.hpp
./$1/cmake/redlock/redlock-config-version.cmake
./$1/cmake/redlock/redlock-config.cmake
./$1/libredlock.a
./$1/$linked
./$1/$wanted
./$1/$real
./$1/pkgconfig/redlock.pc
LIST
}

# A program must ask for libredlock.so.0.3, and not for the name that it was linked with.
check_soname() {
    [ "$(uname -s)" = Linux ] || return 0
    readelf -d "$scratch/shared" | grep -q "NEEDED.*\[$wanted\]" || fail "the program does not ask for $wanted"
}

# Only the names of the interface may be visible, also in the static library. There, other names would clash with
# those of any other library that was built by another Rust.
check_stripped() {
    [ "$(uname -s)" = Linux ] || return 0
    sections=$(readelf -S --wide "$scratch/default/lib/$real")
    case $sections in *.symtab* | *.debug*) fail "the shared library is not stripped" ;; esac
    sections=$(readelf -S --wide "$scratch/default/lib/libredlock.a")
    case $sections in *' .llvmbc '* | *' .debug_'*) fail "the static library is not stripped" ;; esac
    shared=$(nm -D --defined-only "$scratch/default/lib/$real" | sed 's/.* //' | LC_ALL=C sort)
    static=$(nm -g --defined-only "$scratch/default/lib/libredlock.a" | sed -n 's/.* . //p' | LC_ALL=C sort)
    [ "$shared" = "$static" ] || fail "the static library has these names: $static"
}

# The new path contains spaces.
check_moved_tree() {
    mv "$scratch/default" "$scratch/moved tree"
    check_shared_program "$scratch/moved tree/lib"
}

check_uninstall() {
    uninstall_from PREFIX="$scratch/moved tree"
    left=$(ls -d "$scratch/moved tree" 2>/dev/null || true)
    [ -z "$left" ] || fail "uninstall leaves: $left"
}

# Files of others must stay.
check_neighbours_stay() {
    for directory in lib/pkgconfig lib/cmake include/redlock-cpp share/man/man3; do
        mkdir -p "$scratch/shared tree/$directory"
        touch "$scratch/shared tree/$directory/another"
    done
    (cd "$scratch/shared tree" && find . | LC_ALL=C sort) > "$scratch/expected"
    install_into PREFIX="$scratch/shared tree"
    uninstall_from PREFIX="$scratch/shared tree"
    (cd "$scratch/shared tree" && find . | LC_ALL=C sort) | diff "$scratch/expected" - \
        || fail "uninstall leaves something, or takes what is not ours"
}

# As for a package: written to DESTDIR, meant for PREFIX.
check_staged_multiarch() {
    install_into DESTDIR="$scratch/stage" PREFIX=/opt/redlock LIBDIR=lib/x86_64-linux-gnu
    tree=$scratch/stage/opt/redlock
    expected_listing lib/x86_64-linux-gnu > "$scratch/expected"
    # If CMake does not search this LIBDIR, two more files lead there.
    listing "$tree" | grep -v '^\./share/cmake/' > "$scratch/listing"
    diff "$scratch/expected" "$scratch/listing" || fail "the staged tree is not as expected"
    ! grep -rq "$scratch" "$scratch/stage" || fail "something names DESTDIR"
    check_shared_program "$tree/lib/x86_64-linux-gnu"
    uninstall_from DESTDIR="$scratch/stage" PREFIX=/opt/redlock LIBDIR=lib/x86_64-linux-gnu
    left=$(ls -d "$tree" 2>/dev/null || true)
    [ -z "$left" ] || fail "uninstall leaves: $left"
}

# Directories that are not below PREFIX, paths with dots, spaces, and characters that sed treats specially.
check_odd_places() {
    odd=$scratch/odd
    check_places "$odd/a&b/li b" include "$odd/a&b/li b"
    check_places lib64 "$odd/in clude|s" "$odd/prefix/lib64"
    check_places ./x/../lib//deep/ include/. "$odd/prefix/lib/deep"
}

# Usage: check_places LIBDIR INCLUDEDIR LIBRARIES. The last is the directory where the libraries must be.
check_places() {
    install_into PREFIX="$odd/prefix/" LIBDIR="$1" INCLUDEDIR="$2"
    check_shared_program "$3"
    uninstall_from PREFIX="$odd/prefix/" LIBDIR="$1" INCLUDEDIR="$2"
    left=$(listing "$odd")
    [ -z "$left" ] || fail "uninstall with LIBDIR=$1 INCLUDEDIR=$2 leaves: $left"
}

# redlock.pc and the CMake package must contain what Rust says its static libraries need, except what compilers
# add anyway.
check_native_libs() {
    needed=$(echo | rustc --crate-type staticlib --print native-static-libs -o "$scratch/empty.a" - 2>&1 \
        | sed -n 's/.*native-static-libs: //p')
    [ -n "$needed" ] || fail "rustc does not say what its static libraries need"
    told=$(ask_pkg_config "$(installed)/lib" --static --libs-only-l)
    for library in $needed; do
        case $library in -lc | -lgcc_s | -lSystem | -lunwind) continue ;; esac
        case " $told " in *" $library "*) ;; *) fail "redlock.pc lacks $library" ;; esac
    done
    for library in ${told#-lredlock}; do
        grep -q "_redlock_needs .*$library\>" packaging/cmake/redlock-config.cmake \
            || fail "the CMake package lacks $library"
    done
}
