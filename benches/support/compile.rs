//! The bench's own C programs, compiled into a directory below cargo's, where they stay: each can
//! be run by hand as well.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Outcome;
use super::process::go_on;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const WORKERS: [&str; 3] = ["workers.c", "board.c", "measure.c"];

/// Where the programs are, and the library that is measured.
pub(crate) struct Programs {
    directory: PathBuf,
    pub(crate) library: PathBuf,
    /// What stands in the way of the client that uses hiredis, if anything does.
    pub(crate) without_hiredis: Option<String>,
}

impl Programs {
    pub(crate) fn compile() -> Outcome<Self> {
        let library = build_library()?;
        let directory = target_directory()?.join("bench").join("programs");
        fs::create_dir_all(&directory)?;
        let ours = library.to_string_lossy().into_owned();
        let compile = |name: &str, parts: &[&str], more: &[&str]| {
            succeed(compiler(&directory, name, parts).args(more))
        };
        compile("floor", &[&["floor.c", "wire.c"][..], &WORKERS].concat(), &[])?;
        compile("loop", &["loop.c", "wire.c", "measure.c"], &[])?;
        compile("ours", &[&["ours.c"][..], &WORKERS].concat(), &[&ours])?;
        compile("idle", &["idle.c"], &[&ours])?;
        compile("delay", &["delay.c"], &[])?;
        compile("syscalls", &["syscalls.c"], &[])?;
        let mut serial = compiler(&directory, "serial", &[&["serial.c"][..], &WORKERS].concat());
        let serial = succeed(serial.arg("-lhiredis").stderr(Stdio::null()));
        go_on()?;
        let without_hiredis = serial.err().map(|_| "needs hiredis with its headers".to_owned());
        Ok(Self { directory, library, without_hiredis })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Cargo's directory for what is built: this program is <there>/release/deps/lock-….
pub(crate) fn target_directory() -> Outcome<PathBuf> {
    let program = env::current_exe()?;
    let there = program.ancestors().nth(3).ok_or("a bench outside of any target directory")?;
    Ok(there.to_owned())
}

fn compiler(directory: &Path, name: &str, parts: &[&str]) -> Command {
    let sources = Path::new(ROOT).join("benches").join("c");
    let mut command = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    command
        .args(["-std=c11", "-O2", "-pthread", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .arg("-o")
        .arg(directory.join(name))
        .args(parts.iter().map(|part| sources.join(part)));
    command
}

/// Cargo builds nothing where the library is up to date.
fn build_library() -> Outcome<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    succeed(
        Command::new(cargo).args(["build", "--release", "--lib", "--quiet"]).current_dir(ROOT),
    )?;
    let library = target_directory()?.join("release").join("libredlock.so");
    if !library.exists() {
        return Err("the release build left no libredlock.so where this bench was built".into());
    }
    Ok(library)
}

fn succeed(command: &mut Command) -> Outcome<()> {
    let name = command.get_program().display().to_string();
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    go_on()?;
    if !status.success() {
        return Err(format!("{name}: {status}").into());
    }
    Ok(())
}
