//! Gives the shared library its soname, the name that programs linked with it ask for when they start. Also makes
//! the library stay loaded after dlclose. It keeps some memory for as long as the process lives: a page, and what
//! std keeps for each thread. Every dlclose would leak that memory.

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

/// Until 1.0, a minor version may change the interface. After that, only a major version may.
fn interface() -> String {
    match part("CARGO_PKG_VERSION_MAJOR").as_str() {
        "0" => format!("0.{}", part("CARGO_PKG_VERSION_MINOR")),
        major => major.to_owned(),
    }
}

fn part(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
