# The wheel: for any Python 3, and any Linux with a glibc that auditwheel finds new enough for the library.
# shellcheck shell=sh disable=SC2154

make_python() {
    begin python
    cp "$here/bindings/python/pyproject.toml" "$here/bindings/python/wheel_tag.py" "$here/Cargo.toml" "$stage/"
    readme python
    mkdir "$stage/redlock" "$stage/built"
    cp "$here/bindings/python/redlock"/*.py "$here/bindings/python/redlock/py.typed" "$portable" "$stage/redlock/"
    quietly "$tools/bin/python" -m pip --disable-pip-version-check wheel --no-deps --no-index --no-build-isolation \
        --wheel-dir "$stage/built" "$stage"
    # auditwheel names the wheel after the oldest glibc that has everything that the library needs.
    PATH=$tools/bin:$PATH quietly "$tools/bin/auditwheel" repair --only-plat --wheel-dir "$stage/named" "$stage/built"/*.whl
    rm -f "$output"/redlock_native-*.whl
    take "$(echo "$stage/named"/*.whl)"
}
