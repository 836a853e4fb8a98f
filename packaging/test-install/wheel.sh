# The wheel: pip installs it into a virtual environment that has nothing else.
# Runs the example in docs/packages.md.
# shellcheck shell=sh disable=SC2154

WHEEL_KIB=3072

check_wheel() {
    start_servers
    wheel=$(package python)
    tools=$(sh packaging/package-tools.sh "$target")
    check_wheel_itself
    python3 -m venv "$scratch/venv"
    python=$scratch/venv/bin/python
    clean "$python" -m pip --quiet --disable-pip-version-check install --no-index "$wheel"
    is_whole "$(echo "$scratch"/venv/lib/python*/site-packages/redlock_native-*.dist-info)"
    knows_no_place "$(echo "$scratch"/venv/lib/python*/site-packages/redlock_native)"
    shown python > "$scratch/example.py"
    locks clean "$python" -I -W error "$scratch/example.py"
    lies_below "$scratch/venv" "$(clean "$python" -I -c '
import redlock_native
maps = open("/proc/self/maps").read().split()
print(*{it for it in maps if "libredlock" in it})')"
    [ "$(clean "$python" -I -c 'import importlib.metadata as it; print(it.version("redlock-native"))')" = "$version" ] \
        || fail "the wheel has another version"
    [ -f "$(find "$scratch/venv" -path '*/redlock_native/py.typed')" ] || fail "the wheel tells nothing of its types"
    check_beside_redlock_py
}

# The wheel's name must match what auditwheel finds.
check_wheel_itself() {
    kib=$(($(wc -c < "$wheel") / 1024))
    [ "$kib" -le $WHEEL_KIB ] || fail "the wheel has $kib KiB, more than $WHEEL_KIB"
    "$tools/bin/auditwheel" show "$wheel" > "$scratch/said" || fail "auditwheel: $(cat "$scratch/said")"
    found=$(tr '\n' ' ' < "$scratch/said" | sed -n 's/.*constrains the platform tag to "\([^"]*\)".*/\1/p')
    case ${wheel##*/} in
    "redlock_native-$version-py3-none-"*"$found.whl") ;;
    *) fail "the wheel is named ${wheel##*/}, and auditwheel says '$found'" ;;
    esac
    [ "$found" = "manylinux_2_17_$(uname -m)" ] || fail "the wheel needs a newer glibc than docs/packages.md says: $found"
}

# Two modules in one process use one lock.
check_beside_redlock_py() {
    clean "$python" -m pip --quiet --disable-pip-version-check install --no-index --find-links "$tools/wheels" redlock-py
    # shellcheck disable=SC2086
    said=$(clean "$python" -I "$ours/programs/beside.py" $ports) || fail "beside redlock-py: $said"
    [ "$said" = 'theirs, ours, theirs' ] || fail "beside redlock-py: $said"
}
