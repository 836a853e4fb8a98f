# How large the library is: as it is built here, and without TLS, for which it is built once more.
# shellcheck shell=sh disable=SC2154

KIB_WITH_TLS=3200
# Of which std's own parts, and the crates for RESP and URLs, are more than half. Submitted calls, events, locks
# that are kept and the thread that may be asked for are 130; who the servers are, and what they remember, 40;
# masters that Sentinels watch, 40; fencing tokens and clocks that are set, 30; who holds a lock, and locks that change
# hands, 35. What wakes waiters, semaphores and several locks at once have not been measured apart: with them it was 1565. Shared
# locks, and waking who waits for those, for permits and for several, are 120.
KIB_WITHOUT_TLS=1728

check_size() {
    target=${CARGO_TARGET_DIR:-target}
    ${CARGO:-cargo} build --quiet --release --no-default-features --target-dir "$target/without-tls"
    without=$target/without-tls/release/$linked
    check_bound "$(installed)/lib/$real" $KIB_WITH_TLS
    check_bound "$without" $KIB_WITHOUT_TLS
    # The names of types and files in the words of its panics.
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
