#!/bin/sh
# Makes sure that the programs that a target of the Makefile runs are installed.
#
# Usage: tools.sh demo|demo-fencing|demo-cluster|test|packages|servers|soak|bench|bench-peers
# Missing programs are installed through the system's package manager if no questions are asked: as root, or with
# a sudo that needs no password. Otherwise, and with NO_INSTALL=1, the script says what is missing and how to get
# it, and fails. If an optional program is missing, the script says so and goes on.
set -eu

what_for=$1
node_least=18
valkey='valkey-compat-redis' # Fedora's Valkey, with redis-server as a name of it

main() {
    look
    [ -n "$missing$wanted" ] || exit 0
    echo "tools: missing for \`make $what_for\`:$missing$wanted" >&2
    find_manager
    packages=$(for tool in $missing $wanted; do package_of "$tool"; done | sort -u | tr '\n' ' ')
    if may_install; then
        echo "tools: installing with $manager: $packages" >&2
        install_packages >&2 || echo "tools: $manager failed" >&2
        add_rust_components >&2
        look
    fi
    [ -z "$missing" ] || give_up
    for tool in $wanted; do
        echo "tools: going on without $tool ($(how_to_get "$tool"))" >&2
    done
}

look() {
    missing=$(missing_tools)
    wanted=$(wanted_tools)
}

missing_tools() {
    has cargo || printf ' cargo'
    has "${CC:-cc}" || printf ' cc'
    case $what_for in
    test | packages) missing_for_packages ;;
    esac
    case $what_for in
    bench-peers | packages) return 0 ;;
    esac
    has redis-server || { is_demo && has_other_server; } || printf ' redis-server'
    case $what_for in
    demo-fencing | test | servers) has_header sqlite3.h || printf ' sqlite' ;;
    esac
    if [ "$what_for" = servers ]; then
        has python3 || printf ' python3'
        python3 -m pip --version >/dev/null 2>&1 || printf ' pip'
    fi
    [ "$what_for" = test ] || return 0
    # The shells read the completions of the command.
    # The last two make a network for the tests that cut servers off.
    for tool in g++ clang valgrind pkg-config cmake groff ps zsh fish mypy ip unshare; do
        has "$tool" || printf ' %s' "$tool"
    done
    has_sanitizers || printf ' sanitizers'
    has_header hiredis/hiredis.h || printf ' hiredis'
    has_header uv.h || printf ' libuv'
    ! has ruby || ruby -rfiddle -e 1 2>/dev/null || printf ' ruby-fiddle'
    has_python_modules gevent gunicorn || printf ' gevent'
    for component in rustfmt clippy; do
        has_component "$component" || printf ' %s' "$component"
    done
}

# The languages that packages are made for, and their packaging tools. package-tools.sh gets the rest.
missing_for_packages() {
    for tool in go gofmt ruby gem python3 npm readelf; do
        has "$tool" || printf ' %s' "$tool"
    done
    python3 -c 'import ensurepip, venv' 2>/dev/null || printf ' python3-venv'
    if ! has_node; then
        printf ' node'
    elif ! has_node_headers; then
        printf ' node-headers'
    fi
}

# Optional programs: those that the bench compares with, and further checks of what is installed.
wanted_tools() {
    case $what_for in
    test)
        # The last two check scripts.
        for tool in abidiff mandoc dpkg-deb shellcheck rubocop; do
            has "$tool" || printf ' %s' "$tool"
        done
        ! has apt-get || has lintian || printf ' lintian'
        has_python_modules prometheus_client.parser || printf ' prometheus-parser'
        ;;
    bench)
        has_header hiredis/hiredis.h || printf ' hiredis'
        ;;
    bench-peers)
        has python3 || printf ' python3'
        python3 -c 'import ensurepip, venv' 2>/dev/null || printf ' python3-venv'
        for tool in node npm; do
            has "$tool" || printf ' %s' "$tool"
        done
        ;;
    esac
}

has_header() {
    echo "#include <$1>" | "${CC:-cc}" -D_POSIX_C_SOURCE=200809L -E - >/dev/null 2>&1
}

# The tests use whichever of the two has them.
has_python_modules() {
    for python in python3 /usr/bin/python3; do
        ! "$python" -c 'import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]' "$@" \
            >/dev/null 2>&1 || return 0
    done
    return 1
}

