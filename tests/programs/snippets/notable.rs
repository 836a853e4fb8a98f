//! Other statements of pages: about programs that fail, and in the text.

use std::fs;
use std::process::Command;

use super::{frames, ground::Ground};
use crate::compilers;
use crate::library;
use crate::pages::{self, Snippet};
use crate::python::python;
use crate::support::{Cluster, Server, wait_until};
use crate::workshop::Workshop;

#[test]
fn the_c_program_takes_and_releases_the_lock() {
    let snippet = first("docs/c.md", "c");
    let ground = Ground::new(&snippet);
    let source = ground.write("program-c.c", &frames::c(&snippet));
    for compiler in compilers::c(&["c99", "c17"]) {
        let program = ground.workshop.build(compiler, &[&source]);
        let run = ground.workshop.succeed(&mut Command::new(&program));
        assert!(run.stdout.starts_with("ours for "), "{}", run.stdout);
        assert_eq!(run.stderr, "");
    }
    took_locks_and_gave_them_back(&ground.cluster);
}

#[test]
fn the_c_program_explains_a_failure() {
    let snippet = first("docs/c.md", "c");
    let ground = Ground::new(&snippet);
    let source = ground.write("program-c.c", &frames::c(&snippet));
    let compiler = compilers::c(&["c11"]).next().expect("one");
    let program = ground.workshop.build(compiler, &[&source]);
    ground.cluster[..2].iter().for_each(Server::kill);
    let run = ground.workshop.run(&mut Command::new(&program));
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stdout.starts_with("REDLOCK_UNREACHABLE: "), "{}", run.stdout);
    assert!(run.stdout.contains(&ground.cluster[0].address()), "{}", run.stdout);
}

/// Each language's first lines take a lock on a majority, and release it.
#[test]
fn the_first_lines_of_each_language_take_a_lock() {
    for (page, language) in [
        ("README.md", "c"),
        ("docs/cpp.md", "cpp"),
        ("docs/go.md", "go"),
        ("docs/node.md", "js"),
        ("docs/ruby.md", "ruby"),
        ("docs/python.md", "python"),
    ] {
        let snippet = first(page, language);
        assert!(snippet.code.contains("invoice:42"), "{page}");
        let ground = Ground::new(&snippet);
        super::run_on(&ground, &snippet);
        took_locks_and_gave_them_back(&ground.cluster);
    }
}

/// A user who also has redlock-py copies our package under another name.
#[test]
fn the_python_package_works_under_another_name() {
    let page = fs::read_to_string(library::root().join("docs/python.md")).expect("a page");
    assert!(page.contains("`redlock_c`") && page.contains("`import redlock_c`"));
    let workshop = Workshop::new();
    let theirs = workshop.write("redlock.py", "class Redlock: pass\n");
    for file in fs::read_dir(library::root().join("bindings/python/redlock")).expect("a package") {
        let path = file.expect("it can be read").path();
        if path.is_file() {
            let name = path.file_name().expect("a name").to_string_lossy();
            workshop.write(&format!("redlock_c/{name}"), &fs::read_to_string(&path).expect("text"));
        }
    }
    let cluster = Cluster::start(3);
    let script = format!(
        "import redlock\nimport redlock_c\nredlock.Redlock()\n\
         with redlock_c.Manager(*{:?}).lock('invoice:42', ttl=10): print('sent')\n",
        crate::addresses(&cluster)
    );
    let script = workshop.write("both.py", &script);
    let mut command = python(&script);
    let run = workshop.succeed(command.env("PYTHONPATH", theirs.parent().expect("a directory")));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("sent\n", ""));
    took_locks_and_gave_them_back(&cluster);
}

fn first(page: &str, language: &str) -> Snippet {
    let page = pages::all(library::root()).into_iter().find(|it| it.name == page);
    let snippets = pages::snippets(&page.expect("the page is there")).expect("a page");
    snippets.into_iter().find(|it| it.language == language).expect("a block of the language")
}

#[track_caller]
fn took_locks_and_gave_them_back(cluster: &Cluster) {
    let deletes = |server: &Server| ["del", "delex", "delifeq"].map(|it| server.calls(it));
    let released = |server: &&Server| deletes(server).iter().sum::<u64>() > 0;
    wait_until("the servers released", || {
        cluster.iter().filter(released).count() >= cluster.quorum()
    });
    cluster.wait_until_gone("invoice:42");
}
