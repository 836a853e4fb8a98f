# The npm package: a prebuilt addon with the library beside it, and what is needed to build it elsewhere.
# shellcheck shell=sh disable=SC2154

make_node() {
    begin node
    (cd "$here/bindings/node" && find package.json index.js index.d.ts addon.js build.js lib src examples -type f) | while read -r file; do
        install -D -m 644 "$here/bindings/node/$file" "$stage/$file"
    done
    # In the project it is private, so that it cannot be published by mistake.
    (cd "$stage" && quietly npm pkg delete private)
    readme node
    prebuilt=$stage/prebuilds/$(node -p 'process.platform + "-" + process.arch')
    mkdir -p "$prebuilt"
    cp "$portable" "$prebuilt/"
    # shellcheck disable=SC2016
    CC="$tools/bin/python -m ziglang cc -target $portable_target" CFLAGS=-s REDLOCK_INCLUDE=$here/include \
        REDLOCK_LIBRARY=$prebuilt/${portable##*/} REDLOCK_RPATH='$ORIGIN' \
        quietly node "$stage/build.js" "$prebuilt/redlock.node"
    (cd "$stage" && npm_config_cache=$scratch/npm quietly npm pack --offline --pack-destination "$scratch")
    rm -f "$output"/redlock-native-*.tgz
    take "$scratch/redlock-native-$version.tgz"
}
