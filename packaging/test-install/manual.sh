# The installed manual: man must find it, and the programs that read it must not report anything.
# shellcheck shell=sh disable=SC2154

check_manual() {
    manual=$(installed)/share/man
    [ "$(find "$manual/man3" -name '*.3' | wc -l)" -gt 40 ] || fail "there are hardly any pages"
    for page in "$manual"/man3/*.3 "$manual"/man7/*.7; do
        said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || fail "groff says of ${page##*/}: $said"
    done
    if has mandoc; then
        said=$(mandoc -T lint -W warning "$manual"/man3/*.3 "$manual"/man7/*.7) || fail "mandoc says: $said"
    else
        leave_out "what mandoc says of the manual: there is no mandoc"
    fi
    check_that_man_finds_it
}

# On some systems, `man` is a program that only explains why there is no man.
check_that_man_finds_it() {
    case $(man --version 2> /dev/null) in
    man\ [0-9]*) ;;
    *) leave_out "whether man finds the manual: there is no man" && return ;;
    esac
    for name in 3/RedLock_Lock 3/REDLOCK_TAKEN 3/RedLockLease 7/redlock; do
        MANPATH=$manual MAN_DISABLE_SECCOMP=1 LC_ALL=C.UTF-8 man "${name%/*}" "${name#*/}" > "$scratch/said" 2>&1 \
            || fail "man does not find ${name#*/}: $(cat "$scratch/said")"
        grep -q '^NAME' "$scratch/said" || fail "man ${name#*/} says: $(cat "$scratch/said")"
    done
}