# Not every system packages the sanitizers separately. Their libraries must be installed in addition to the
# compiler.
has_sanitizers() {
    echo 'int main(void) { return 0; }' |
        gcc -fsanitize=address,undefined -x c -o /dev/null - >/dev/null 2>&1
}

# A version that is too old for the addon counts as missing.
has_node() {
    has node && node -e "process.exit(parseInt(process.versions.node) < $node_least ? 1 : 0)" >/dev/null 2>&1
}

# The build of the addon says where it looks.
has_node_headers() {
    node bindings/node/build.js --headers >/dev/null 2>&1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

is_demo() {
    case $what_for in demo | demo-fencing | demo-cluster) ;; *) return 1 ;; esac
}

# The demos accept these as well. The TLS tests ask for redis-server by that name.
has_other_server() {
    has "${REDIS_SERVER:-valkey-server}"
}

has_component() {
    case $1 in
    rustfmt) cargo fmt --version ;;
    clippy) cargo clippy --version ;;
    esac >/dev/null 2>&1
}

find_manager() {
    manager=
    for candidate in apt-get dnf apk pacman brew; do
        if has "$candidate"; then
            manager=$candidate
            break
        fi
    done
}

# The package that contains a tool. Empty if the tool does not come from the package manager.
package_of() {
    case $manager/$1 in
    */cargo | */rustfmt | */clippy) ;;
    apt-get/cc) echo gcc libc6-dev ;;
    */cc) echo gcc ;;
    dnf/redis-server) if dnf -q list $valkey >/dev/null 2>&1; then echo $valkey; else echo redis; fi ;;
    pacman/redis-server) echo valkey ;;
    apk/redis-server | brew/redis-server) echo redis ;;
    dnf/g++) echo gcc-c++ ;;
    pacman/g++ | brew/g++) echo gcc ;;
    apt-get/go | apt-get/gofmt) echo golang-go ;;
    dnf/go | dnf/gofmt) echo golang ;;
    */gofmt) echo go ;;
    apt-get/ruby-fiddle) echo libruby ;;
    dnf/ruby-fiddle) echo rubygem-fiddle ;;
    apt-get/valgrind) echo valgrind libc6-dbg ;;
    apt-get/sanitizers | pacman/sanitizers) echo gcc ;;
    dnf/sanitizers) echo gcc libasan libubsan ;;
    */sanitizers) ;;
    apt-get/pkg-config) echo pkg-config ;;
    dnf/pkg-config) echo pkgconf-pkg-config ;;
    */pkg-config) echo pkgconf ;;
    apt-get/groff) echo groff-base ;;
    */dpkg-deb) echo dpkg ;;
    apt-get/abidiff) echo abigail-tools ;;
    dnf/abidiff) echo libabigail ;;
    */abidiff) ;;
    apt-get/hiredis) echo libhiredis-dev ;;
    dnf/hiredis) echo hiredis-devel ;;
    apk/hiredis) echo hiredis-dev ;;
    apt-get/libuv) echo libuv1-dev ;;
    dnf/libuv) echo libuv-devel ;;
    apk/libuv) echo libuv-dev ;;
    apt-get/sqlite) echo libsqlite3-dev ;;
    dnf/sqlite) echo sqlite-devel ;;
    apk/sqlite) echo sqlite-dev ;;
    apt-get/node | dnf/node | apk/node | pacman/node) echo nodejs ;;
    apt-get/node-headers) echo libnode-dev ;;
    dnf/node-headers) echo nodejs-devel ;;
    apk/node-headers) echo nodejs-dev ;;
    pacman/node-headers) echo nodejs ;;
    brew/node-headers) echo node ;;
    dnf/npm) echo nodejs-npm ;;
    brew/npm) echo node ;;
    apt-get/gem) echo ruby ;;
    */gem) echo rubygems ;;
    */readelf) echo binutils ;;
    pacman/python3 | pacman/python3-venv) echo python ;;
    pacman/pip) echo python-pip ;;
    apk/pip) echo py3-pip ;;
    brew/pip) echo python3 ;;
    */pip) echo python3-pip ;;
    apt-get/python3-venv) echo python3-venv ;;
    */python3-venv) echo python3 ;;
    apt-get/prometheus-parser) echo python3-prometheus-client ;;
    dnf/prometheus-parser) echo python3-prometheus_client ;;
    apk/prometheus-parser) echo py3-prometheus-client ;;
    pacman/prometheus-parser) echo python-prometheus_client ;;
    */prometheus-parser) ;;
    dnf/shellcheck) echo ShellCheck ;;
    pacman/rubocop | apk/rubocop) echo ruby-rubocop ;;
    dnf/rubocop) echo rubygem-rubocop ;;
    brew/rubocop) ;;
    apt-get/gevent | dnf/gevent) echo python3-gevent python3-gunicorn ;;
    apk/gevent) echo py3-gevent py3-gunicorn ;;
    pacman/gevent) echo python-gevent gunicorn ;;
    */gevent) ;;
    dnf/mypy) echo python3-mypy ;;
    apk/mypy) echo py3-mypy ;;
    dnf/ip) echo iproute ;;
    */ip) echo iproute2 ;;
    */unshare) echo util-linux ;;
    dnf/ps | pacman/ps) echo procps-ng ;;
    */ps) echo procps ;;
    *) echo "$1" ;;
    esac
}

