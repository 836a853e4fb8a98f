//! The lists of broken copies: how to read one, and how to make a copy.

use std::fs;
use std::path::Path;

/// One way to break the library, and the tests that must notice it.
pub(crate) struct Mutant {
    pub(crate) id: String,
    /// Describes the fault.
    pub(crate) what: String,
    /// Each of these tests must fail.
    pub(crate) killers: Vec<Killer>,
    edits: Vec<Edit>,
}

/// A test: its program, and its full name in that program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Killer {
    /// The name for `cargo test --test`, or `lib` for the tests in the sources.
    pub(crate) program: String,
    pub(crate) test: String,
}

/// A change of whole lines in one file.
#[derive(Default)]
struct Edit {
    file: String,
    old: String,
    new: String,
}

/// Reads a list. It consists of paragraphs. This one is a mutant with two killers:
///
/// ```text
/// M01 half of the servers are a quorum
/// killed by lib: quorum::ballot::tests::a_quorum_is_more_than_half
/// killed by played: scenarios::retry::an_impossible_quorum_is_not_waited_for
/// --- src/protocol/quorum/ballot.rs
///      pub fn quorum(&self) -> u32 {
/// -        self.servers / 2 + 1
/// +        self.servers / 2
/// ```
///
/// After the name of the file follow lines as in `diff -u`, without line numbers: lines that stay, lines that are
/// removed (-), and lines that are added (+). The lines that stay and the removed lines must be in the file
/// exactly once, as they are. A paragraph may have more such parts. Lines that begin with # are remarks.
pub(crate) fn read(list: &str) -> Result<Vec<Mutant>, String> {
    let paragraphs = list.split("\n\n").map(|it| {
        let is_remark = |it: &&str| it.starts_with('#') || it.is_empty();
        it.lines().filter(|it| !is_remark(it)).collect::<Vec<_>>()
    });
    let mutants = paragraphs.filter(|it| !it.is_empty()).map(|it| Mutant::read(&it));
    let mutants: Vec<_> = mutants.collect::<Result<_, _>>()?;
    for (index, mutant) in mutants.iter().enumerate() {
        if mutants[..index].iter().any(|it| it.id == mutant.id) {
            return Err(format!("{}: there are two of it", mutant.id));
        }
    }
    Ok(mutants)
}

impl Mutant {
    fn read(lines: &[&str]) -> Result<Self, String> {
        let (id, what) = lines[0].split_once(' ').unwrap_or((lines[0], ""));
        let fault = |fault: String| Err(format!("{id}: {fault}"));
        let mut mutant =
            Self { id: id.to_owned(), what: what.to_owned(), killers: vec![], edits: vec![] };
        for line in &lines[1..] {
            if let Some(killer) = line.strip_prefix("killed by ") {
                let Some((program, test)) = killer.split_once(": ") else {
                    return fault(format!("no program and test: {line}"));
                };
                mutant.killers.push(Killer { program: program.into(), test: test.into() });
            } else if let Some(file) = line.strip_prefix("--- ") {
                mutant.edits.push(Edit { file: file.to_owned(), ..Edit::default() });
            } else if mutant.edits.last_mut().is_none_or(|it| it.add(line).is_none()) {
                return fault(format!("it makes no sense: {line}"));
            }
        }
        if what.is_empty() || mutant.killers.is_empty() || mutant.edits.is_empty() {
            return fault("words, a killer or the change are missing".to_owned());
        }
        match mutant.edits.iter().all(|it| it.old != it.new && !it.old.is_empty()) {
            true => Ok(mutant),
            false => fault("something is not changed, or has no place".to_owned()),
        }
    }

    /// Breaks the copy of the project in `tree`.
    pub(crate) fn apply(&self, tree: &Path) -> Result<(), String> {
        self.edits.iter().try_for_each(|it| {
            let broken = it.broken(tree)?;
            fs::write(tree.join(&it.file), broken).map_err(|fault| format!("{}: {fault}", it.file))
        })
    }

    /// The files that the mutant changes.
    pub(crate) fn files(&self) -> Vec<&str> {
        self.edits.iter().map(|it| &*it.file).collect()
    }

    /// Checks that the mutant can be made from the project in `tree`.
    pub(crate) fn check(&self, tree: &Path) -> Result<(), String> {
        self.edits.iter().try_for_each(|it| it.broken(tree).map(drop))?;
        self.killers.iter().try_for_each(|it| it.check(tree))
    }
}

impl Edit {
    /// Takes one more line. Returns `None` if the line is of no known kind.
    fn add(&mut self, line: &str) -> Option<()> {
        let (kind, text) = line.split_at_checked(1)?;
        let line = format!("{text}\n");
        match kind {
            " " => {
                self.old += &line;
                self.new += &line;
            }
            "-" => self.old += &line,
            "+" => self.new += &line,
            _ => return None,
        }
        Some(())
    }

    /// The content of the file in `tree` with the change applied.
    fn broken(&self, tree: &Path) -> Result<String, String> {
        let Self { file, old, new } = self;
        let code = fs::read_to_string(tree.join(file)).map_err(|it| format!("{file}: {it}"))?;
        // Only whole lines match.
        let old_lines = format!("\n{old}");
        match code.matches(&old_lines).count() {
            1 => Ok(code.replacen(&old_lines, &format!("\n{new}"), 1)),
            0 => Err(format!("{file} has not these lines:\n{old}")),
            count => Err(format!("{file} has these lines {count} times:\n{old}")),
        }
    }
}

/// The folders below tests that contain test programs.
const FOLDERS: [&str; 4] = ["", "pure", "played", "live"];

impl Killer {
    /// Checks that the test exists, as far as this can be seen without compiling it.
    fn check(&self, tree: &Path) -> Result<(), String> {
        let folders = match &*self.program {
            "lib" => vec![tree.join("src")],
            program => FOLDERS.map(|it| tree.join("tests").join(it).join(program)).to_vec(),
        };
        let mut path: Vec<_> = self.test.split("::").collect();
        let name = path.pop().unwrap_or_default();
        // The modules that are files. A macro may make further modules inside them.
        let files = (1..=path.len()).map(|depth| path[..depth].join("/"));
        let files = files.flat_map(|it| [format!("{it}.rs"), format!("{it}/mod.rs")]);
        let in_folders =
            |it: String| folders.iter().map(|folder| folder.join(&it)).collect::<Vec<_>>();
        let mut codes = files.flat_map(in_folders).filter_map(|it| fs::read_to_string(it).ok());
        match codes.any(|it| it.contains(&format!("fn {name}("))) {
            true => Ok(()),
            false => Err(format!("there is no test {} in {}", self.test, self.program)),
        }
    }
}
