//! Every stated version is that of Cargo.toml. Every stated interface version is the beginning of it.
//! tests/pure/exports.rs checks the header and the library themselves.

use std::fs;
use std::path::Path;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the version first stands in a file: the text before it and after it.
const VERSIONS: [(&str, &str, &str); 10] = [
    ("Cargo.lock", "name = \"redlock-core\"\nversion = \"", "\""),
    ("Cargo.lock", "name = \"redlock-cli\"\nversion = \"", "\""),
    ("tool/Cargo.toml", "name = \"redlock-cli\"\nversion = \"", "\""),
    ("tool/Cargo.toml", "path = \"..\", version = \"", "\""),
    ("CHANGELOG.md", "\n## ", " "),
    ("bindings/node/package.json", "\"version\": \"", "\""),
    ("packaging/cmake/redlock-config-version.cmake", "set(PACKAGE_VERSION \"", "\""),
    ("packaging/debian/changelog", "redlock (", "-"),
    ("man/redlock.7", "\"redlock ", "\""),
    ("tool/redlock.1", "\"redlock ", "\""),
];

/// Where the interface version is stated, which the library's version must begin with.
const INTERFACES: [(&str, &str, &str); 18] = [
    ("abi/redlock.txt", "library libredlock.so.", "\n"),
    ("bindings/go/version.go", "interfaceVersion = \"", "\""),
    ("bindings/node/src/redlock.c", "#define INTERFACE \"", ".\""),
    ("bindings/python/redlock/_library.py", "_INTERFACE = \"", "\""),
    ("bindings/python/redlock/_library.py", "libredlock.so.", "\""),
    ("bindings/ruby/lib/redlock/native/library.rb", "INTERFACE = \"", "\""),
    ("bindings/ruby/lib/redlock/native/library.rb", "libredlock.so.", " "),
    ("docs/c.md", "libredlock.so.", "`"),
    ("docs/install.md", "libredlock.so.", "`"),
    ("docs/install.md", "find_package(redlock ", " "),
    ("docs/node.md", "libredlock.so.", ":"),
    ("docs/packages.md", "`libredlock", "`"),
    ("docs/troubleshooting.md", "libredlock.so.", ":"),
    ("docs/zh-CN/c.md", "libredlock.so.", "`"),
    ("docs/zh-CN/install.md", "libredlock.so.", "`"),
    ("docs/zh-CN/install.md", "find_package(redlock ", " "),
    ("docs/zh-CN/troubleshooting.md", "libredlock.so.", ":"),
    ("include/redlock.hpp", "#define REDLOCK_HPP_FOR \"", "\""),
];

/// Files that install something or make a package. They read the version from Cargo.toml and contain none
/// themselves.
const ASKING: [&str; 6] = [
    "packaging/install.sh",
    "packaging/deb.sh",
    "packaging/test-install/common.sh",
    "packaging/version.sh",
    "bindings/python/pyproject.toml",
    "bindings/ruby/redlock-native.gemspec",
];

/// These get the version from packaging/version.sh. The first and the last file read that script.
const MAKING: [&str; 7] = [
    "packaging/packages.sh",
    "packaging/packages/python.sh",
    "packaging/packages/ruby.sh",
    "packaging/packages/node.sh",
    "packaging/packages/go.sh",
    "packaging/packages/rust.sh",
    "packaging/portable.sh",
];

/// Where a page shows a package with its version: the text before it and after it, at every occurrence.
const SHOWN: [(&str, &str, &str); 5] = [
    ("bindings/go/README.md", "redlock.example/redlock@v", "\n"),
    ("docs/go.md", "redlock.example/redlock@v", " "),
    ("docs/zh-CN/go.md", "redlock.example/redlock@v", " "),
    ("docs/packages.md", "redlock.example/redlock@v", "\n"),
    ("docs/packages.md", "redlock-core-", ".crate"),
];

#[test]
fn the_version_is_the_same_everywhere() {
    for (path, before, after) in VERSIONS {
        assert_eq!(told(path, before, after), VERSION, "{path}");
    }
    let pages = fs::read_dir(root().join("man")).expect("a manual").map(|it| it.expect("a page"));
    for page in pages.map(|it| it.path().display().to_string()) {
        assert_eq!(told(&page, "\"redlock ", "\""), VERSION, "{page}");
    }
}

#[test]
fn pages_show_the_current_version() {
    for (path, before, after) in SHOWN {
        let text = read(path);
        let told = text.split(before).skip(1).map(|it| it.split(after).next().expect("a piece"));
        let told: Vec<_> = told.collect();
        assert!(!told.is_empty(), "{path} tells nothing after {before:?}");
        told.into_iter().for_each(|it| assert_eq!(it, VERSION, "{path}"));
    }
}

#[test]
fn the_interface_version_is_the_same_everywhere() {
    // Until 1.0, each minor version may change the interface.
    let numbers: Vec<_> = VERSION.split('.').collect();
    let interface = numbers[..if numbers[0] == "0" { 2 } else { 1 }].join(".");
    for (path, before, after) in INTERFACES {
        assert_eq!(told(path, before, after), interface, "{path}");
    }
}

#[test]
fn scripts_have_no_version_of_their_own() {
    for path in ASKING {
        let text = read(path);
        let code = text.lines().filter(|it| !it.trim_start().starts_with('#'));
        assert!(code.clone().any(|it| it.contains("Cargo.toml")), "{path}");
        assert!(!code.into_iter().any(|it| it.contains(VERSION)), "{path} has a version");
    }
    for path in MAKING {
        assert!(!read(path).contains(VERSION), "{path} has a version");
    }
    for path in [MAKING[0], MAKING[6]] {
        assert!(read(path).contains(". \"$here/packaging/version.sh\""), "{path}");
    }
    let template = read("packaging/redlock.pc.in");
    assert!(template.lines().any(|it| it == "Version: @VERSION@"), "packaging/redlock.pc.in");
}

fn told(path: &str, before: &str, after: &str) -> String {
    let text = read(path);
    let rest = text.split_once(before).map(|it| it.1);
    let version = rest.and_then(|it| it.split_once(after)).map(|it| it.0);
    version.unwrap_or_else(|| panic!("{path} tells no version after {before:?}")).to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
