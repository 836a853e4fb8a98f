//! Compiles the bench's own programs into a directory below cargo's. They stay there, so each can also be run by
//! hand.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Outcome;
use super::process::go_on;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const WORKERS: [&str; 4] = ["workers.c", "board.c", "crew.c", "measure.c"];

/// The directory of the programs, and the measured library.
pub(crate) struct Programs {
    directory: PathBuf,
    pub(crate) library: PathBuf,
    /// Why the client that uses hiredis cannot be built, if that is so.
    pub(crate) without_hiredis: Option<String>,
    pub(crate) without_go: Option<String>,
    pub(crate) without_node: Option<String>,
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
        for name in ["submitted", "kept", "inflight"] {
            let source = format!("{name}.c");
            compile(name, &[&source, "manager.c", "measure.c"], &[&ours])?;
        }
        for name in ["beside", "connects", "semaphore", "waiter", "woken"] {
            let source = format!("{name}.c");
            compile(name, &[&source, "crew.c", "manager.c", "measure.c"], &[&ours])?;
        }
        compile("polling", &["polling.c", "crew.c", "manager.c", "measure.c", "wire.c"], &[&ours])?;
        compile("delay", &["delay.c"], &[])?;
        compile("syscalls", &["syscalls.c"], &[])?;
        let mut serial = compiler(&directory, "serial", &[&["serial.c"][..], &WORKERS].concat());
        let serial = succeed(serial.arg("-lhiredis").stderr(Stdio::null()));
        go_on()?;
        let without_hiredis = serial.err().map(|_| "needs hiredis with its headers".to_owned());
        let without_go = succeed(&mut go_program(&directory, &library)).err();
        let without_go = without_go.map(|_| "needs go".to_owned());
        let without_node = succeed(&mut node_addon(&directory, &library)).err();
        let without_node = without_node.map(|_| "needs node with its headers".to_owned());
        go_on()?;
        Ok(Self { directory, library, without_hiredis, without_go, without_node })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Cargo's target directory. This program is <there>/release/deps/lock-….
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

/// The program with waiting goroutines. go's caches stay below cargo's directory.
fn go_program(directory: &Path, library: &Path) -> Command {
    let library = library.parent().unwrap_or(library).display();
    let include = Path::new(ROOT).join("include");
    let mut command = Command::new("go");
    command
        .args(["build", "-buildvcs=false", "-o"])
        .arg(directory.join("go-waiters"))
        .arg(".")
        .current_dir(Path::new(ROOT).join("benches/waiters/go"))
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", format!("-I{}", include.display()))
        .env("CGO_LDFLAGS", format!("-L{library}"))
        .env("GOCACHE", directory.join("go-cache"))
        .env("GOPATH", directory.join("go-path"))
        .env("GOPROXY", "off")
        .stderr(Stdio::null());
    command
}

/// The addon through which Node.js calls the library.
fn node_addon(directory: &Path, library: &Path) -> Command {
    let root = Path::new(ROOT);
    let mut command = Command::new("node");
    command
        .arg(root.join("bindings/node/build.js"))
        .arg(directory.join("redlock.node"))
        .env("REDLOCK_INCLUDE", root.join("include"))
        .env("REDLOCK_LIBRARY", library)
        .stderr(Stdio::null());
    command
}

/// Cargo builds nothing if the library is up to date.
fn build_library() -> Outcome<PathBuf> {
    succeed(cargo().args(["build", "--release", "--lib", "--quiet"]))?;
    let library = target_directory()?.join("release").join("libredlock.so");
    if !library.exists() {
        return Err("the release build left no libredlock.so where this bench was built".into());
    }
    Ok(library)
}

/// A cargo command for this project.
pub(crate) fn cargo() -> Command {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(ROOT);
    // Cargo sets variables about itself for this program. Crates that read them would be built once more.
    let is_told = |name: &String| {
        name == "OUT_DIR" || ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it))
    };
    env::vars_os().filter_map(|it| it.0.into_string().ok()).filter(is_told).for_each(|name| {
        command.env_remove(name);
    });
    command
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
