#!/bin/sh
# Prints redlock.pc. Usage: pkg-config.sh VERSION PREFIX LIBDIR INCLUDEDIR < redlock.pc.in
#
# What lies under PREFIX is named by its way from the .pc file, so that an installed tree may be
# moved; what lies elsewhere by its full path.
set -eu
version=$1 prefix=$2 libdir=$3 includedir=$4

# The libraries of the system that the static library needs. The compiler adds libc and the
# unwinder by itself, as fits a static or a dynamic program.
case $(uname -s) in
Darwin) native_libs='-lm' ;;
*) native_libs='-lutil -lrt -lpthread -lm -ldl' ;;
esac

# The dollars are for pkg-config to read.
# shellcheck disable=SC2016
under_prefix() {
    case $1 in
    "$prefix"/*) printf '${prefix}%s' "${1#"$prefix"}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# From LIBDIR/pkgconfig up to PREFIX: one step for pkgconfig and one for each part of LIBDIR.
# shellcheck disable=SC2016
way_to_prefix() {
    case $libdir in
    "$prefix"/*) printf '${pcfiledir}/..%s' "$(printf '%s' "${libdir#"$prefix"}" | sed 's|/[^/]*|/..|g')" ;;
    *) printf '%s' "$prefix" ;;
    esac
}

sed -e "s|@PREFIX@|$(way_to_prefix)|" \
    -e "s|@LIBDIR@|$(under_prefix "$libdir")|" \
    -e "s|@INCLUDEDIR@|$(under_prefix "$includedir")|" \
    -e "s|@VERSION@|$version|" \
    -e "s|@NATIVE_LIBS@|$native_libs|"
