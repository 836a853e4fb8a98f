# The Debian packages. They must install into a root of their own, work there, and leave nothing after a purge.
# Building them again must give the same bytes.
# shellcheck shell=sh disable=SC2154

check_debian() {
    if ! has dpkg-deb; then
        leave_out "the Debian packages: there is no dpkg-deb"
        return 0
    fi
    packages=$(sh packaging/deb.sh "$release" "$scratch/packages") || fail "the packages cannot be made"
    [ "$(printf '%s\n' "$packages" | wc -l)" = 3 ] || fail "deb.sh says: $packages"
    check_that_they_are_the_same_again
    root=$scratch/root
    multiarch=$("$cc" -print-multiarch)
    debian_lib=$root/usr/lib/${multiarch:-$(uname -m)-linux-gnu}
    check_debian_installation
    check_debian_control
    check_lintian
}

check_that_they_are_the_same_again() {
    # shellcheck disable=SC2086
    sha256sum $packages > "$scratch/sums"
    sh packaging/deb.sh "$release" "$scratch/packages" > /dev/null
    sha256sum --quiet -c "$scratch/sums" || fail "the same packages are not the same bytes"
}

check_debian_installation() {
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
    : > "$root/var/lib/dpkg/status"
    # shellcheck disable=SC2086
    in_root --force-depends --install $packages
    PKG_CONFIG_SYSROOT_DIR=$root
    export PKG_CONFIG_SYSROOT_DIR
    check_shared_program "$debian_lib"
    unset PKG_CONFIG_SYSROOT_DIR
    [ "$(sed -n 's/^prefix=//p' "$debian_lib/pkgconfig/redlock.pc")" = /usr ] || fail "redlock.pc is not for /usr"
    check_command "$root/usr/bin/redlock"
    [ -f "$root/usr/share/man/man1/redlock.1.gz" ] || fail "the command has no manual page"
    in_root --purge libredlock-dev "libredlock$interface" redlock
    left=$(find "$root" ! -type d ! -path "$root/var/lib/dpkg/*")
    [ -z "$left" ] || fail "a purge leaves: $left"
    [ ! -e "$root/usr" ] || fail "a purge leaves directories: $(find "$root/usr")"
}

# dpkg makes root the owner of files. Only root can do that, or a user that looks like root.
in_root() {
    as_root=
    [ "$(id -u)" = 0 ] || as_root='unshare --map-root-user'
    # shellcheck disable=SC2086
    PATH=$PATH:/usr/sbin:/sbin $as_root dpkg --root="$root" "$@" > "$scratch/said" 2>&1 \
        || fail "dpkg $*: $(cat "$scratch/said")"
}

# The control data that other packages depend on.
check_debian_control() {
    package=$(printf '%s\n' "$packages" | grep "/libredlock$interface" )
    dpkg-deb --ctrl-tarfile "$package" | (mkdir "$scratch/control" && tar -x -C "$scratch/control")
    grep -q "^libredlock $interface libredlock$interface (>= $version)$" "$scratch/control/shlibs" || fail "shlibs is wrong"
    grep -q '^activate-noawait ldconfig$' "$scratch/control/triggers" || fail "ldconfig is not called"
    grep -q '^ RedLock_Lock@Base 0.3.0$' "$scratch/control/symbols" || fail "symbols is wrong"
    grep -q '^Depends: libc6 (>= [0-9.]*), libgcc-s1 (>= [0-9.]*)$' "$scratch/control/control" || fail "Depends is wrong"
}

check_lintian() {
    if ! has lintian; then
        leave_out "what lintian says of the Debian packages: there is no lintian"
        return 0
    fi
    # shellcheck disable=SC2086
    lintian --allow-root --fail-on error,warning $packages > "$scratch/said" 2>&1 \
        || fail "lintian says: $(cat "$scratch/said")"
}
