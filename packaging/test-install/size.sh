# The size of the library: as it is built here, and without TLS. For the latter, it is built once more.
# shellcheck shell=sh disable=SC2154

KIB_WITH_TLS=3336
# More than half of this is std's own parts and the crates for RESP and URLs. Submitted calls, events, kept locks
# and the optional thread are 130. Server identity and memory are 40. Masters that Sentinels watch are 40. Fencing
# tokens and changed clocks are 30. Lock holders and handover are 35. Waking waiters, semaphores and locks on
# several resources have not been measured separately: with them it was 1565. Shared locks, and waking the waiters
# for those, for permits and for several resources, are 120. Notes with generations, promotions, clocks of servers
# that take the place of others, and restored fencing tokens are 48. Since then (measured commit by commit): threads
# that wait for their own submitted calls are 22, waiters of every kind that wait for room, with a bound for one turn,
# are 31, unlocks that leave the key are 13, looking up names of servers that are down is 15, polling is 6, and what
# is remembered of lost memories and of unanswered requests is 11. Errors as enums, with the command or the key that a
# server refuses and the argument as each language calls it, are 29. Answers that are built in place, and servers that
# are advanced when they are due, are 2. Names that wait for another thread are 5. Slots of clusters as voters are 28, and
# nodes that come and go are 10.
KIB_WITHOUT_TLS=1944

check_size() {
    target=${CARGO_TARGET_DIR:-target}
    ${CARGO:-cargo} build --quiet --release --no-default-features --target-dir "$target/without-tls"
    without=$target/without-tls/release/$linked
    check_bound "$(installed)/lib/$real" $KIB_WITH_TLS
    check_bound "$without" $KIB_WITHOUT_TLS
    # These names of types and files are in the text of its panics.
    grep -q rustls "$(installed)/lib/$real" || fail "this cannot tell whether a library has TLS in it"
    ! grep -q -e rustls -e ring-core "$without" || fail "the library without TLS has TLS in it"
    [ "$(exports "$without")" = "$(exports "$(installed)/lib/$real")" ] \
        || fail "the library without TLS has other functions"
}

check_bound() {
    bytes=$(wc -c < "$1")
    [ "$bytes" -le $(($2 * 1024)) ] || fail "${1##*/} has $bytes bytes, more than $2 KiB"
}

exports() {
    nm -D --defined-only "$1" | sed 's/.* //'
}
