# shellcheck shell=sh disable=SC2034,SC2154
# Read by the scripts in this directory, which set $here: the version in Cargo.toml, and its date.

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
# As in build.rs: until 1.0, a minor version may change the interface. After that, only a major version may.
case $version in
0.*) interface=${version%.*} ;;
*) interface=${version%%.*} ;;
esac
# For reproducible packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -d "$(sed -n 's/^ -- .*>  //p' "$here/packaging/debian/changelog" | head -n 1)" +%s)}
export SOURCE_DATE_EPOCH
# The oldest glibc that packages containing the library support. 2.17 is from 2012, and Rust requires it.
portable_target=$(uname -m)-linux-gnu.2.17
