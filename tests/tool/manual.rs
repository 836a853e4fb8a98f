//! The manual page and the completions are those of the program: `make tool-pages` writes the completions anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{bare, finish};

const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "bash-completion/redlock"), ("zsh", "zsh/_redlock"), ("fish", "fish/redlock.fish")];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn completions_are_those_that_are_installed() {
    for (shell, name) in COMPLETIONS {
        let told = finish(bare(&["completions", shell])).stdout;
        let kept = fs::read_to_string(folder("completions").join(name)).unwrap_or_default();
        if told != kept && std::env::var_os("UPDATE_MANUAL").is_some() {
            fs::create_dir_all(folder("completions")).expect("a folder");
            fs::write(folder("completions").join(name), &told).expect("it can be written");
            continue;
        }
        assert!(told == kept, "tool/completions/{name} is old: make tool-pages");
    }
}

#[test]
fn shells_understand_their_completions() {
    for (shell, name) in COMPLETIONS {
        let there = Command::new(shell).arg("-c").arg("true").stdout(Stdio::null()).status();
        if there.is_ok_and(|it| it.success()) {
            let file = folder("completions").join(name);
            let read = Command::new(shell).arg("-n").arg(&file).output().expect("it was there");
            let words = String::from_utf8_lossy(&read.stderr).into_owned();
            assert!(read.status.success() && words.is_empty(), "{shell}: {words}");
        }
    }
}

#[test]
fn the_manual_page_names_all_that_there_is_and_formatters_find_no_fault() {
    let file = folder("redlock.1");
    let page = fs::read_to_string(&file).expect("the page").replace('\\', "");
    let verbs = ["run", "status", "list", "doctor", "top", "bench", "completions"];
    let general = finish(bare(&["--help"])).stdout;
    for verb in verbs {
        assert!(page.contains(&format!(".SS {verb}")), "{verb}");
        assert!(general.contains(&format!("  {verb} ")), "{verb}");
        let help = finish(bare(&[verb, "--help"])).stdout;
        let words = help.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-'));
        for option in words.filter(|it| it.starts_with("--") && it.len() > 2) {
            assert!(page.contains(option), "redlock.1 says nothing of {verb} {option}");
        }
    }
    for status in ["122", "123", "124", "125", "126", "127", "128"] {
        assert!(page.contains(status) && general.contains(status), "{status}");
    }
    for formatter in
        [&["mandoc", "-T", "lint", "-W", "warning"][..], &["groff", "-man", "-ww", "-z", "-Tutf8"]]
    {
        let read = Command::new(formatter[0]).args(&formatter[1..]).arg(&file).output();
        let Ok(read) = read else { continue };
        let words = [read.stdout, read.stderr].concat();
        assert!(words.is_empty(), "{formatter:?}: {}", String::from_utf8_lossy(&words));
    }
}
