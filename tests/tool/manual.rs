//! The manual page and the completions are those of the program: `make tool-pages` writes the completions anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{bare, finish};
use crate::support::Cluster;

const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "bash-completion/redlock"), ("zsh", "zsh/_redlock"), ("fish", "fish/redlock.fish")];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn installed_completions_are_up_to_date() {
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

/// What a shell says to a script. `make test` installs those that are missing.
fn say(shell: &str, script: &str) -> String {
    let mut command = Command::new(shell);
    // Whatever the user has set for the shell is left out.
    let tool = Path::new(env!("CARGO_BIN_EXE_redlock")).parent().expect("a folder").display();
    command.env("PATH", format!("{tool}:{}", std::env::var("PATH").unwrap_or_default()));
    let command = match shell {
        "zsh" => command.arg("-f"),
        "fish" => command.arg("--no-config"),
        _ => command.arg("--norc"),
    };
    let output = command.arg("-c").arg(script).current_dir(folder("completions")).output();
    let output = output.unwrap_or_else(|error| panic!("{shell} reads no completions: {error}"));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && words.is_empty(), "{shell}: {words}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn shells_complete_a_started_word() {
    let in_bash = "source bash-completion/redlock; COMP_WORDS=(redlock run --p); COMP_CWORD=2
        _redlock redlock --p run; echo \"${COMPREPLY[@]}\"";
    let in_fish = "source fish/redlock.fish; complete --do-complete 'redlock run --p'";
    // It completes only where somebody types.
    let in_zsh = "fpath=($PWD/zsh $fpath); autoload -U compinit; compinit -D -u
        print -r -- $_comps[redlock]; words=(redlock run --p); CURRENT=3
        _describe() { print -r -- ${(P)@[-1]} }; _redlock";
    for (shell, script) in [("bash", in_bash), ("fish", in_fish), ("zsh", in_zsh)] {
        let told = say(shell, script);
        assert!(told.contains("--permits"), "{shell}: {told}");
        assert!(shell != "zsh" || told.starts_with("_redlock\n"), "{told}");
    }
}

#[test]
fn names_of_locks_are_completed() {
    let cluster = Cluster::start(3);
    for name in ["job:1", "job:2", "other", "job:\u{1b}"] {
        cluster.iter().for_each(|it| drop(it.must(&["SET", name, "x", "PX", "600000"])));
    }
    cluster.iter().for_each(|it| drop(it.must(&["SET", "job:3", "no lock"])));
    let completed = |words: &[&str], servers: &str| {
        let mut command = bare(&[&["--"], words].concat());
        command.env("REDLOCK_SERVERS", servers).env("REDLOCK_COMPLETE", "bash");
        command.env("_CLAP_IFS", ",").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        finish(command).stdout
    };
    let servers = cluster.urls().join(",");
    for verb in
        [&["status"][..], &["unlock", "--force"], &["run", "--ttl", "3s"], &["list"], &["top"]]
    {
        let words = [&["redlock"], verb, &["job"]].concat();
        assert_eq!(completed(&words, &servers), "job:1,job:2", "{verb:?}");
    }
    assert_eq!(completed(&["redlock", "--servers", &servers, "status", "o"], ""), "other");
    assert_eq!(completed(&["redlock", "status", "o"], ""), "");
}

#[test]
fn shells_understand_their_completions() {
    for (shell, name) in COMPLETIONS {
        say(shell, &format!("{shell} -n {name}"));
    }
}

#[test]
fn the_manual_page_is_complete_and_well_formed() {
    let file = folder("redlock.1");
    let page = fs::read_to_string(&file).expect("the page").replace('\\', "");
    let verbs = ["run", "status", "unlock", "list", "doctor", "top", "bench", "completions"];
    let general = finish(bare(&["--help"])).stdout;
    let synopsis = page.split(".SH ").find(|it| it.starts_with("SYNOPSIS")).expect("a synopsis");
    for verb in verbs {
        assert!(synopsis.contains(&format!(".B redlock {verb}\n")), "{verb}");
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
