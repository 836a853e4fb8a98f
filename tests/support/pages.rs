//! The pages that a user reads, README.md and docs/, and their code blocks. tests/README.md describes how a
//! page says what must be done with a block.

// Each program that includes this uses a part.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// The languages that tests/programs/snippets/ runs, as they are written behind a fence.
pub(crate) const RUN: [&str; 15] = [
    "c", "cmake", "conf", "cpp", "go", "js", "json", "mjs", "python", "ruby", "rust", "sh", "sql",
    "toml", "yaml",
];

/// Blocks that are shown and not run: outputs of programs, and drawings.
pub(crate) const SHOWN: [&str; 2] = ["text", "mermaid"];

/// A page, by its path from the root of the project.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Page {
    /// The name of the English page of which this page is a translation.
    pub(crate) fn original(&self) -> Option<String> {
        let name = self.name.replace("zh-CN/", "").replace(".zh-CN", "");
        (name != self.name).then_some(name)
    }
}

/// A code block, with its parts that are not shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snippet {
    pub(crate) page: String,
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) words: Vec<String>,
    pub(crate) code: String,
    /// The text around the code, and the text before the function that contains the code.
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) outside: String,
    /// The expected output, except for the numbers in it.
    pub(crate) output: Option<String>,
}

impl Snippet {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    /// The text after the word and an equals sign.
    pub(crate) fn value(&self, word: &str) -> Option<&str> {
        self.words.iter().find_map(|it| it.strip_prefix(word)?.strip_prefix('='))
    }

    /// All text that must be compiled, to be searched for words.
    pub(crate) fn everything(&self) -> String {
        [&*self.outside, &self.before, &self.code, &self.after].concat()
    }
}

/// All pages, in the order of their names.
pub(crate) fn all(root: &Path) -> Vec<Page> {
    let mut paths = vec![root.join("README.md"), root.join("README.zh-CN.md")];
    collect(&root.join("docs"), &mut paths);
    paths.sort();
    let page = |path: PathBuf| Page {
        name: path.strip_prefix(root).expect("it is in there").display().to_string(),
        text: fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display())),
    };
    paths.into_iter().map(page).collect()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|it| it == "md") {
            paths.push(path);
        }
    }
}

/// The blocks of a page, with continued blocks joined; or what is wrong with the page.
pub(crate) fn snippets(page: &Page) -> Result<Vec<Snippet>, String> {
    let mut found: Vec<Snippet> = Vec::new();
    let mut next = Snippet::default();
    let mut lines = page.text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let wrong = |what: &str| format!("{}:{}: {what}", page.name, number + 1);
        if let Some(comment) = line.strip_prefix("<!-- ") {
            let part = match comment {
                "before" => &mut next.before,
                "after" => &mut next.after,
                "outside" => &mut next.outside,
                _ => continue,
            };
            take_until(&mut lines, "-->", "", part).ok_or_else(|| wrong("no end of it"))?;
        } else if let Some(info) = line.trim_start().strip_prefix("```") {
            let indent = &line[..line.len() - line.trim_start().len()];
            let mut words = info.split_whitespace().map(str::to_owned);
            let mut snippet = std::mem::take(&mut next);
            snippet.page.clone_from(&page.name);
            snippet.line = number + 1;
            snippet.language =
                words.next().ok_or_else(|| wrong("say what language this is, such as text"))?;
            snippet.words = words.collect();
            take_until(&mut lines, &format!("{indent}```"), indent, &mut snippet.code)
                .ok_or_else(|| wrong("the block has no end"))?;
            add(&mut found, snippet).map_err(|it| wrong(&it))?;
        } else if !line.trim().is_empty() && !next.everything().is_empty() {
            return Err(wrong("what is not shown stands right before its block"));
        }
    }
    Ok(found)
}

/// Joins lines up to the end line; `None` if there is no end line.
fn take_until<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    end: &str,
    indent: &str,
    text: &mut String,
) -> Option<()> {
    for (_, line) in lines {
        if line == end {
            return Some(());
        }
        text.push_str(line.strip_prefix(indent).unwrap_or(line));
        text.push('\n');
    }
    None
}

fn add(found: &mut Vec<Snippet>, snippet: Snippet) -> Result<(), String> {
    const WORDS: [&str; 4] = ["c++20", "compile", "more", "output"];
    const VALUES: [&str; 2] = ["by", "exit"];
    let is_known = |word: &String| {
        let value = VALUES.iter().any(|it| word.starts_with(&format!("{it}=")));
        value || WORDS.contains(&word.as_str())
    };
    if let Some(word) = snippet.words.iter().find(|it| !is_known(it)) {
        return Err(format!("there is no word {word} for a block"));
    }
    if snippet.has("output") {
        let of = found.last_mut().ok_or("output, and no block that prints it")?;
        of.output = Some(snippet.code);
    } else if snippet.has("more") {
        let first = found.iter_mut().rev().find(|it| it.language == snippet.language);
        let first = first.ok_or("more, and no block of the language that it goes on with")?;
        first.outside.push_str(&snippet.outside);
        first.code.push_str(&snippet.before);
        first.code.push_str(&snippet.code);
        first.after.insert_str(0, &snippet.after);
    } else {
        found.push(snippet);
    }
    Ok(())
}
