//! Passwords: never among the arguments, never in what is told.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::command::{bare, finish};
use crate::support::Cluster;

const SECRET: &str = "hunter2";

fn cluster() -> Cluster {
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        server.must(&["CONFIG", "SET", "requirepass", SECRET]);
    }
    cluster
}

fn with_password(cluster: &Cluster) -> String {
    let urls = cluster.iter().map(|it| format!("redis://:{SECRET}@{}", it.address()));
    urls.collect::<Vec<_>>().join(",")
}

/// Every verb, in words and in JSON.
fn each_verb(mut run: impl FnMut(&[&str])) {
    for json in [&[][..], &["--json", "--verbose"]] {
        for verb in [
            &["run", "--wait", "0", "r", "--", "true"][..],
            &["status", "r"],
            &["list"],
            &["doctor"],
            &["top", "--once", "--interval", "200ms"],
            &["bench", "--duration", "50ms"],
        ] {
            run(&[json, verb].concat());
        }
    }
}

#[test]
fn a_password_argument_is_refused_and_not_repeated() {
    let cluster = cluster();
    let url = with_password(&cluster);
    each_verb(|verb| {
        let own = verb.split(|it| *it == "--").next().unwrap_or_default();
        let rest = &verb[own.len()..];
        for how in [vec!["--servers", &url], vec!["-s", &url]] {
            let mut command = bare(own);
            command.args(how).args(rest);
            let outcome = finish(command);
            assert_eq!(outcome.status, Some(125), "{verb:?}: {outcome:?}");
            assert!(outcome.stderr.contains("REDLOCK_PASSWORD"), "{outcome:?}");
            assert!(!format!("{outcome:?}").contains(SECRET), "{outcome:?}");
        }
    });
    // Also where it is no argument that there is.
    let outcome = finish(bare(&["redis://:hunter2@h:1"]));
    assert!(outcome.status == Some(125) && !outcome.stderr.contains(SECRET), "{outcome:?}");
}

#[test]
fn a_password_in_the_environment_is_used_and_hidden() {
    let cluster = cluster();
    let plain = cluster.urls().join(",");
    each_verb(|verb| {
        for variables in [
            vec![("REDLOCK_SERVERS", with_password(&cluster))],
            vec![("REDLOCK_SERVERS", plain.clone()), ("REDLOCK_PASSWORD", SECRET.to_owned())],
        ] {
            let mut command = bare(verb);
            command.envs(variables);
            let outcome = finish(command);
            assert_eq!(outcome.status, Some(0), "{verb:?}: {outcome:?}");
            assert!(!format!("{outcome:?}").contains(SECRET), "{outcome:?}");
        }
    });
}

#[test]
fn a_wrong_password_is_hidden() {
    let cluster = cluster();
    let plain = cluster.urls().join(",");
    each_verb(|verb| {
        let mut command = bare(verb);
        command.env("REDLOCK_SERVERS", &plain).env("REDLOCK_PASSWORD", "correct-horse");
        let outcome = finish(command);
        assert!(matches!(outcome.status, Some(1 | 123)), "{verb:?}: {outcome:?}");
        assert!(!format!("{outcome:?}").contains("correct-horse"), "{outcome:?}");
    });
}

#[test]
fn a_file_with_a_password_must_be_private() {
    let cluster = cluster();
    let file = cluster[0].file("redlock.toml");
    let addresses: Vec<_> = cluster.iter().map(|it| format!("\"{}\"", it.address())).collect();
    let list = addresses.join(", ");
    let check = |text: &str, mode: u32| {
        fs::write(&file, text).expect("it can be written");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("it is ours");
        let outcome = finish(bare(&["--config", &file, "status", "r"]));
        assert!(!format!("{outcome:?}").contains(SECRET), "{outcome:?}");
        outcome
    };
    let text = format!("servers = [{list}]\npassword = \"{SECRET}\"\n");
    assert_eq!(check(&text, 0o600).status, Some(0));
    for mode in [0o640, 0o644, 0o604, 0o622] {
        let outcome = check(&text, mode);
        assert_eq!(outcome.status, Some(125), "{mode:o}");
        assert!(outcome.stderr.contains("chmod 600"), "{outcome:?}");
    }
    let urls: Vec<_> = with_password(&cluster).split(',').map(|it| format!("\"{it}\"")).collect();
    let text = format!("servers = [{}]\n", urls.join(", "));
    assert_eq!(check(&text, 0o600).status, Some(0));
    assert_eq!(check(&text, 0o644).status, Some(125));
    // Without one, anybody may read it.
    assert_eq!(check(&format!("servers = [{list}]\n"), 0o644).status, Some(123));
    for wrong in [
        format!("servers = [{list}]\npasword = \"{SECRET}\"\n"),
        format!("servers = [{list}]\npassword = {SECRET}\n"),
        format!("servers = [{list}]\npassword = [\"{SECRET}\"]\n"),
        format!("servers = \"{}\"\n", with_password(&cluster)),
    ] {
        let outcome = check(&wrong, 0o600);
        assert_eq!(outcome.status, Some(125), "{outcome:?}");
        assert!(outcome.stderr.contains("line "), "{outcome:?}");
    }
}
