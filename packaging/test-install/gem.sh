# The gem, in a GEM_HOME that has nothing else.
# Runs the example in docs/packages.md.
# shellcheck shell=sh disable=SC2154

check_gem() {
    start_servers
    gem=$(package ruby)
    gems=$scratch/gems
    # Ruby still finds its own gems.
    with_gems gem install --local --no-document --quiet "$gem" > "$scratch/said" 2>&1 || fail "gem install: $(cat "$scratch/said")"
    is_whole "$gems"
    shown ruby > "$scratch/example.rb"
    locks with_gems ruby -W "$scratch/example.rb"
    lies_below "$gems" "$(with_gems ruby -e '
require "redlock/native"
puts File.read("/proc/self/maps").split.grep(/libredlock/).uniq')"
    [ "$(with_gems ruby -e 'gem "redlock-native"; puts Gem.loaded_specs["redlock-native"].version')" = "$version" ] \
        || fail "the gem has another version"
}

with_gems() {
    (cd "$scratch" && clean GEM_HOME="$gems" GEM_PATH="$gems" "$@")
}
