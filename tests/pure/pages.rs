//! README.md and docs/: every link has a target, every page can be found, every block of code is run, and a
//! translation keeps in step with its page.

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

/// A block is run by tests/programs/snippets/, or by a file that the block names. That file must name the page. A
/// translation has the blocks of its page, and nobody runs them twice.
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
        let ran = page.original().unwrap_or_else(|| page.name.clone());
        for snippet in snippets {
            let language = snippet.language.as_str();
            let is_run = pages::RUN.contains(&language) || pages::SHOWN.contains(&language);
            match snippet.value("by") {
                None if is_run => {}
                None => wrong.push(format!("{}: nobody runs {language}", snippet.place())),
                Some(by) => {
                    let text = fs::read_to_string(root().join(by)).unwrap_or_default();
                    if !text.contains(&ran) {
                        let place = snippet.place();
                        wrong.push(format!("{place}: {by} does not say that it runs this"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The README.md of a binding is in its package, and nobody runs its blocks. So each of them is a block of a page, too.
#[test]
fn the_readme_of_each_binding_shows_code_that_is_run() {
    let all = pages::all(root());
    for binding in BINDINGS {
        let shown = pages::snippets(&readme_of(binding)).expect("a page");
        assert!(shown.len() >= 2, "{binding}: how to install it, and a program");
        let sources = ["docs/packages.md".to_owned(), format!("docs/{binding}.md")];
        let sources = all.iter().filter(|it| sources.contains(&it.name));
        let run: Vec<_> = sources.flat_map(|it| pages::snippets(it).expect("a page")).collect();
        for it in shown {
            let is_run =
                run.iter().any(|that| (&that.language, &that.code) == (&it.language, &it.code));
            assert!(is_run, "{}: no page has this block", it.place());
        }
    }
}

const BINDINGS: [&str; 4] = ["go", "node", "python", "ruby"];

fn readme_of(binding: &str) -> Page {
    let name = format!("bindings/{binding}/README.md");
    Page { text: read(&name), name }
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut pages = pages::all(root());
    pages.extend(BINDINGS.map(readme_of));
    for name in ["ARCHITECTURE.md", "CHANGELOG.md", "tests/README.md"] {
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

/// The pages for who carries the project on name files in code. The README of the tests does so with paths of its own.
#[test]
fn every_file_that_is_named_exists() {
    let folder = root().join("docs/internals");
    let entries = fs::read_dir(&folder).expect("a folder").map(|it| it.expect("an entry").path());
    let texts = entries.map(|path| fs::read_to_string(path).expect("a page"));
    let texts: Vec<String> = texts.chain([read("ARCHITECTURE.md")]).collect();
    let is_lost = |path: &&str| !root().join(path).exists();
    let lost: BTreeSet<&str> = texts.iter().flat_map(|it| files(it)).filter(is_lost).collect();
    assert!(lost.is_empty(), "these are gone: {lost:?}");
}

/// What is written as code and begins with a folder of the project. `{a,b}` and `…` stand for several files.
fn files(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let is_path = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
        let begin = span.split_once('/').map(|it| it.0);
        span.chars().all(is_path) && begin.is_some_and(|begin| root().join(begin).is_dir())
    })
}

#[test]
fn files_are_found_in_a_page() {
    let text = "It is in `src/lib.rs`, and `src/ffi/`; not `a/b`, `src/{a,b}.rs`, `src`.";
    assert_eq!(files(text).collect::<Vec<_>>(), ["src/lib.rs", "src/ffi/"]);
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

/// The README.md of a folder leads to each page in it, and to the README.md of each folder in it.
#[test]
fn every_page_is_in_the_index() {
    for page in pages::all(root()).iter().filter(|it| it.name.starts_with("docs/")) {
        let path = Path::new(&page.name);
        let mut folders = path.ancestors().skip(1);
        if page.name.ends_with("/README.md") {
            folders.next();
        }
        let folder = folders.next().expect("docs/ is in the root");
        let index = folder.join("README.md").display().to_string();
        let is_listed = links(&read(&index)).iter().any(|it| folder.join(&it.1) == path);
        assert!(is_listed, "{index} does not lead to {}", page.name);
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

/// `man redlock` shows the command, because section 1 comes first. The library is in section 7.
#[test]
fn every_named_page_of_the_manual_is_there() {
    let mut wrong = Vec::new();
    for page in pages::all(root()) {
        let spans = page.text.split('`').skip(1).step_by(2);
        for name in spans.filter_map(|it| it.strip_prefix("man ")) {
            if !is_in_the_manual(&page.name, name) {
                wrong.push(format!("{}: man {name}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_in_the_manual(page: &str, name: &str) -> bool {
    match name.split_once(' ') {
        Some((section, name)) => root().join(format!("man/{name}.{section}")).exists(),
        None if name == "redlock" => page.ends_with("/command.md"),
        None => root().join(format!("man/{name}.3")).exists(),
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
const NOT_MESSAGES: [&str; 11] = [
    "tests",
    "samples.rs",
    "src/protocol/command/identity.rs",
    "src/protocol/stats/text.rs",
    "tool/src/bench.rs",
    "tool/src/cli.rs",
    "tool/src/cluster/findings.rs",
    "tool/src/doctor.rs",
    "tool/src/sentinels.rs",
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
const IS_READ: [&str; 22] = [
    "cluster support disabled",
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

/// The picture is drawn from docs/BENCH.md, in a light and a dark version.
#[test]
fn the_latency_picture_matches_the_last_report() {
    let report = read("docs/BENCH.md");
    let date = report.lines().find_map(|it| it.strip_prefix("- Date: ")?.split(' ').next());
    let row = report.lines().find(|it| it.starts_with("| 1 thread, 5 servers: lock, median |"));
    let ours = row.and_then(|it| it.split('|').nth(2)).expect("our figure").trim();
    for name in ["latency.svg", "latency-dark.svg"] {
        let picture = read(&format!("docs/pictures/{name}"));
        let is_new = picture.contains(date.expect("a date")) && picture.contains(ours);
        assert!(is_new, "{name} is older than docs/BENCH.md: make pictures PICTURES=latency");
    }
}

/// Only who reads a translation sees that it was left behind.
#[test]
fn a_translation_keeps_in_step_with_its_page() {
    let pages = pages::all(root());
    let named = |name: &str| pages.iter().find(|it| it.name == name).expect("the page is there");
    let translations = pages.iter().filter_map(|it| Some((it, it.original()?)));
    let wrong: Vec<_> =
        translations.flat_map(|(page, name)| out_of_step(page, named(&name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// This index has what the English one has not: a way in, and a glossary.
const INDEX: &str = "docs/zh-CN/README.md";

/// How a translation differs from its page in what is the same in all languages: the code, the levels of the
/// headings, and what a table explains, such as messages, options and calls.
fn out_of_step(page: &Page, original: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    if blocks(page) != blocks(original) {
        wrong.push(format!("{} has other code than {}", page.name, original.name));
    }
    if page.name == INDEX {
        return wrong;
    }
    if levels(&page.text) != levels(&original.text) {
        wrong.push(format!("{} has other headings than {}", page.name, original.name));
    }
    let (ours, theirs) = (explained(&page.text), explained(&original.text));
    wrong.extend(theirs.difference(&ours).map(|it| format!("{} lacks {it}", page.name)));
    wrong.extend(ours.difference(&theirs).map(|it| format!("{} alone has {it}", page.name)));
    wrong
}

fn blocks(page: &Page) -> Vec<[String; 4]> {
    let all = pages::snippets(page).expect("a page").into_iter();
    let parts = |it: Snippet| {
        let (code, output) = (it.everything(), it.output.unwrap_or_default());
        [it.language, it.words.join(" "), code, output]
    };
    all.map(parts).collect()
}

/// The number of signs before each heading.
fn levels(text: &str) -> Vec<usize> {
    let signs = |line: &str| line.len() - line.trim_start_matches('#').len();
    prose(text).map(|it| signs(it.1)).filter(|it| *it > 0).collect()
}

/// The pieces of code in the first column of tables.
fn explained(text: &str) -> BTreeSet<String> {
    let cells = prose(text).filter_map(|it| it.1.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|it| it.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Who reads Chinese is led to an English page only where there is no Chinese one.
#[test]
fn a_translation_leads_to_translations() {
    let pages = pages::all(root());
    let translated: BTreeSet<_> = pages.iter().filter_map(Page::original).collect();
    let wrong: Vec<_> = pages.iter().flat_map(|it| led_astray(it, &translated)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A page may lead to its own original, and to the index of all English pages.
fn led_astray(page: &Page, translated: &BTreeSet<String>) -> Vec<String> {
    let Some(original) = page.original() else { return Vec::new() };
    let targets = links(&page.text).into_iter().map(|(line, link)| (line, target(page, &link)));
    let is_wrong =
        |it: &str| translated.contains(it) && ![original.as_str(), "docs/README.md"].contains(&it);
    let wrong = targets.filter(|it| is_wrong(&it.1));
    wrong.map(|(line, it)| format!("{}:{line}: {it} is translated", page.name)).collect()
}

/// The path of a link from the root of the project.
fn target(page: &Page, link: &str) -> String {
    let mut parts: Vec<_> = page.name.split('/').collect();
    parts.pop();
    for part in link.split('#').next().unwrap_or_default().split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
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

#[test]
fn a_translation_that_is_left_behind_is_seen() {
    let page = |name: &str, text: &str| Page { name: name.to_owned(), text: text.to_owned() };
    let original = page("docs/x.md", "# A\n| `b`, `c` | d |\n```sh\ntrue\n```\n");
    let wrong = |text: &str| out_of_step(&page("docs/zh-CN/x.md", text), &original);
    let none: [&str; 0] = [];
    assert_eq!(wrong("# 甲\n| `b`、`c` | 乙 |\n```sh\ntrue\n```\n"), none);
    let other = "docs/zh-CN/x.md has other code than docs/x.md";
    assert_eq!(wrong("# 甲\n| `b`、`c` | 乙 |\n```sh\nfalse\n```\n"), [other]);
    let other = "docs/zh-CN/x.md has other headings than docs/x.md";
    assert_eq!(wrong("## 甲\n| `b`、`c` | 乙 |\n```sh\ntrue\n```\n"), [other]);
    let others = ["docs/zh-CN/x.md lacks c", "docs/zh-CN/x.md alone has d"];
    assert_eq!(wrong("# 甲\n| `b`、`d` | `c` |\n```sh\ntrue\n```\n"), others);
}

#[test]
fn a_link_to_what_is_translated_is_seen() {
    let text = "[a](../x.md)\n[b](../y.md#c)\n[d](../z.md)\n[e](x.md)\n".to_owned();
    let page = Page { name: "docs/zh-CN/x.md".to_owned(), text };
    let translated = BTreeSet::from(["docs/x.md", "docs/y.md"].map(str::to_owned));
    let wrong = led_astray(&page, &translated);
    assert_eq!(wrong, ["docs/zh-CN/x.md:2: docs/y.md is translated"]);
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|it| panic!("{name}: {it}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
