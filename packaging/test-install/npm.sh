# The npm package, in a project that has nothing else: with its prebuilt addon, and with one that is built.
# Runs the example in docs/packages.md.
# shellcheck shell=sh disable=SC2154

check_npm() {
    start_servers
    tarball=$(package node)
    project=$scratch/npm
    mkdir "$project"
    echo '{ "private": true }' > "$project/package.json"
    in_project npm install "$tarball" > "$scratch/said" 2>&1 || fail "npm install: $(cat "$scratch/said")"
    module=$project/node_modules/redlock-native
    [ ! -e "$module/build" ] || fail "an addon is built where there is one"
    is_whole "$module"
    check_node_example
    lies_below "$module" "$(in_project node -e '
require("redlock-native");
const maps = require("node:fs").readFileSync("/proc/self/maps", "utf8").split(/\s+/);
console.log(...new Set(maps.filter((it) => it.includes("libredlock"))));')"
    [ "$(in_project node -p 'require("redlock-native/package.json").version')" = "$version" ] || fail "the npm package has another version"
    check_build_without_prebuilt
}

check_node_example() {
    shown js > "$project/example.js"
    locks in_project node --trace-warnings example.js
}

# As on a system for which the package has no prebuilt addon.
check_build_without_prebuilt() {
    echo 'not for this system' > "$(find "$module/prebuilds" -name redlock.node)"
    ! in_project npm rebuild > "$scratch/said" 2>&1 || fail "the addon is built without the library"
    grep -q 'there is no redlock.h.*REDLOCK_INCLUDE' "$scratch/said" || fail "npm rebuild says: $(cat "$scratch/said")"
    in_project REDLOCK_INCLUDE="$(installed)/include" REDLOCK_LIBRARY="$(installed)/lib/$linked" npm rebuild > "$scratch/said" 2>&1 \
        || fail "npm rebuild: $(cat "$scratch/said")"
    [ -f "$module/build/redlock.node" ] || fail "npm rebuild builds no addon"
    check_node_example
}

# npm does not use the network, and pkg-config finds nothing that is installed on this system.
in_project() {
    (cd "$project" && clean npm_config_userconfig=/dev/null npm_config_cache="$scratch/npm-cache" npm_config_offline=true \
        npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false PKG_CONFIG_LIBDIR=/none "$@")
}
