# The installed headers in every supported language, with every compiler, and with all warnings that a project may
# use. C is supported from C99 on. In older C, the headers need gnu89.
# shellcheck shell=sh disable=SC2154

common='-Wall -Wextra -Wpedantic -Werror -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align
    -Wformat=2 -Wunused -Wdouble-promotion'
only_c='-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition'
only_cxx='-Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi'

check_languages() {
    for standard in c99 c11 c17 gnu11; do
        for compiler in gcc clang; do
            try "$compiler" "$standard" "$common $only_c" program.c
        done
    done
    for compiler in gcc clang; do
        try "$compiler" gnu89 '-Wall -Wextra -Werror' program.c
    done
    for standard in c++11 c++14 c++17 c++20; do
        for compiler in g++ clang++; do
            try "$compiler" "$standard" "$common $only_cxx" program.cpp
            try "$compiler" "$standard" "$common $only_cxx" program.c '-x c++ -fno-exceptions -fno-rtti'
        done
    done
    for compiler in g++ clang++; do
        try "$compiler" c++11 '-Wall -Wextra -Werror' dropin.cpp
    done
}

# Usage: try COMPILER STANDARD WARNINGS PROGRAM [OPTIONS]
try() {
    # shellcheck disable=SC2086
    compile "$(installed)/lib" "$scratch/tried" '' "$1" "-std=$2" -pthread $3 ${5:-} "$ours/programs/$4" \
        -x none || fail "$4 cannot be built by $1 -std=$2"
    run_with "$(installed)/lib" "$scratch/tried"
}
