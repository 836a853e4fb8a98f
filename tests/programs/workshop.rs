//! Where programs are built and run.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::compilers::Compiler;
use crate::library;
use crate::support::directory::Directory;
use crate::support::process::Process;
use crate::support::program::words_of;

/// Nothing here takes so long, even with the compilers of all tests working at once.
const LIMIT: Duration = Duration::from_secs(1200);

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];

/// A directory for build results, deleted with its owner. REDLOCK_TEST_CFLAGS may hold more options. CFLAGS
/// would affect the C code of the crates as well.
pub(crate) struct Workshop {
    directory: Directory,
    number: AtomicU32,
}

/// The result of a program.
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { directory: Directory::new(), number: AtomicU32::new(0) }
    }

    /// Writes a file with this text.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
        fs::write(&path, text).expect("it can be written");
        path
    }

    /// Builds a program as the README says, from sources of the project, or files by their full paths. Any
    /// warning is a failure.
    #[track_caller]
    pub(crate) fn build(&self, compiler: Compiler, sources: &[impl AsRef<Path>]) -> PathBuf {
        self.build_with(compiler, &[], sources)
    }

    /// As [`Workshop::build`], with more options, which come first.
    #[track_caller]
    pub(crate) fn build_with(
        &self,
        compiler: Compiler,
        options: &[&str],
        sources: &[impl AsRef<Path>],
    ) -> PathBuf {
        let (program, run) = self.try_to_build(compiler, options, sources);
        assert!(run.status.success(), "{compiler:?}:\n{}", run.stderr);
        assert_eq!(run.stderr, "", "{compiler:?}");
        self.under_a_tool(program)
    }

    /// The error messages for a program that cannot be built.
    #[track_caller]
    pub(crate) fn fails_to_build(
        &self,
        compiler: Compiler,
        options: &[&str],
        source: &Path,
    ) -> String {
        let (_, run) = self.try_to_build(compiler, options, &[source]);
        assert!(!run.status.success(), "{compiler:?} builds it");
        run.stderr
    }

    fn try_to_build(
        &self,
        compiler: Compiler,
        options: &[&str],
        sources: &[impl AsRef<Path>],
    ) -> (PathBuf, Run) {
        let (program, library) = (self.fresh("program"), library::directory());
        let mut command = self.compile(compiler, options, sources);
        command.arg("-o").arg(&program).arg("-L").arg(library).args(["-lredlock", "-pthread"]);
        command.args(other_libraries(sources));
        let run = self.run(command.arg(format!("-Wl,-rpath,{}", library.display())));
        (program, run)
    }

    /// REDLOCK_TEST_UNDER may name a tool to run programs under. Then a script does that.
    fn under_a_tool(&self, program: PathBuf) -> PathBuf {
        let tool = words_of("REDLOCK_TEST_UNDER").join(" ");
        if tool.is_empty() {
            return program;
        }
        let script = self.fresh("script");
        let lines = format!("#!/bin/sh\nexec {tool} '{}' \"$@\"\n", program.display());
        fs::write(&script, lines).expect("it can be written");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
        script
    }

    /// Whether it compiles, and the error messages if it does not.
    #[track_caller]
    pub(crate) fn check(
        &self,
        compiler: Compiler,
        source: impl AsRef<Path>,
        options: &[&str],
    ) -> Result<(), String> {
        let mut command = self.compile(compiler, options, &[source]);
        let run = self.run(command.arg("-fsyntax-only"));
        if run.status.success() { Ok(()) } else { Err(run.stderr) }
    }

    fn compile(
        &self,
        compiler: Compiler,
        options: &[&str],
        sources: &[impl AsRef<Path>],
    ) -> Command {
        let root = library::root();
        let mut command = Command::new(compiler.program);
        command.arg(format!("-std={}", compiler.standard)).args(STRICT).args(["-O1", "-g1"]);
        command
            .args(options)
            .args(words_of("REDLOCK_TEST_CFLAGS"))
            .arg("-I")
            .arg(root.join("include"));
        command.args(sources.iter().map(|source| root.join(source)));
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, command: &mut Command) -> Run {
        let (stdout, stderr) = (self.fresh("stdout"), self.fresh("stderr"));
        command.stdout(create(&stdout)).stderr(create(&stderr));
        let name = command.get_program().to_owned();
        let process = Process::start(command).unwrap_or_else(|error| cannot_run(&name, &error));
        let Some(status) = wait(&process, LIMIT) else {
            // Interpreters print where their threads are before this ends them.
            process.abort();
            let _ = wait(&process, Duration::from_secs(10));
            let said = format!("{}\n{}", read(&stdout), read(&stderr));
            panic!("{} does not end:\n{said}", name.display());
        };
        Run { status, stdout: read(&stdout), stderr: read(&stderr) }
    }

    /// Runs a program that must succeed without any complaint.
    #[track_caller]
    pub(crate) fn succeed(&self, command: &mut Command) -> Run {
        let run = self.run(command);
        let said = format!("{command:?}:\n{}\n{}", run.stdout, run.stderr);
        assert!(run.status.success(), "{:?} of {said}", run.status);
        assert!(!holds_token(&said), "a token was printed by {said}");
        run
    }

    /// A path that is not used yet.
    pub(crate) fn fresh(&self, what: &str) -> PathBuf {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.directory.path().join(format!("{what}-{number}"))
    }
}

/// The other libraries of an example, as the example says itself.
fn other_libraries(sources: &[impl AsRef<Path>]) -> &'static [&'static str] {
    let is_of_libuv = |source: &Path| source.ends_with("c-examples/libuv.c");
    if sources.iter().any(|it| is_of_libuv(it.as_ref())) { &["-luv"] } else { &[] }
}

/// Its exit status; nothing if it takes longer.
fn wait(process: &Process, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = process.status() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

fn cannot_run(name: &OsStr, error: &io::Error) -> ! {
    panic!("{} is needed for this test: {error}", name.display())
}

fn create(path: &Path) -> File {
    File::create(path).expect("a file can be made")
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("it was made")).into_owned()
}

fn holds_token(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    text.as_bytes().windows(40).any(|bytes| bytes.iter().all(is_digit))
}
