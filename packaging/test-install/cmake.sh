# find_package with all kinds of installed trees.
# shellcheck shell=sh disable=SC2154

check_cmake() {
    check_projects
    check_versions
    check_moved_package
    check_missing_parts
}

# Usage: build_project LANGUAGES [OPTION...]: configures, builds and runs the project.
build_project() {
    rm -rf "$scratch/build"
    languages=$1
    shift
    run_cmake -S "$ours/project" -B "$scratch/build" -DLANGUAGES="$languages" "$@"
    run_cmake --build "$scratch/build" -j 2
    for program in c_redlock c_static part/part_redlock part/part_static; do
        run_with /none "$scratch/build/$program"
    done
    case $languages in *CXX*) ;; *) return 0 ;; esac
    run_with /none "$scratch/build/cpp_redlock"
    run_with /none "$scratch/build/cpp_static"
}

# Any warning is a failure.
run_cmake() {
    cmake "$@" > "$scratch/said" 2>&1 || fail "cmake $*: $(cat "$scratch/said")"
    ! grep -i -e 'CMake.*warning' -e 'warning:' "$scratch/said" >&2 || fail "cmake $* warns"
}

check_projects() {
    build_project 'C;CXX' -DCMAKE_PREFIX_PATH="$(installed)"
    readelf -d "$scratch/build/c_redlock" | grep -q "NEEDED.*\[$wanted\]" || fail "CMake does not ask for $wanted"
    ! readelf -d "$scratch/build/c_static" | grep -q 'NEEDED.*redlock' || fail "redlock::static is not static"
    # CMake does not know the way from this PREFIX to this LIBDIR.
    install_into PREFIX="$scratch/far" LIBDIR="$scratch/else where/lib" INCLUDEDIR=include/deep
    build_project C -DCMAKE_PREFIX_PATH="$scratch/far" -DVERSION="$interface"
    uninstall_from PREFIX="$scratch/far" LIBDIR="$scratch/else where/lib" INCLUDEDIR=include/deep
    left=$(find "$scratch/else where" -mindepth 1; ls -d "$scratch/far" 2>/dev/null || true)
    [ -z "$left" ] || fail "uninstall leaves: $left"
}

# Usage: found_versions TREE BYTES VERSION...
found_versions() {
    tree=$1 bytes=$2
    shift 2
    list=$(printf '%s;' "$@" | sed 's|;$||')
    rm -rf "$scratch/build"
    run_cmake -S "$ours/versions" -B "$scratch/build" -DVERSIONS="$list" -DBYTES="$bytes" -DCMAKE_PREFIX_PATH="$tree"
    sed -n 's/^-- found \(.*\): 1$/\1/p' "$scratch/said" | tr '\n' ' '
}

# Checks the version rule for versions below 1.0. It uses the current version, so check_versions must be revised
# for 1.0.
check_versions() {
    case $version in 0.*) ;; *) fail "check_versions is for versions below 1.0" ;; esac
    minor=${interface#0.} patch=${version##*.}
    found=$(found_versions "$(installed)" '' "$version" "$version=" "$interface" "0.$minor.$((patch + 1))" \
        "0.$((minor + 1))" "0.$((minor - 1))" 0 1 1.0 "$interface=" "$interface...1.0" "0.$((minor + 1))...9")
    expected="$version $version= $interface "
    [ "$patch" != 0 ] || expected="$expected$interface= "
    expected="$expected$interface...1.0 "
    [ "$found" = "$expected" ] || fail "find_package finds these versions: $found, rather than $expected"
    [ "$(uname -s)" = Linux ] || return 0
    [ "$(getconf LONG_BIT)" = 64 ] || return 0
    [ "$(found_versions "$(installed)" 8 "$version")" = "$version " ] || fail "a 64-bit program finds no 64-bit library"
    [ -z "$(found_versions "$(installed)" 4 "$version")" ] || fail "a 32-bit program finds a 64-bit library"
}

# The tree was staged for another place and then moved. It is also found through a link.
check_moved_package() {
    install_into DESTDIR="$scratch/staged" PREFIX=/opt/x LIBDIR=lib/deep/er
    mv "$scratch/staged/opt/x" "$scratch/now here"
    build_project C -DCMAKE_INSTALL_PREFIX="$scratch/now here"
    ln -s "$scratch/now here/lib/deep/er/cmake/redlock" "$scratch/link"
    build_project C -Dredlock_DIR="$scratch/link"
}

# Some distributions have packages without the static library, or with only that.
check_missing_parts() {
    cp -R "$(installed)" "$scratch/parts"
    rm "$scratch/parts/lib/libredlock.a"
    ! (build_project C -DCMAKE_PREFIX_PATH="$scratch/parts") 2> "$scratch/why" || fail "what is not there was found"
    grep -q 'no component static' "$scratch/why" || fail "it is not said what is missing: $(cat "$scratch/why")"
    [ "$(found_versions "$scratch/parts" '' "$version")" = "$version " ] || fail "nothing is found without libredlock.a"
    rm "$scratch/parts/include/redlock.h"
    [ -z "$(found_versions "$scratch/parts" '' "$version")" ] || fail "it is found without redlock.h"
}
