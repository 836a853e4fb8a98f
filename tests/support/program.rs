//! C programs that use the library, run as separate processes.
//!
//! A program gets its servers as arguments. It talks with the test over its standard input, which is a
//! socket: one word per line. It prints nothing. Any text on its standard output or error is either a
//! failed check, or text that the library should not have printed.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use super::directory::Directory;
use super::{library, process};

/// More than any program takes, also under a tool that makes it slow.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A program, compiled by REDLOCK_TEST_CC, or CC, with the options of REDLOCK_TEST_CFLAGS. (CFLAGS would
/// also apply to the C code of the crates.) REDLOCK_TEST_UNDER may name a tool to run it under, such as
/// "valgrind -q --error-exitcode=9".
pub(crate) struct Program {
    directory: Arc<Directory>,
    is_setgid: bool,
}

impl Program {
    /// Compiles `tests/programs/c/{name}.c`.
    pub(crate) fn compile(name: &str) -> Self {
        Self::compile_with(name, &library::path())
    }

    /// The same, for a library other than the one under test.
    pub(crate) fn compile_with(name: &str, library: &Path) -> Self {
        let directory = Arc::new(Directory::new());
        let path = directory.path();
        for link in ["libredlock.so", library::SONAME] {
            symlink(library, path.join(link)).expect("a link can be made");
        }
        let linking = [path_option("-L", path), path_option("-Wl,-rpath,", path)];
        compile(
            name,
            linking.iter().map(String::as_str).chain(["-Wl,--as-needed", "-lredlock"]),
            &program(&directory),
        );
        Self { directory, is_setgid: false }
    }

    /// Gives it the rights of another group, whichever user starts it. So the system tells it not to trust
    /// its environment. No tool runs such a program.
    pub(crate) fn make_setgid(mut self) -> Self {
        let path = program(&self.directory);
        let group = another_group().unwrap_or_else(|| {
            panic!(
                "this test makes a program setgid: run it as root, or as a user of a second group"
            )
        });
        chown(&path, None, Some(group)).expect("a file of ours can be given to a group of ours");
        // This must come after chown, because a file that changes its owner loses the bit.
        fs::set_permissions(&path, Permissions::from_mode(0o2755)).expect("it is ours");
        self.is_setgid = true;
        self
    }

    /// Starts it with these arguments.
    pub(crate) fn start<A: AsRef<str>>(&self, arguments: &[A]) -> Running {
        self.start_in(&[], arguments)
    }

