//! Broken copies. A test that has never failed proves little. Each paragraph of the lists beside this file breaks
//! the library in one way, and names the tests that must notice it. `tests/README.md` says what deserves a copy:
//! promises, faults that once were, and what cargo-mutants does not change.
//!
//! Without arguments, as in `cargo test`, this program only checks that every copy can still be made. So a change
//! of the library cannot silently disarm one. `--run` makes all of them (`make mutants`), and `--run M05,M16`
//! makes only these two. Each is built in a copy of the project, and its killers must fail there. All killers
//! must pass in an unbroken copy.

mod mutant;
mod trial;
mod workshop;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use mutant::Mutant;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        // This program has no tests that could be run one by one.
        Some("--list") => Ok(()),
        Some("--run") => all_mutants().and_then(|it| trial::run(&choose(it, arguments.get(1))?)),
        _ => all_mutants().map(|it| {
            println!("{} broken copies can be made; are they noticed? make mutants", it.len());
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The mutants of all lists, sorted by id. Fails if one of them cannot be made.
fn all_mutants() -> Result<Vec<Mutant>, String> {
    let entries = fs::read_dir(project().join("tests/mutants")).expect("a folder");
    let paths = entries.map(|it| it.expect("an entry").path());
    let lists = paths.filter(|it| it.extension().is_some_and(|it| it == "list"));
    let lists: Vec<_> = lists.map(|it| fs::read_to_string(it).expect("a list")).collect();
    let mut mutants = mutant::read(&lists.join("\n\n"))?;
    mutants.sort_by(|a, b| a.id.cmp(&b.id));
    refuses_what_makes_no_sense()?;
    let fault = |it: &Mutant| it.check(project()).err().map(|fault| format!("{}: {fault}", it.id));
    let faults: Vec<_> = mutants.iter().filter_map(fault).collect();
    if faults.is_empty() { Ok(mutants) } else { Err(faults.join("\n")) }
}

fn choose(mut mutants: Vec<Mutant>, only: Option<&String>) -> Result<Vec<Mutant>, String> {
    if let Some(only) = only {
        let ids: Vec<&str> = only.split([',', ' ']).filter(|it| !it.is_empty()).collect();
        mutants.retain(|it| ids.contains(&&*it.id));
        if mutants.len() != ids.len() {
            return Err(format!("these are not all in the lists, or one is named twice: {only}"));
        }
    }
    Ok(mutants)
}

/// Checks that a faulty list is refused and not misread.
fn refuses_what_makes_no_sense() -> Result<(), String> {
    let good = "A a\nkilled by lib: b\n--- Cargo.toml\n-name = \"redlock\"\n+name = \"other\"\n";
    let replaced = |from: &str, to: &str| good.replace(from, to);
    let cases = [
        (good.to_owned(), "there is no test b in lib"),
        (replaced("killed by lib: b\n", ""), "A: words, a killer or the change are missing"),
        (replaced("A a", "A"), "A: words, a killer or the change are missing"),
        (replaced(": b", ""), "A: no program and test"),
        (replaced("other", "redlock"), "A: something is not changed"),
        (replaced("-name", "+name"), "A: something is not changed"),
        (replaced("-name", "name"), "A: it makes no sense: name"),
        (replaced("--- Cargo.toml\n", ""), "A: it makes no sense: -name"),
        (replaced("Cargo.toml", "nothing"), "nothing: "),
        (replaced("-name", "-nam"), "Cargo.toml has not these lines"),
        (replaced("redlock\"", "redlock\" "), "Cargo.toml has not these lines"),
        (replaced("-name = \"redlock\"", "-harness = false"), "Cargo.toml has these lines 2 times"),
        (format!("{good}\n{good}"), "A: there are two of it"),
    ];
    for (list, words) in cases {
        let read = mutant::read(&list);
        let said = read.and_then(|it| it.iter().try_for_each(|it| it.check(project())));
        let said = said.err().unwrap_or_default();
        if !said.starts_with(words) {
            return Err(format!("{words:?} was to be said, not {said:?}, of this:\n{list}"));
        }
    }
    Ok(())
}
