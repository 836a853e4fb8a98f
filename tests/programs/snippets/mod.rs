//! Every block of code of README.md and docs/, built and run without changes except the ports. The ports are
//! those of servers that were started for this test. tests/README.md tells what a page may say of its blocks.
//!
//! REDLOCK_PAGES may select some pages, such as "docs/c.md docs/go.md".

mod frames;
mod ground;
mod notable;

use std::env;
use std::fs::File;
use std::panic;
use std::process::Command;

use crate::compilers::{self, Compiler};
use crate::go::go;
use crate::library;
use crate::pages::{self, Snippet};
use crate::support::Server;
use crate::support::program::words_of;
use crate::workshop::Run;

use ground::Ground;

#[test]
fn the_c_blocks_run() {
    each("c");
}

#[test]
fn the_cpp_blocks_run() {
    each("cpp");
}

#[test]
fn the_go_blocks_run() {
    each("go");
}

#[test]
fn the_rust_blocks_run() {
    each("rust");
}

#[test]
fn the_javascript_blocks_run() {
    each("js");
    each("mjs");
}

#[test]
fn the_python_blocks_run() {
    each("python");
}

#[test]
fn the_ruby_blocks_run() {
    each("ruby");
}

/// By Python's SQLite. Each statement that begins with UPDATE must change a row.
#[test]
fn the_sql_blocks_run() {
    each("sql");
}

#[test]
fn the_shell_blocks_run() {
    each("sh");
}

/// Settings of servers: a server is started with them. Other settings are parsed.
#[test]
fn the_settings_blocks_run() {
    each("conf");
    each("json");
    each("toml");
    each("yaml");
}

/// A CMake project must find the package of the library, and build program.c.
#[test]
fn the_cmake_blocks_run() {
    each("cmake");
}

fn run_on(ground: &Ground, snippet: &Snippet) {
    match snippet.language.as_str() {
        "c" => {
            build_and_run(ground, snippet, "snippet.c", &frames::c(snippet), compilers::c(&["c11"]))
        }
        "cpp" => {
            let text = frames::cpp(snippet);
            let is_new = snippet.has("c++20");
            let standard: &[&str] = if is_new { &["c++20"] } else { &["c++11"] };
            build_and_run(ground, snippet, "snippet.cpp", &text, compilers::cxx(standard));
        }
        "go" => run_go(ground, snippet),
        "rust" => run_rust(ground, snippet),
        "conf" => start_server(snippet),
        "cmake" => run_cmake(ground, snippet),
        "json" => read(ground, snippet, &["ruby", "-e", "require 'json'; JSON.parse($stdin.read)"]),
        "toml" => {
            let reader = "import sys, tomllib; tomllib.load(sys.stdin.buffer)";
            read(ground, snippet, &["python3", "-c", reader]);
        }
        "yaml" => read(ground, snippet, &["ruby", "-e", "require 'yaml'; YAML.load($stdin.read)"]),
        language => {
            let (program, text): (&[&str], _) = match language {
                "js" | "mjs" => (&["node"], frames::js(snippet)),
                "python" => (&["python3", "-W", "error", "-B"], frames::python(snippet)),
                "ruby" => (&["ruby", "-w"], frames::ruby(snippet)),
                "sql" => (&["python3"], frames::sql(snippet)),
                "sh" => (&["sh", "-eu"], frames::sh(snippet)),
                _ => panic!("nobody runs {language}"),
            };
            let script = ground.write(&format!("snippet.{language}"), &text);
            let mut command = Command::new(program[0]);
            ground.run(snippet, command.args(&program[1..]).arg(script));
        }
    }
}

fn build_and_run(
    ground: &Ground,
    snippet: &Snippet,
    name: &str,
    text: &str,
    compilers: impl Iterator<Item = Compiler>,
) {
    let source = ground.write(name, text);
    for compiler in compilers {
        let program = ground.workshop.build(compiler, &[&source]);
        ground.run(snippet, &mut Command::new(program));
    }
}

fn run_go(ground: &Ground, snippet: &Snippet) {
    let module = format!(
        "module snippet\ngo 1.19\nrequire redlock.example/redlock v0.0.0\n\
         replace redlock.example/redlock => {}\n",
        library::root().join("bindings/go").display()
    );
    let module = ground.write("go/go.mod", &module);
    let module = module.parent().expect("it is in a directory");
    ground.write("go/main.go", &frames::go(snippet));
    let program = module.join("snippet");
    let mut command = go(module);
    ground.workshop.succeed(command.args(["build", "-o"]).arg(&program).arg("."));
    ground.run(snippet, &mut Command::new(program));
}

/// With the library that was built together with this test.
fn run_rust(ground: &Ground, snippet: &Snippet) {
    let source = ground.write("snippet.rs", &frames::rust(snippet));
    let program = ground.workshop.fresh("program");
    let built = env::current_exe().expect("this program has a path");
    let built = built.parent().expect("it is in a directory");
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "-D", "warnings", "--crate-name", "snippet", "-o"]);
    command.arg(&program).arg("-L").arg(format!("dependency={}", built.display()));
    command.arg("--extern").arg(format!("redlock={}", built.join("libredlock.rlib").display()));
    ground.workshop.succeed(command.arg(source));
    ground.run(snippet, &mut Command::new(program));
}