    /// Starts it with these arguments and these environment variables.
    pub(crate) fn start_in<A: AsRef<str>>(
        &self,
        environment: &[(&'static str, String)],
        arguments: &[A],
    ) -> Running {
        let under = if self.is_setgid { Vec::new() } else { words_of("REDLOCK_TEST_UNDER") };
        self.start_under(&under, environment, arguments)
    }

    /// The same, under a tool: its words, such as "valgrind" and "-q". Without words there is no tool.
    pub(crate) fn start_under<A: AsRef<str>>(
        &self,
        tool: &[String],
        environment: &[(&'static str, String)],
        arguments: &[A],
    ) -> Running {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.set_read_timeout(Some(PATIENCE)).expect("a limit can be set");
        // A file, not a pipe: the program never waits for a reader of its output.
        let printed = self.directory.path().join("printed");
        let printed = File::options().read(true).append(true).create(true).open(printed);
        let printed = printed.expect("a file can be made");
        printed.set_len(0).expect("it can be emptied");
        let program = [program(&self.directory)];
        let mut words = tool.iter().chain(&program);
        let mut command = Command::new(words.next().expect("at least the program"));
        command.args(words);
        command
            .args(arguments.iter().map(AsRef::as_ref))
            // Otherwise memory that the C library caches for a thread counts as in use.
            .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            .stdout(printed.try_clone().expect("a descriptor can be had"))
            .stderr(printed.try_clone().expect("a descriptor can be had"));
        die_with_test(&mut command);
        let child = command.spawn().expect("the program can be run");
        let directory = Arc::clone(&self.directory);
        Running { child: Some(child), talk: BufReader::new(ours), printed, _directory: directory }
    }

    /// Runs it from beginning to end.
    pub(crate) fn run<A: AsRef<str>>(&self, arguments: &[A]) {
        self.start(arguments).ends_well();
    }
}

/// A running program. It ends with its owner.
pub(crate) struct Running {
    child: Option<Child>,
    talk: BufReader<UnixStream>,
    printed: File,
    /// It needs the library for as long as it runs.
    _directory: Arc<Directory>,
}

impl Running {
    /// Checks that the program still runs.
    #[track_caller]
    pub(crate) fn must_run(&mut self) {
        let child = self.child.as_mut().expect("it was not waited for");
        if child.try_wait().expect("it is a child").is_some() {
            panic!("it has ended: {}", self.end());
        }
    }

    /// Waits for the program to say this word.
    #[track_caller]
    pub(crate) fn hears(&mut self, word: &str) {
        let heard = self.hears_a_word();
        if heard != word {
            let said = self.end();
            panic!("{word:?} was expected, but it was {heard:?}: {said}");
        }
    }

    /// The program's next word; empty if it ends.
    pub(crate) fn hears_a_word(&mut self) -> String {
        let mut line = String::new();
        self.talk.read_line(&mut line).expect("the program talks in time");
        line.trim_end().to_owned()
    }

    /// Sends the program a word, so that it continues.
    #[track_caller]
    pub(crate) fn says(&mut self, word: &str) {
        if self.talk.get_mut().write_all(format!("{word}\n").as_bytes()).is_err() {
            panic!("it listens no more: {}", self.end());
        }
    }

    /// Stops it, as Ctrl-Z does. Returns when it has stopped.
    pub(crate) fn freeze(&self) {
        process::send(self.id(), libc::SIGSTOP);
        self.await_stop();
    }

    /// Returns when it has stopped, whoever stopped it.
    pub(crate) fn await_stop(&self) {
        process::await_stop(self.id());
    }

    /// Continues it after a stop.
    pub(crate) fn resume(&self) {
        process::send(self.id(), libc::SIGCONT);
    }

    fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Waits for its end. It must succeed and print nothing.
    #[track_caller]
    pub(crate) fn ends_well(mut self) {
        let rest = self.hears_a_word();
        let said = self.end();
        assert_eq!((&*rest, &*said), ("", ""), "it had more to say, or failed");
    }

    /// Waits for its end, with any status. It must print nothing.
    #[track_caller]
    pub(crate) fn ends(mut self) -> ExitStatus {
        let rest = self.hears_a_word();
        let mut child = self.child.take().expect("it runs");
        let status = child.wait().expect("it can be waited for");
        let said = self.has_printed();
        assert_eq!((&*rest, &*said), ("", ""), "it had more to say, or failed: {status}");
        status
    }

    /// Waits for its end. Returns its output and, if it failed, its status.
    fn end(&mut self) -> String {
        // Nobody answers the program any more.
        let _ = self.talk.get_ref().shutdown(Shutdown::Both);
        let Some(mut child) = self.child.take() else { return String::new() };
        let status = child.wait().expect("it can be waited for");
        let mut said = self.has_printed();
        if !status.success() {
            said += &format!(" ({status})");
        }
        said
    }

    fn has_printed(&mut self) -> String {
        let mut said = Vec::new();
        self.printed.rewind().expect("a file can be rewound");
        self.printed.read_to_end(&mut said).expect("a file can be read");
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Compiles `tests/programs/c/{name}.c`.
pub(crate) fn compile<'a>(name: &str, options: impl IntoIterator<Item = &'a str>, output: &str) {
    // The tests of the command have its package around them, one folder further down.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut places = package.ancestors();
    let root = places.find(|it| it.join("tests/programs/c").exists()).expect("the project");
    let named = env::var("REDLOCK_TEST_CC").or_else(|_| env::var("CC"));
    let mut compiler = Command::new(named.unwrap_or_else(|_| "cc".to_owned()));
    compiler
        .args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
        .args(words_of("REDLOCK_TEST_CFLAGS"))
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/programs/c").join(name).with_extension("c"))
        .args(options)
        .args(["-o", output]);
    let result = compiler.output().expect("there is a C compiler");
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}

fn program(directory: &Directory) -> String {
    directory.join("program")
}

/// A group to which this process may give files, and to which it does not belong yet.
fn another_group() -> Option<u32> {
    // SAFETY: these functions take no arguments, touch no memory and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if user == 0 {
        return Some(group + 1);
    }
    let mut groups = [0; 1024];
    // SAFETY: the buffer has this size.
    let count = unsafe { libc::getgroups(1024, groups.as_mut_ptr()) };
    let count = usize::try_from(count).unwrap_or(0);
    groups[..count].iter().copied().find(|&it| it != group)
}

fn path_option(option: &str, path: &Path) -> String {
    format!("{option}{}", path.display())
}

/// The words in an environment variable.
pub(crate) fn words_of(variable: &str) -> Vec<String> {
    let value = env::var(variable).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

/// The thread that starts the program waits for it, so the end of that thread is the end of the test.
fn die_with_test(command: &mut Command) {
    let arrange = || {
        // SAFETY: no memory is involved.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(arrange) };
}
