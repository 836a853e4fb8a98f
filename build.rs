//! Gives the shared library its soname: programs linked with it ask for this name when they start.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let name = match part("CARGO_CFG_TARGET_OS").as_str() {
        "macos" => format!("-Wl,-install_name,@rpath/libredlock.{}.dylib", interface()),
        "windows" => return,
        _ => format!("-Wl,-soname,libredlock.so.{}", interface()),
    };
    println!("cargo:rustc-cdylib-link-arg={name}");
}

/// Until 1.0 a minor version may change the interface, from then on only a major one.
fn interface() -> String {
    match part("CARGO_PKG_VERSION_MAJOR").as_str() {
        "0" => format!("0.{}", part("CARGO_PKG_VERSION_MINOR")),
        major => major.to_owned(),
    }
}

fn part(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
