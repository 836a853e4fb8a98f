# The gem, for one platform. It is used by `require "redlock/native"`, because the gem redlock has a file redlock.rb.
# shellcheck shell=sh disable=SC2154

make_ruby() {
    begin ruby
    cp "$here/bindings/ruby/redlock-native.gemspec" "$here/Cargo.toml" "$stage/"
    readme ruby
    mkdir "$stage/lib"
    cp -R "$here/bindings/ruby/lib/redlock" "$stage/lib/"
    cp "$portable" "$stage/lib/redlock/"
    (cd "$stage" && quietly gem build --strict redlock-native.gemspec)
    rm -f "$output"/redlock-native-*.gem
    take "$(echo "$stage"/*.gem)"
}
