# shellcheck shell=sh disable=SC2034,SC2154
# To be read by the scripts beside it, which set $here: what Cargo.toml says of the version, and when it was.

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
# As build.rs: until 1.0 a minor version may change the interface, from then on only a major one.
case $version in
0.*) interface=${version%.*} ;;
*) interface=${version%%.*} ;;
esac
# For packages that are the same byte by byte.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -d "$(sed -n 's/^ -- .*>  //p' "$here/packaging/debian/changelog" | head -n 1)" +%s)}
export SOURCE_DATE_EPOCH
# The oldest glibc that packages with the library in them are for. 2.17 is from 2012, and Rust asks for it.
portable_target=$(uname -m)-linux-gnu.2.17
