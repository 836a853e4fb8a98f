# Shared code of the parts of test-install.sh. That script reads this file and sets $scratch.
# shellcheck shell=sh disable=SC2154,SC2034

make=${MAKE:-make} cc=${CC:-cc} cxx=${CXX:-c++}
release=${RELEASE:-${CARGO_TARGET_DIR:-target}/release}
ours=packaging/test-install
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
case $version in 0.*) interface=${version%.*} ;; *) interface=${version%%.*} ;; esac
linked=libredlock.so wanted=libredlock.so.$interface real=libredlock.so.$version
if [ "$(uname -s)" = Darwin ]; then
    linked=libredlock.dylib wanted=libredlock.$interface.dylib real=libredlock.$version.dylib
fi
# The output of a program whose server is not there.
answer="$version REDLOCK_UNREACHABLE"

fail() {
    echo "install: $*" >&2
    exit 1
}

# Says that a check is left out because an optional tool is missing.
leave_out() {
    echo "install: not tried here: $*"
}

has() {
    command -v "$1" > /dev/null 2>&1
}

install_into() {
    "$make" --no-print-directory install "$@" > /dev/null
}

uninstall_from() {
    "$make" --no-print-directory uninstall "$@" > /dev/null
}

# Everything in a tree except directories.
listing() {
    (cd "$1" && find . ! -type d | LC_ALL=C sort)
}

# The tree that most parts check.
installed() {
    [ -d "$scratch/one" ] || install_into PREFIX="$scratch/one"
    echo "$scratch/one"
}

# Asks pkg-config about the tree with the libraries in $1. It searches nowhere else.
ask_pkg_config() {
    directory=$1/pkgconfig
    shift
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$directory pkg-config "$@" redlock
}

# Usage: compile LIBDIR OUTPUT PKG_CONFIG_OPTIONS COMPILER ARGUMENT... The output of pkg-config is quoted for a
# shell, and its paths may contain spaces.
compile() {
    libdir=$1 output=$2 options=$3
    shift 3
    # shellcheck disable=SC2086
    flags=$(ask_pkg_config "$libdir" $options --cflags --libs)
    eval '"$@" -o "$output"' "$flags"
}

# Runs a program with the libraries in $1, and checks that it prints the expected answer.
run_with() {
    libdir=$1
    shift
    said=$(LD_LIBRARY_PATH=$libdir DYLD_LIBRARY_PATH=$libdir "$@") || fail "$* ends badly"
    [ "$said" = "$answer" ] || fail "$* said: $said"
}

# Builds and runs a program with the shared library in $1.
check_shared_program() {
    [ "$(ask_pkg_config "$1" --modversion)" = "$version" ] || fail "redlock.pc tells another version"
    compile "$1" "$scratch/shared" '' "$cc" $ours/programs/program.c
    run_with "$1" "$scratch/shared"
}

# Checks the command, which does not need the installed library.
check_command() {
    said=$("$1" --version) || fail "$1 does not run"
    [ "$said" = "redlock $version" ] || fail "$1 says: $said"
}
