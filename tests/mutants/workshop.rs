//! A copy of the project, where mutants are made, built and tried.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::mutant::Killer;

/// The time that a test may take on average; the run fails after that. On a quiet machine, no test needs a tenth
/// of it.
const LONGEST_TEST: Duration = Duration::from_secs(90);
/// How many seconds a test waits for something. In a broken copy it may never happen.
const PATIENCE_S: &str = "30";
const LONGEST_BUILD: Duration = Duration::from_secs(1200);

pub(crate) struct Workshop {
    tree: PathBuf,
    target: PathBuf,
    log: PathBuf,
}

impl Workshop {
    /// Copies the current project to `folder`. The build results that are there from before are reused.
    pub(crate) fn open(project: &Path, folder: &Path) -> io::Result<Self> {
        let tree = folder.join("tree");
        let files = files_of(project)?;
        for file in &files {
            let (from, to) = (project.join(file), tree.join(file));
            let content = fs::read(from)?;
            // An unchanged file keeps its modification time. Otherwise cargo would rebuild everything.
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().unwrap_or(&tree))?;
                fs::write(to, content)?;
            }
        }
        for file in files_below(&tree)? {
            if !files.contains(&file) {
                fs::remove_file(tree.join(file))?;
            }
        }
        let (target, log) = (folder.join("target"), folder.join("log"));
        Ok(Self { target, log, tree })
    }

    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// The current contents of these files.
    pub(crate) fn contents<'a>(
        &self,
        files: &[&'a str],
    ) -> Result<Vec<(&'a str, Vec<u8>)>, String> {
        let read = |&it: &&'a str| fs::read(self.tree.join(it)).map(|content| (it, content));
        files.iter().map(read).collect::<Result<_, _>>().map_err(|it| it.to_string())
    }

    /// Restores the contents of these files.
    pub(crate) fn mend(&self, files: Vec<(&str, Vec<u8>)>) -> Result<(), String> {
        let mut files = files.into_iter();
        let mended = files.try_for_each(|(it, content)| fs::write(self.tree.join(it), content));
        mended.map_err(|it| it.to_string())
    }

    /// Builds the programs that contain these tests.
    pub(crate) fn build(&self, killers: &[Killer]) -> Result<(), String> {
        let mut programs: Vec<_> = killers.iter().map(|it| &it.program).collect();
        programs.dedup();
        let mut command = self.cargo("test");
        command.arg("--no-run");
        programs.into_iter().for_each(|it| choose(&mut command, it));
        match self.run(command, LONGEST_BUILD) {
            Some(status) if status.success() => Ok(()),
            _ => Err(format!("it does not build:\n{}", self.log())),
        }
    }

    /// Runs these tests, which must be built. Returns the tests that did not pass.
    pub(crate) fn failures<'a>(&self, killers: &'a [Killer]) -> Result<Vec<&'a Killer>, String> {
        let mut failures = Vec::new();
        for of_one in killers.chunk_by(|a, b| a.program == b.program) {
            let mut command = self.cargo("test");
            choose(&mut command, &of_one[0].program);
            command.env("REDLOCK_TEST_PATIENCE", PATIENCE_S);
            command.args(["--", "--exact"]).args(of_one.iter().map(|it| &it.test));
            let count = u32::try_from(of_one.len()).unwrap_or(u32::MAX);
            let ended = self.run(command, LONGEST_TEST * count);
            let log = self.log();
            if !log.contains(&format!("\nrunning {count} test")) {
                let is_missing = |it: &&Killer| !log.contains(&format!("\ntest {} ...", it.test));
                let missing: Vec<_> = of_one.iter().filter(is_missing).collect();
                return Err(format!("these are not run: {missing:?}\n{log}"));
            }
            let has_passed = |it: &&Killer| log.contains(&format!("\ntest {} ... ok\n", it.test));
            let failed = of_one.iter().filter(|it| !has_passed(it)).count();
            if ended.is_some_and(|it| it.success()) != (failed == 0) {
                return Err(format!("it is not clear what failed:\n{log}"));
            }
            failures.extend(of_one.iter().filter(|it| !has_passed(it)));
        }
        Ok(failures)
    }

    fn cargo(&self, what: &str) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // Nobody debugs the copy, and it links faster without debug information.
        command.args([what, "--offline", "--config", "profile.dev.debug=false", "--target-dir"]);
        // The command `redlock` is a package of its own, and has tests, too. Both packages are always chosen.
        // Otherwise the library would be rebuilt for each choice.
        command.arg(&self.target).arg("--workspace").current_dir(&self.tree);
        command
    }

    /// Runs a command and the processes that it starts, and writes their output to the log. Kills them and
    /// returns `None` if the command does not end in time.
    fn run(&self, mut command: Command, longest: Duration) -> Option<ExitStatus> {
        let log = File::create(&self.log).expect("a log can be made");
        let copy = log.try_clone().expect("descriptors can be had");
        command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
        let mut child = command.spawn().expect("cargo can be run");
        let group = child.id();
        let (sender, ended) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let _ = sender.send(child.wait().expect("it can be waited for"));
        });
        let status = ended.recv_timeout(longest).ok();
        if status.is_none() {
            let group = format!("-{group}");
            let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
            assert!(killed.is_ok_and(|it| it.success()), "it cannot be ended");
        }
        waiting.join().expect("it only waits");
        status
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn choose(command: &mut Command, program: &str) {
    match program {
        "lib" => command.arg("--lib"),
        program => command.args(["--test", program]),
    };
}

/// The files of the project that git tracks, and new files that it does not ignore.
fn files_of(project: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = list.current_dir(project).stderr(Stdio::inherit()).output()?;
    let names = String::from_utf8_lossy(&list.stdout).into_owned();
    let names = names.split_terminator('\0').map(PathBuf::from);
    let files: BTreeSet<_> = names.filter(|it| project.join(it).is_file()).collect();
    match files.is_empty() {
        true => Err(io::Error::other("git knows no files of the project")),
        false => Ok(files),
    }
}

/// All files below `tree`, with their paths relative to it.
fn files_below(tree: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match path.strip_prefix(tree) {
                _ if path.is_dir() => folders.push(path),
                Ok(name) => found.push(name.to_owned()),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}