may_install() {
    [ -z "${NO_INSTALL:-}" ] && [ -n "$manager" ] || return 1
    as_root=
    if [ "$manager" = brew ] || [ "$(id -u)" = 0 ]; then
        return 0
    fi
    as_root='sudo -n'
    has sudo && sudo -n true 2>/dev/null
}

# $packages and $as_root are lists of words.
# shellcheck disable=SC2086
install_packages() {
    [ -n "${packages%% *}" ] || return 0
    case $manager in
    apt-get) install_debian ;;
    dnf) $as_root dnf install -y -q $packages ;;
    apk) $as_root apk add --quiet --no-progress $packages ;;
    pacman) $as_root pacman -Sy --noconfirm --needed --noprogressbar $packages ;;
    brew) HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet $packages ;;
    esac
}

# Debian's package would start a server on port 6379, now and at each boot. Nobody asked for that server.
# shellcheck disable=SC2086
install_debian() {
    options='-y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0'
    as_root="$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1"
    keep_quiet=
    case " $packages" in *" redis-server "*) [ ! -d /run/systemd/system ] || keep_quiet=yes ;; esac

    [ -z "$keep_quiet" ] || $as_root systemctl --quiet --runtime mask redis-server.service
    done_well=0
    $as_root apt-get update -qq || echo "tools: apt-get update failed, going on with what is known"
    $as_root apt-get install $options $packages >/dev/null || done_well=1
    if [ -n "$keep_quiet" ]; then
        $as_root systemctl --quiet --runtime unmask redis-server.service
        $as_root systemctl --quiet disable redis-server.service || true
    fi
    return $done_well
}

# These belong to the toolchain. If a distribution packages Rust itself, it has them in separate packages.
add_rust_components() {
    for tool in $missing; do
        case $tool in
        rustfmt | clippy) ! has rustup || rustup --quiet component add "$tool" || true ;;
        esac
    done
}

give_up() {
    could_not='could not be installed here'
    [ -z "${NO_INSTALL:-}" ] || could_not='are to be installed by you, since NO_INSTALL is set'
    echo "tools: these are needed for \`make $what_for\` and $could_not:" >&2
    for tool in $missing; do
        echo "  $tool: $(how_to_get "$tool")" >&2
    done
    exit 1
}

how_to_get() {
    package=$(package_of "$1" | tr '\n' ' ' | sed 's/ $//')
    if [ "$1" = node ] && has node; then
        # The system's package was already tried, or must not be installed.
        version=$(node --version 2>/dev/null) || version='that cannot be run'
        echo "there is $(command -v node) $version, and $node_least or later is needed: https://nodejs.org"
        return
    fi
    case $1 in
    cargo) echo "the Rust toolchain, from https://rustup.rs" ;;
    rustfmt | clippy) echo "rustup component add $1" ;;
    gevent) echo "python3 -m pip install gevent gunicorn, or the packages of the system: $package" ;;
    *)
        case $manager in
        apt-get) echo "as root: apt-get update && apt-get install $package" ;;
        dnf) echo "as root: dnf install $package" ;;
        apk) echo "as root: apk add $package" ;;
        pacman) echo "as root: pacman -S $package" ;;
        brew) echo "brew install $package" ;;
        *) echo "no package manager known here: install it by hand" ;;
        esac
        ;;
    esac
}

main
