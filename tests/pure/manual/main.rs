//! The manual in man/ is generated from the header, and describes every function.

#[allow(dead_code)]
#[path = "../../live/ffi/declarations.rs"]
mod declarations;
mod header;
mod overview;
mod pages;
mod prose;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, fs};

use header::Header;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// When the words of all pages were last revised together.
const WRITTEN: &str = "2026-11-20";

/// Pages by their file names.
type Pages = BTreeMap<String, Page>;

#[derive(PartialEq)]
enum Page {
    Text(String),
    /// The name of the page that the link points to.
    Connector(String),
}

#[test]
fn the_manual_is_up_to_date() {
    let (made, folder) = (generated(), root().join("man"));
    if env::var_os("UPDATE_MANUAL").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("man/ can be made");
        for (name, page) in &made {
            page.write(&folder.join(name));
        }
    }
    let stored = stored();
    let names = |pages: &Pages| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&stored), names(&made), "man/ is stale: run `make header`");
    for (name, page) in &made {
        assert!(stored[name] == *page, "man/{name} is stale: run `make header`");
    }
}

#[test]
fn every_function_has_a_complete_page() {
    let pages = stored();
    for function in declarations::functions() {
        let page = text(&pages, &format!("{}.3", function.name));
        assert!(page.contains(&format!(".SH NAME\n{} \\- ", function.name)), "{page}");
        assert!(page.contains(&format!("{}(", function.name)), "{page}");
        for parameter in &function.pointers {
            assert!(page.contains(&format!(".TP\n.I {parameter}\n")), "{parameter} in {page}");
        }
        let overview = text(&pages, "redlock.7");
        assert!(overview.contains(&format!(".BR {} (3)\n", function.name)), "{}", function.name);
    }
}

#[test]
fn every_status_links_to_the_status_page() {
    let pages = stored();
    let header = declarations::header();
    let values = header.lines().filter_map(|line| line.trim().split_once(" = "));
    let values: Vec<_> = values.map(|it| it.0).filter(|it| it.starts_with("REDLOCK_")).collect();
    assert!(values.len() > 8, "the header is not what this reads");
    for value in values {
        let page = &pages[&format!("{value}.3")];
        assert!(*page == Page::Connector("RedLockStatus.3".to_owned()), "{value}");
        assert!(text(&pages, "RedLockStatus.3").contains(&format!(".TP\n.BR {value} ")), "{value}");
    }
}

fn generated() -> Pages {
    let header = Header::read();
    let pages = header.items.iter().flat_map(|item| pages::pages(&header, item));
    pages.chain([("redlock.7".to_owned(), Page::Text(overview::page(&header)))]).collect()
}

fn stored() -> Pages {
    let entries = fs::read_dir(root().join("man")).expect("there is a manual: run `make header`");
    let files = entries.map(|it| it.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    files.map(|it| (name(&it), Page::read(&it))).collect()
}

fn text<'a>(pages: &'a Pages, name: &str) -> &'a str {
    match pages.get(name) {
        Some(Page::Text(text)) => text,
        _ => panic!("there is no man/{name}: run `make header`"),
    }
}

impl Page {
    fn write(&self, path: &Path) {
        match self {
            Self::Text(text) => fs::write(path, text),
            Self::Connector(other) => symlink(other, path),
        }
        .expect("a page can be written");
    }

    fn read(path: &Path) -> Self {
        match fs::read_link(path) {
            Ok(other) => Self::Connector(other.to_string_lossy().into_owned()),
            Err(_) => Self::Text(fs::read_to_string(path).expect("a page")),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
