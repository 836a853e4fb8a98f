//! README.md and docs/: every link has a target, every page can be found, every block of code is run, and a page
//! in two languages shows the same code.

#[path = "../support/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pages::{Page, Snippet};

const README_LINES_MAX: usize = 150;

#[test]
fn the_readme_is_short() {
    for name in ["README.md", "README.zh-CN.md"] {
        let lines = read(name).lines().count();
        assert!(lines <= README_LINES_MAX, "{name} has {lines} lines");
    }
}

/// A block is run by tests/programs/snippets/, or by a file that the block names. That file must name the page.
#[test]
fn every_block_is_run() {
    let mut wrong = Vec::new();
    for page in pages::all(root()) {
        let snippets = match pages::snippets(&page) {
            Ok(snippets) => snippets,
            Err(words) => {
                wrong.push(words);
                continue;
            }
        };
        for snippet in snippets {
            let language = snippet.language.as_str();
            let is_run = pages::RUN.contains(&language) || pages::SHOWN.contains(&language);
            match snippet.value("by") {
                None if is_run => {}
                None => wrong.push(format!("{}: nobody runs {language}", snippet.place())),
                Some(by) => {
                    let text = fs::read_to_string(root().join(by)).unwrap_or_default();
                    if !text.contains(&page.name) {
                        let place = snippet.place();
                        wrong.push(format!("{place}: {by} does not say that it runs this"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut pages = pages::all(root());
    for name in ["DESIGN.md", "RELIABILITY.md", "CHANGELOG.md", "tests/README.md"] {
        pages.push(Page { name: name.to_owned(), text: read(name) });
    }
    for page in &pages {
        for (line, link) in links(&page.text) {
            if let Err(words) = follow(page, &link) {
                wrong.push(format!("{}:{line}: {words}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Links that leave the project are not checked.
fn follow(page: &Page, link: &str) -> Result<(), String> {
    if link.starts_with("http://") || link.starts_with("https://") {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |it| (it.0, Some(it.1)));
    let here = root().join(&page.name);
    let target = if path.is_empty() { here } else { here.with_file_name("").join(path) };
    if !target.exists() {
        return Err(format!("there is no {path}"));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let text = fs::read_to_string(&target).map_err(|it| format!("{path}: {it}"))?;
    if anchors(&text).contains(anchor) { Ok(()) } else { Err(format!("{path} has no #{anchor}")) }
}

/// The targets of Markdown links and the addresses of pictures, each with its line number.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let targets = line.split("](").skip(1).filter_map(|it| it.split([')', ' ']).next());
        let sources = ["src=\"", "srcset=\"", "href=\""];
        let sources = sources.iter().flat_map(|it| line.split(it).skip(1));
        let sources = sources.filter_map(|it| it.split('"').next());
        found.extend(targets.chain(sources).map(|it| (number, it.to_owned())));
    }
    found
}

/// The lines outside blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number + 1, line))
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchors that GitHub makes of the headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let heading = heading.trim_start_matches('#').trim();
        let made: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|it| match it {
                ' ' => Some('-'),
                _ if it.is_alphanumeric() || it == '-' || it == '_' => Some(it),
                _ => None,
            })
            .collect();
        let again = (1..).map(|it| format!("{made}-{it}"));
        let name = std::iter::once(made.clone()).chain(again).find(|it| !found.contains(it));
        found.insert(name.expect("there are numbers enough"));
    }
    found
}

#[test]
fn every_page_is_in_the_index() {
    let index = Page { name: "docs/README.md".to_owned(), text: read("docs/README.md") };
    let listed: BTreeSet<PathBuf> =
        links(&index.text).into_iter().map(|it| Path::new("docs").join(it.1)).collect();
    for page in pages::all(root()).iter().filter(|it| it.name.starts_with("docs/")) {
        let is_listed = page.name == index.name || listed.contains(Path::new(&page.name));
        assert!(is_listed, "docs/README.md does not lead to {}", page.name);
    }
}

/// The code in the table of languages also stands in a block of the linked page, and that block is run.
#[test]
fn the_table_of_languages_shows_tested_code() {
    let all = pages::all(root());
    for readme in ["README.md", "README.zh-CN.md"] {
        let text = read(readme);
        let rows = text.lines().filter(|it| it.starts_with('|') && it.contains("](docs/"));
        let mut count = 0;
        for row in rows {
            let shown = row.split('`').nth(1).expect("a line of code").replace("\\|", "|");
            let shown = shown.split(" …").next().unwrap_or_default().trim_end_matches(" {");
            let (_, page) = links(row).into_iter().next().map_or((0, String::new()), |it| it);
            let page = all.iter().find(|it| it.name == page).expect("the page is there");
            let snippets = pages::snippets(page).expect("a page");
            assert!(snippets.iter().any(|it| it.code.contains(shown)), "{readme}: {shown}");
            count += 1;
        }
        assert!(count >= 6, "{readme}");
    }
}

/// The text of every message stands on the page that explains messages, apart from the values that are put into
/// it.
#[test]
fn every_message_is_explained() {
    let page = read("docs/troubleshooting.md");
    let mut missing = Vec::new();
    for file in ["src", "tool/src"].iter().flat_map(|it| sources(&root().join(it))) {
        let name = file.strip_prefix(root()).expect("below it").display().to_string();
        if NOT_MESSAGES.iter().any(|it| name.contains(it)) {
            continue;
        }
        let code = read(&name);
        let code = code.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        for words in sentences(code) {
            let parts = words.split(['{', '}']).step_by(2);
            let parts = parts.map(|it| it.trim_matches([' ', ':', ';', ',', '.']));
            let parts: Vec<_> = parts.filter(|it| it.len() > 5).collect();
            if !parts.iter().all(|it| page.contains(it)) {
                missing.push(format!("{name}: {words}"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/troubleshooting.md lacks:\n{}", missing.join("\n"));
}

/// Files whose strings are not messages: tests, monitoring data, help, and pages of results, which explain
/// themselves.
const NOT_MESSAGES: [&str; 9] = [
    "tests",
    "samples.rs",
    "src/command/identity.rs",
    "src/stats/text.rs",
    "tool/src/bench.rs",
    "tool/src/cli.rs",
    "tool/src/doctor.rs",
    "tool/src/list.rs",
    "tool/src/top.rs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|it| it.is_dir());
    let here = files.into_iter().filter(|it| it.extension().is_some_and(|it| it == "rs"));
    here.chain(folders.iter().flat_map(|it| sources(it))).collect()
}

/// The strings in code that have more than one word and that are not only for programmers.
fn sentences(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        rest = if from.starts_with("//") {
            from.split_once('\n').map_or("", |it| it.1)
        } else if let Some(string) = from.strip_prefix('"') {
            let end = end_of_string(string);
            let is_raw = before.ends_with('#');
            let is_told = !["expect(", "assert!(", "unreachable!(", "doc = "]
                .iter()
                .any(|it| before.ends_with(it));
            let words = one_line(&string[..end]);
            // No message ends with a newline. Strings that do are lines of scripts.
            let is_told = is_told && !is_raw && !words.ends_with("\\n");
            if is_told && words.trim().contains(' ') && !IS_READ.contains(&&*words) {
                found.push(words);
            }
            &string[(end + 1).min(string.len())..]
        } else if let Some(escaped) = from.strip_prefix("'\\") {
            escaped.find('\'').map_or("", |end| &escaped[end + 1..])
        } else if let Some(rest) = from.strip_prefix("'\"'") {
            rest
        } else {
            &from[1..]
        };
    }
    found
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = |it: char| {
        let is_end = it == '"' && !is_escaped;
        is_escaped = it == '\\' && !is_escaped;
        is_end
    };
    text.find(ends).unwrap_or(text.len())
}

/// Joins a string whose lines end with a backslash, as the compiler does.
fn one_line(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |all, line| all + line.trim_start())
}

/// Strings that the library looks for in messages of servers, of the system, and of its own. Also strings for
/// programmers.
const IS_READ: [&str; 21] = [
    "max number of clients",
    "unknown command",
    "unknown command ",
    "Unknown Redis command",
    "Unknown command called",
    "can't access at least one of the keys",
    "to run the ",
    "wrong number of arguments",
    "invalid expire",
    "DB index",
    "can't run this command",
    "ACL failure in script",
    "invalid password",
    "without any password configured",
    "should be of string type",
    "BEGIN ENCRYPTED PRIVATE KEY",
    "Proc-Type: 4,ENCRYPTED",
    " (os error",
    "Request({:?} {:?})",
    "whole lines of a text are a text",
    "the future was polled after its end",
];

#[test]
fn messages_are_found_in_code() {
    let code = r#"say("a \"b\" c"); let quote = '"'; // "no message here"
        it.expect("nobody is told"); say("first, \
            and second"); let other = '\''; let short = "word";"#;
    assert_eq!(sentences(code), ["a \\\"b\\\" c", "first, and second"]);
}

/// The picture is drawn from BENCH.md, in a light and a dark version.
#[test]
fn the_latency_picture_matches_the_last_report() {
    let report = read("BENCH.md");
    let date = report.lines().find_map(|it| it.strip_prefix("- Date: ")?.split(' ').next());
    let row = report.lines().find(|it| it.starts_with("| 1 thread, 5 servers: lock, median |"));
    let ours = row.and_then(|it| it.split('|').nth(2)).expect("our figure").trim();
    for name in ["latency.svg", "latency-dark.svg"] {
        let picture = read(&format!("docs/pictures/{name}"));
        let is_new = picture.contains(date.expect("a date")) && picture.contains(ours);
        assert!(is_new, "{name} is older than BENCH.md: make pictures PICTURES=latency");
    }
}

/// A page in another language shows the same code as the first, except for comments.
#[test]
fn translated_pages_have_the_same_code() {
    let pages = pages::all(root());
    let named = |name: &str| pages.iter().find(|it| it.name == name).expect("the page is there");
    let code = |name: &str| {
        let snippets = pages::snippets(named(name)).expect("a page");
        snippets.iter().map(|it: &Snippet| it.everything()).collect::<Vec<_>>()
    };
    assert_eq!(code("README.md"), code("README.zh-CN.md"));
}

/// Shows that the tests above can fail.
#[test]
fn a_broken_link_is_noticed() {
    let page = Page { name: "docs/README.md".to_owned(), text: String::new() };
    assert_eq!(follow(&page, "../README.md"), Ok(()));
    assert!(follow(&page, "../NOTHING.md").is_err());
    assert!(follow(&page, "../README.md#no-such-heading").is_err());
    let text = "[a](b.md#c) `[d](e)`\n```text\n[f](g)\n```\n<img src=\"h.svg\">\n";
    assert_eq!(links(text), [(1, "b.md#c".to_owned()), (5, "h.svg".to_owned())]);
    let headings = anchors("# A `b`: c, d!\n## Same\n## Same\n## 中文 标题\n");
    let names = ["a-b-c-d", "same", "same-1", "中文-标题"].map(str::to_owned);
    assert_eq!(headings, BTreeSet::from(names));
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|it| panic!("{name}: {it}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
