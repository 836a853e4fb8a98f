//! The blocks for a shell of docs/command.md run as they stand there, with the servers of this test.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::finish;
use crate::support::Cluster;

/// What stands behind the fence of a block that is run here.
const FENCE: &str = "```sh by=tests/tool/page.rs\n";

#[test]
fn every_block_of_the_page_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/command.md")).expect("the page");
    let blocks: Vec<_> =
        page.split(FENCE).skip(1).filter_map(|it| it.split("```").next()).collect();
    assert!(blocks.len() >= 4, "the page is not what this reads");
    let cluster = Cluster::start(3);
    let tool = Path::new(env!("CARGO_BIN_EXE_redlock"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tool.parent().expect("a folder").display());
    for block in blocks {
        let mut script = block.to_owned();
        for (number, server) in cluster.iter().enumerate() {
            script = script.replace(&format!("10.0.0.{}:6379", number + 1), &server.address());
        }
        let mut command = Command::new("sh");
        command.args(["-euc", &script]).env("PATH", &path).current_dir(cluster[0].file(""));
        command.env("REDLOCK_SERVERS", cluster.urls().join(","));
        let outcome = finish(command);
        assert_eq!(outcome.status, Some(0), "{block}\n{outcome:?}");
        assert!(!outcome.stdout.is_empty() || block.contains("true"), "{block}\n{outcome:?}");
    }
}

/// The examples in the documentation of the crate, each a program of its own, built and run.
#[test]
fn every_example_of_the_rust_documentation_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cluster = Cluster::start(3);
    let built = std::env::current_exe().expect("a path");
    let built = built.parent().expect("a folder");
    let mut count = 0;
    for file in ["src/lib.rs", "src/face/manager.rs"] {
        let text = fs::read_to_string(root.join(file)).expect("the source");
        let lines = text.lines().filter_map(|it| {
            let line = it.trim_start();
            line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
        });
        let text =
            lines.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect::<Vec<_>>().join("\n");
        for block in text.split("```no_run\n").skip(1).filter_map(|it| it.split("```").next()) {
            let shown = |it: &str| it.strip_prefix("# ").unwrap_or(it).to_owned();
            let mut code = block.lines().map(shown).collect::<Vec<_>>().join("\n");
            for (number, server) in cluster.iter().enumerate() {
                code = code.replace(&format!("10.0.0.{}:6379", number + 1), &server.address());
            }
            run(built, &cluster[0].file(&format!("example{count}")), &code);
            count += 1;
        }
    }
    assert!(count >= 3, "the sources are not what this reads");
}

fn run(built: &Path, program: &str, code: &str) {
    let source = format!("{program}.rs");
    fs::write(&source, code).expect("it can be written");
    let mut compiler = Command::new("rustc");
    compiler.args([
        "--edition",
        "2024",
        "-D",
        "warnings",
        "--crate-name",
        "example",
        "-o",
        program,
    ]);
    compiler.arg("-L").arg(format!("dependency={}", built.display()));
    compiler.arg("--extern").arg(format!("redlock={}", built.join("libredlock.rlib").display()));
    let outcome = finish({
        compiler.arg(&source);
        compiler
    });
    assert_eq!(outcome.status, Some(0), "{code}\n{outcome:?}");
    let outcome = finish(Command::new(program));
    assert_eq!(outcome.status, Some(0), "{code}\n{outcome:?}");
}
