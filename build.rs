//! Gives the shared library its soname: programs linked with it ask for this name when they start. And
//! has it stay where it is once it is loaded: what it keeps for as long as the process lives (a page,
//! and what std keeps for each thread) would be left behind by every dlclose.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match part("CARGO_CFG_TARGET_OS").as_str() {
        "macos" => link_with(&format!("-Wl,-install_name,@rpath/libredlock.{}.dylib", interface())),
        "windows" => {}
        _ => {
            link_with(&format!("-Wl,-soname,libredlock.so.{}", interface()));
            link_with("-Wl,-z,nodelete");
        }
    }
}

fn link_with(option: &str) {
    println!("cargo:rustc-cdylib-link-arg={option}");
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