fn run_cmake(ground: &Ground, snippet: &Snippet) {
    ground.write("CMakeLists.txt", &snippet.code);
    let prefix = ground.prefix();
    let mut package = Command::new("sh");
    package.arg(library::root().join("packaging/cmake.sh"));
    package.arg(&prefix).arg(prefix.join("lib")).arg(prefix.join("include"));
    ground.workshop.succeed(&mut package);
    let build = "cmake -S . -B build -DCMAKE_PREFIX_PATH=\"$PREFIX\" && cmake --build build && build/program";
    ground.run(snippet, Command::new("sh").args(["-euc", build]));
}

fn start_server(snippet: &Snippet) {
    let lines = snippet.code.lines().map(str::trim);
    let lines = lines.filter(|it| !it.is_empty() && !it.starts_with('#'));
    let pairs = lines.map(|it| it.split_once(' ').expect("a name and a value"));
    let words = pairs.flat_map(|it| [format!("--{}", it.0), it.1.trim_matches('"').to_owned()]);
    let words: Vec<_> = words.collect();
    Server::start_with(&words.iter().map(String::as_str).collect::<Vec<_>>());
}

fn read(ground: &Ground, snippet: &Snippet, reader: &[&str]) {
    let file = ground.write("snippet.data", &snippet.code);
    let input = File::open(file).expect("it was just written");
    ground.run(snippet, Command::new(reader[0]).args(&reader[1..]).stdin(input));
}

/// Runs all wanted blocks of a language, and names all that fail.
#[track_caller]
fn each(language: &str) {
    let mut failures = Vec::new();
    for snippet in wanted().into_iter().filter(|it| it.language == language) {
        let outcome = panic::catch_unwind(|| run_on(&Ground::new(&snippet), &snippet));
        if let Err(cause) = outcome {
            let words = cause.downcast_ref::<String>().cloned();
            let words = words.or_else(|| Some((*cause.downcast_ref::<&str>()?).to_owned()));
            failures.push(format!("{}: {}", snippet.place(), words.unwrap_or_default()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The blocks that no other test runs. A block that is on several pages, such as in translations, is run once.
fn wanted() -> Vec<Snippet> {
    let names = words_of("REDLOCK_PAGES");
    let mut found: Vec<Snippet> = Vec::new();
    for page in pages::all(library::root()) {
        if !names.is_empty() && !names.contains(&page.name) {
            continue;
        }
        for snippet in pages::snippets(&page).unwrap_or_else(|wrong| panic!("{wrong}")) {
            let is_same = |it: &Snippet| {
                it.language == snippet.language && it.everything() == snippet.everything()
            };
            let can_be = cfg!(feature = "tls") || !is_about_tls(&snippet);
            if snippet.value("by").is_none() && can_be && !found.iter().any(is_same) {
                found.push(snippet);
            }
        }
    }
    found
}

/// Whether a library without TLS refuses what the block does.
fn is_about_tls(snippet: &Snippet) -> bool {
    ["rediss://", ".pem", "TLS"].iter().any(|it| snippet.code.contains(it))
}

/// Whether it ended as the page says, and printed what the page says.
#[track_caller]
fn judge(snippet: &Snippet, run: &Run) {
    let said = format!("{}\n{}", run.stdout, run.stderr);
    let code = snippet.value("exit").map_or(0, |it| it.parse().expect("exit= and a number"));
    assert_eq!(run.status.code(), Some(code), "{said}");
    if let Some(output) = &snippet.output {
        assert_eq!(without_numbers(&run.stdout), without_numbers(output), "{said}");
    }
}

/// Replaces each number with the same one.
fn without_numbers(text: &str) -> String {
    let mut made = String::new();
    for character in text.trim().chars() {
        match character {
            '0'..='9' if made.ends_with('0') => {}
            '0'..='9' => made.push('0'),
            _ => made.push(character),
        }
    }
    made
}

/// Shows that the tests above can fail: a block that is wrong is named by its place.
#[test]
fn a_wrong_block_is_noticed() {
    let page = |text: &str| pages::Page { name: "docs/x.md".to_owned(), text: text.to_owned() };
    let run = |text: &str| {
        let snippets = pages::snippets(&page(text)).expect("a page");
        panic::catch_unwind(|| run_on(&Ground::new(&snippets[0]), &snippets[0])).is_ok()
    };
    assert!(run("```python\nprint(8)\n```\n"));
    assert!(run("```python\nprint(8)\n```\n```text output\n12\n```\n"));
    assert!(!run("```python\nprint(8)\n```\n```text output\neight\n```\n"));
    assert!(!run("```python\nprint(n)\n```\n"));
    assert!(!run("```python exit=3\nprint(8)\n```\n"));
    assert!(run("<!-- before\nn = 8\n-->\n```python\nprint(n)\n```\n"));
    assert!(run("```python\nn = 8\n```\ntext\n```python more\nprint(n)\n```\n"));
    for wrong in
        ["```\nx\n```\n", "```c whatever\nx\n```\n", "```c\nx\n", "<!-- before\ny\n-->\nx\n"]
    {
        assert!(pages::snippets(&page(wrong)).is_err(), "{wrong}");
    }
}
