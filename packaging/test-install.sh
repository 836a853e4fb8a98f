#!/bin/sh
# Installs into scratch trees and builds programs against what is there, as a user would: shared
# and static, C and C++, from a tree that was moved, from a staged one, with a multiarch LIBDIR.
#
# Environment: MAKE, CC, CXX.
set -eu
cd "$(dirname "$0")/.."

make=${MAKE:-make} cc=${CC:-cc} cxx=${CXX:-c++}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# Only what is installed here may be found.
unset PREFIX DESTDIR LIBDIR INCLUDEDIR MAKEFLAGS MAKEOVERRIDES MFLAGS LD_LIBRARY_PATH CPATH LIBRARY_PATH

main() {
    write_programs
    check_default_layout
    check_moved_tree
    check_static_library
    check_cxx
    check_uninstall
    check_staged_multiarch
    check_native_libs
    echo "install: ok"
}

fail() {
    echo "install: $*" >&2
    exit 1
}

write_programs() {
    cat > "$scratch/program.c" <<'END'
#include <redlock.h>
#include <stdio.h>

int main(void)
{
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    RedLock_AddServerUrl(rl, "redis://127.0.0.1:1", 0);
    printf("%s %s\n", RedLock_Version(), RedLockStatus_Name(RedLock_TryLock(rl, "x", 1000, 0, lease)));
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}
END
    cat > "$scratch/program.cpp" <<'END'
#include <redlock.hpp>
#include <cstdio>

int main()
{
    redlock::Manager manager{"redis://127.0.0.1:1"};
    std::puts(RedLock_Version());
}
END
    cat > "$scratch/dropin.cpp" <<'END'
#include <redlock-cpp/redlock.h>

int main()
{
    CRedLock manager;
    CLock lock;
    return manager.AddServerUrl("127.0.0.1", 1) ? 0 : 1;
}
END
}

install_into() {
    "$make" --no-print-directory install "$@" > /dev/null
}

listing() {
    (cd "$1" && find . ! -type d | LC_ALL=C sort)
}

# pkg-config looks into one directory only; its answer is a list of words.
flags() {
    directory=$1
    shift
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$directory pkg-config "$@" redlock
}

# Builds and runs program.c against the tree in $1 whose libraries are in $2.
# shellcheck disable=SC2046
check_shared_program() {
    libdir=$1/$2
    [ "$(flags "$libdir/pkgconfig" --modversion)" = "$version" ] || fail "redlock.pc tells another version"
    "$cc" -o "$scratch/shared" "$scratch/program.c" $(flags "$libdir/pkgconfig" --cflags --libs)
    said=$(LD_LIBRARY_PATH=$libdir DYLD_LIBRARY_PATH=$libdir "$scratch/shared")
    [ "$said" = "$version REDLOCK_UNREACHABLE" ] || fail "a program with the shared library said: $said"
}

check_default_layout() {
    install_into PREFIX="$scratch/one"
    listing "$scratch/one" > "$scratch/listing"
    expected_listing lib > "$scratch/expected"
    diff "$scratch/expected" "$scratch/listing" || fail "the installed tree is not as expected"
    check_shared_program "$scratch/one" lib
    check_soname
}

expected_listing() {
    case $version in 0.*) interface=${version%.*} ;; *) interface=${version%%.*} ;; esac
    linked=libredlock.so wanted=libredlock.so.$interface real=libredlock.so.$version
    if [ "$(uname -s)" = Darwin ]; then
        linked=libredlock.dylib wanted=libredlock.$interface.dylib real=libredlock.$version.dylib
    fi
    LC_ALL=C sort <<END
./include/redlock-cpp/redlock.h
./include/redlock.h
./include/redlock.hpp
./$1/libredlock.a
./$1/$linked
./$1/$wanted
./$1/$real
./$1/pkgconfig/redlock.pc
END
}

# A program is to ask for libredlock.so.0.1, not for the name it was linked by.
check_soname() {
    [ "$(uname -s)" = Linux ] || return 0
    readelf -d "$scratch/shared" | grep -q "NEEDED.*\[$wanted\]" || fail "the program does not ask for $wanted"
}

check_moved_tree() {
    mv "$scratch/one" "$scratch/moved"
    check_shared_program "$scratch/moved" lib
}

# shellcheck disable=SC2046
check_static_library() {
    private=$(flags "$scratch/moved/lib/pkgconfig" --static --libs-only-l | sed 's/-lredlock//')
    # shellcheck disable=SC2086
    "$cc" -o "$scratch/static" "$scratch/program.c" $(flags "$scratch/moved/lib/pkgconfig" --cflags) \
        "$scratch/moved/lib/libredlock.a" $private
    said=$("$scratch/static")
    [ "$said" = "$version REDLOCK_UNREACHABLE" ] || fail "a program with the static library said: $said"
}

# shellcheck disable=SC2046
check_cxx() {
    for program in program dropin; do
        "$cxx" -std=c++11 -o "$scratch/$program" "$scratch/$program.cpp" \
            $(flags "$scratch/moved/lib/pkgconfig" --cflags --libs)
        LD_LIBRARY_PATH=$scratch/moved/lib DYLD_LIBRARY_PATH=$scratch/moved/lib \
            "$scratch/$program" > /dev/null || fail "$program.cpp does not run"
    done
}

check_uninstall() {
    "$make" --no-print-directory uninstall PREFIX="$scratch/moved" > /dev/null
    left=$(listing "$scratch/moved")
    [ -z "$left" ] || fail "uninstall leaves: $left"
}

# As a package is made: written to DESTDIR, meant for PREFIX.
check_staged_multiarch() {
    install_into DESTDIR="$scratch/stage" PREFIX=/opt/redlock LIBDIR=lib/x86_64-linux-gnu
    tree=$scratch/stage/opt/redlock
    expected_listing lib/x86_64-linux-gnu > "$scratch/expected"
    listing "$tree" > "$scratch/listing"
    diff "$scratch/expected" "$scratch/listing" || fail "the staged tree is not as expected"
    ! grep -rq "$scratch" "$tree/lib/x86_64-linux-gnu/pkgconfig" || fail "redlock.pc names DESTDIR"
    check_shared_program "$tree" lib/x86_64-linux-gnu
    "$make" --no-print-directory uninstall DESTDIR="$scratch/stage" PREFIX=/opt/redlock \
        LIBDIR=lib/x86_64-linux-gnu > /dev/null
    left=$(listing "$scratch/stage")
    [ -z "$left" ] || fail "uninstall leaves: $left"
}

# What Rust says its static libraries need is in the .pc file, but for what compilers add anyway.
check_native_libs() {
    sh packaging/pkg-config.sh "$version" / /lib /include < packaging/redlock.pc.in > "$scratch/redlock.pc"
    needed=$(echo | rustc --crate-type staticlib --print native-static-libs -o "$scratch/empty.a" - 2>&1 \
        | sed -n 's/.*native-static-libs: //p')
    [ -n "$needed" ] || fail "rustc does not say what its static libraries need"
    for library in $needed; do
        case $library in -lc | -lgcc_s | -lSystem | -lunwind) continue ;; esac
        grep -q "^Libs.private:.* $library\( \|\$\)" "$scratch/redlock.pc" || fail "redlock.pc lacks $library"
    done
}

main
