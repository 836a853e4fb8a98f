//! All figures of the pages are from one run of the bench: the run that docs/BENCH.md shows. A page has a template in a
//! comment, and the text that was made of it below:
//!
//! ```text
//! <!-- figures
//! | lock, median | {1 thread, 5 servers: lock, median; ours} |
//! -->
//! | lock, median | 47.6 µs |
//! <!-- end of figures -->
//! ```
//!
//! `{row; column}` is a cell of the table in docs/BENCH.md, and `{Date}` is what follows `- Date: ` there. `make figures`
//! writes the text anew.

use std::collections::BTreeMap;
use std::{env, fs};

use crate::{read, root};

const BEGIN: &str = "<!-- figures\n";
const END_OF_TEMPLATE: &str = "-->\n";
const END: &str = "<!-- end of figures -->\n";

const PAGES: [&str; 5] =
    ["README.md", "README.zh-CN.md", "docs/figures.md", "docs/servers.md", "docs/zh-CN/servers.md"];

#[test]
fn the_figures_of_all_pages_are_of_the_last_report() {
    let report = Report::read(&read("docs/BENCH.md"));
    for name in PAGES {
        let page = read(name);
        let made = filled(&page, &report).unwrap_or_else(|words| panic!("{name}: {words}"));
        if env::var_os("UPDATE_FIGURES").is_some() {
            fs::write(root().join(name), &made).expect("the page can be written");
        } else {
            assert!(page == made, "{name} has figures of another run: run `make figures`");
        }
        assert!(page.contains(BEGIN), "{name} shows no figures");
    }
}

/// The cells of the table, by `row; column`, and the lines below it, by the word in front of the colon.
struct Report(BTreeMap<String, String>);

impl Report {
    fn read(text: &str) -> Self {
        let mut values = BTreeMap::new();
        let mut columns = Vec::new();
        for line in text.lines() {
            if let Some((name, value)) = line.strip_prefix("- ").and_then(|it| it.split_once(": "))
            {
                values.insert(name.to_owned(), value.to_owned());
            } else if let Some(row) = line.strip_prefix("| ") {
                let cells: Vec<_> = row.split('|').map(str::trim).collect();
                if cells[0] == "Figure" {
                    columns = cells;
                    continue;
                }
                for (column, value) in columns.iter().zip(&cells).skip(1) {
                    values.insert(format!("{}; {column}", cells[0]), (*value).to_owned());
                }
            }
        }
        Self(values)
    }

    fn value(&self, name: &str) -> Result<&str, String> {
        let value = self.0.get(name).map(String::as_str).filter(|it| !it.is_empty());
        value.ok_or_else(|| format!("docs/BENCH.md has no {{{name}}}"))
    }
}

/// The page, with the text below each template made anew.
fn filled(page: &str, report: &Report) -> Result<String, String> {
    let mut parts = page.split(BEGIN);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (template, rest) = part.split_once(END_OF_TEMPLATE).ok_or("a template has no end")?;
        let (_, rest) = rest.split_once(END).ok_or("a template has no text behind it")?;
        let text = fill(template, report)?;
        made.extend([BEGIN, template, END_OF_TEMPLATE, &text, END, rest]);
    }
    Ok(made)
}

fn fill(template: &str, report: &Report) -> Result<String, String> {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or("a { has no }")?;
        text.push_str(report.value(name)?);
        text.push_str(rest);
    }
    Ok(text)
}

/// Shows that the test above can fail.
#[test]
fn figures_of_another_run_are_seen() {
    let report = "| Figure | ours | Ratio |\n| --- | --- | --- |\n| lock, median | 47.6 µs | |\n- Date: today\n";
    let report = Report::read(report);
    let page = |text: &str| {
        format!("before\n{BEGIN}lock {{lock, median; ours}}, {{Date}}\n-->\n{text}{END}after\n")
    };
    assert_eq!(filled(&page("lock 12 µs\n"), &report), Ok(page("lock 47.6 µs, today\n")));
    assert!(fill("{lock, median; Ratio}", &report).is_err(), "an empty cell is no figure");
    assert!(fill("{no such row; ours}", &report).is_err());
}
