//! The shared library matches the header. It exports exactly the declared functions, has the soname that programs
//! ask for, and gives the same version everywhere.

// Only the names matter here.
#[allow(dead_code)]
#[path = "../live/ffi/declarations.rs"]
mod declarations;
#[allow(dead_code)]
#[path = "../support/directory.rs"]
mod directory;
#[path = "../support/library.rs"]
mod library;

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use directory::Directory;
use redlock::ffi::version::RedLock_Version;

#[test]
fn the_library_exports_exactly_the_header() {
    let declared: BTreeSet<_> = declarations::functions().into_iter().map(|it| it.name).collect();
    let listing = output("nm", &["-D", "--defined-only"]);
    let exported = listing.lines().filter_map(|line| line.split_whitespace().last());
    let exported: BTreeSet<_> = exported.map(str::to_owned).collect();
    assert_eq!(exported, declared);
}

#[test]
fn the_soname_changes_with_the_interface() {
    let dynamic = output("readelf", &["-d", "--wide"]);
    let sonames: Vec<_> = dynamic.lines().filter(|line| line.contains("(SONAME)")).collect();
    assert_eq!(sonames.len(), 1, "{dynamic}");
    assert!(sonames[0].ends_with(&format!("[{}]", library::SONAME)), "{}", sonames[0]);
}

#[test]
fn the_header_and_the_library_have_one_version() {
    let parts = ["MAJOR", "MINOR", "PATCH"].map(|name| version_macro(name).expect("a number"));
    assert_eq!(parts.join("."), env!("CARGO_PKG_VERSION"));
    // SAFETY: the function takes no arguments, and its string is never freed.
    let running = unsafe { CStr::from_ptr(RedLock_Version()) };
    assert_eq!(running.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_header_has_the_version_as_a_string() {
    let directory = Directory::new();
    let source = directory.join("version.c");
    fs::write(&source, "#include \"redlock.h\"\nREDLOCK_VERSION_STRING\n").expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let result = Command::new(compiler).args(["-E", "-P", "-I"]).arg(include).arg(&source).output();
    let text = String::from_utf8(result.expect("there is a C compiler").stdout).expect("UTF-8");
    // The compiler joins adjacent string literals.
    let literals = text.lines().last().unwrap_or_default().replace("\" \"", "");
    assert_eq!(literals.trim(), format!("{:?}", env!("CARGO_PKG_VERSION")));
}

fn version_macro(name: &str) -> Option<String> {
    let start = format!("#define REDLOCK_VERSION_{name} ");
    let header = declarations::header();
    header.lines().find_map(|line| line.strip_prefix(&start)).map(|it| it.trim().to_owned())
}

/// The output of a tool for the shared library.
fn output(tool: &str, arguments: &[&str]) -> String {
    let result = Command::new(tool).args(arguments).arg(library::path()).output();
    let result = result.unwrap_or_else(|error| panic!("{tool}: {error}"));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    String::from_utf8(result.stdout).expect("names are UTF-8")
}
