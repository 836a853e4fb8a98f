//! The C compiler, and related tools.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::directory::Directory;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn header() -> PathBuf {
    root().join("include/redlock.h")
}

/// The compiler's output for the header with these options. They must make it print something.
#[track_caller]
pub(crate) fn reads_header(options: &[&str]) -> String {
    let mut command = compiler();
    words(command.args(["-x", "c", "-std=c11"]).args(options).arg(header()))
}

/// Compiles C source text into a shared library with debug information.
#[track_caller]
pub(crate) fn makes_library(text: &str, soname: &str, library: &Path) {
    const SOURCE: &str = "interface.c";
    let directory = Directory::new();
    fs::write(directory.join(SOURCE), text).expect("it can be written");
    let mut command = compiler();
    // The source is named without a path, because libabigail keeps the name.
    command.current_dir(directory.path());
    command.args(["-std=c11", "-g", "-shared", "-fPIC", "-I"]).arg(root().join("include"));
    command.arg(format!("-Wl,-soname,{soname}")).arg("-o").arg(library);
    words(command.arg(SOURCE));
}

#[track_caller]
pub(crate) fn accepts(options: &[&str], text: &str) {
    let directory = Directory::new();
    let source = PathBuf::from(directory.join("claim"));
    fs::write(&source, text).expect("it can be written");
    let mut command = compiler();
    command.args(options).args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I"]);
    words(command.arg(root().join("include")).arg(source));
}

/// The output of a tool for a file.
#[track_caller]
pub(crate) fn output(tool: &str, arguments: &[&str], file: &Path) -> String {
    words(Command::new(tool).args(arguments).arg(file))
}

fn compiler() -> Command {
    Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
}

/// The command's output. Panics unless the command succeeds.
#[track_caller]
fn words(command: &mut Command) -> String {
    let (stdout, result) = (run(command), command.get_program().to_owned());
    assert!(stdout.status.success(), "{result:?}: {}", String::from_utf8_lossy(&stdout.stderr));
    String::from_utf8(stdout.stdout).expect("names are UTF-8")
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    let name: &OsStr = command.get_program();
    let name = name.to_string_lossy().into_owned();
    command.output().unwrap_or_else(|error| panic!("{name}: {error}"))
}
