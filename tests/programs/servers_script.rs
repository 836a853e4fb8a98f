//! c-examples/servers.sh only touches what it has made. It touches neither directories of others, nor their
//! files, nor processes that some file names. docs/install.md tells how to use it.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::secure::{Showroom, script};
use crate::support::directory::Directory;
use crate::support::process::{self, Process};
use crate::support::{ports, product};
use crate::workshop::Workshop;

/// A process that has nothing to do with the servers, and runs in this directory.
fn bystander(directory: &Path) -> Process {
    let mut command = Command::new("sleep");
    Process::start(command.arg("1000").current_dir(directory)).expect("sleep can be run")
}

/// Another user's server, which runs in this directory and accepts no TCP connections.
fn server_of_others(directory: &Path) -> Process {
    let mut command = Command::new(product::tls_program());
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(directory.join("socket"));
    command.current_dir(directory).stdout(Stdio::null());
    Process::start(&mut command).expect("a server can be run")
}

fn somebody_listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Whether any process runs in this directory, even if the directory was deleted.
fn somebody_runs_in(directory: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let mut places = processes.filter_map(|it| fs::read_link(it.path().join("cwd")).ok());
    let name = directory.to_str().expect("UTF-8").to_owned();
    places.any(|it| it.to_str().is_some_and(|it| it.trim_end_matches(" (deleted)") == name))
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").map(|it| it.expect("an entry"));
    entries.map(|it| it.file_name().into_string().expect("UTF-8")).collect()
}

#[test]
fn the_script_leaves_nothing_and_can_run_twice() {
    let room = Showroom::open();
    let again = room.script("up", &[]);
    assert!(
        !again.status.success() && again.stderr.contains("is there already"),
        "{}",
        again.stderr
    );
    assert!(again.stderr.contains("servers.sh down "), "{}", again.stderr);
    for port in [room.port, room.port + 102] {
        assert!(somebody_listens(port), "the second up has ended what the first began");
    }
    for what in ["", "nothing to do"] {
        let run = room.script("down", &[]);
        assert!(run.status.success() && run.stdout.contains(what), "{}{}", run.stdout, run.stderr);
        assert!(!room.directory().exists() && !somebody_runs_in(&room.directory()));
    }
}

#[test]
fn a_foreign_directory_is_left_alone() {
    let (place, workshop) = (Directory::new(), Workshop::new());
    let theirs = place.path().join("servers");
    let other = bystander(place.path());
    fs::create_dir(&theirs).expect("it can be made");
    fs::write(theirs.join("6379.pid"), format!("{}\n", other.id())).expect("it can be written");
    fs::write(theirs.join("thesis.txt"), "years of work").expect("it can be written");
    for action in ["down", "up"] {
        let run = workshop.run(script(action).arg(&theirs));
        assert_eq!(run.status.code(), Some(1), "{action}: {}", run.stdout);
        assert!(run.stderr.contains("this script"), "{action}: {}", run.stderr);
        assert_eq!(names_in(&theirs).len(), 2, "{action}");
        assert!(!other.has_ended(), "{action}");
    }
    // An empty directory, a file and a dangling link belong to others, too.
    let (empty, file, link) = (place.join("empty"), place.join("file"), place.join("link"));
    fs::create_dir(&empty).expect("it can be made");
    fs::write(&file, "").expect("it can be written");
    std::os::unix::fs::symlink("/nowhere", &link).expect("it can be made");
    for name in [&empty, &file, &link] {
        assert_eq!(workshop.run(script("up").arg(name)).status.code(), Some(1), "{name}");
        workshop.run(script("down").arg(name));
        assert!(fs::symlink_metadata(name).is_ok(), "{name} is gone");
    }
}

#[test]
fn a_stale_pid_file_ends_no_process() {
    let room = Showroom::open();
    let place = Directory::new();
    let elsewhere = server_of_others(place.path());
    let (inside, frozen) = (bystander(&room.directory()), room.directory());
    let pid_file = |number: u16| frozen.join(format!("{}.pid", room.port + number));
    let server: u32 =
        fs::read_to_string(pid_file(2)).expect("a file").trim().parse().expect("a number");
    let first = fs::read_to_string(pid_file(0)).expect("a file");
    let second = fs::read_to_string(pid_file(1)).expect("a file");
    // Each of the first two is ended by hand, and its process id belongs to another process by now.
    for (number, ended, other) in [(0, &first, &elsewhere), (1, &second, &inside)] {
        process::send(ended.trim().parse().expect("a number"), libc::SIGKILL);
        fs::write(pid_file(number), format!("{}\n", other.id())).expect("it can be written");
    }
    // And the third does not react.
    process::send(server, libc::SIGSTOP);
    let run = room.script("down", &[]);
    assert!(run.status.success(), "{}", run.stderr);
    assert!(!elsewhere.has_ended() && !inside.has_ended(), "it ends what its files name");
    assert!(!room.directory().exists());
    drop(inside);
    assert!(!somebody_runs_in(&room.directory()), "a server that was frozen runs on");
}

#[test]
fn a_malformed_pid_file_does_no_harm() {
    let room = Showroom::open();
    let pid_file = room.directory().join(format!("{}.pid", room.port));
    let pid = fs::read_to_string(&pid_file).expect("a file");
    process::send(pid.trim().parse().expect("a number"), libc::SIGKILL);
    for nonsense in ["", "0\n", "-1\n", "1\n", "1 1\n", "*\n", "$(touch here)\n", "999999999999\n"]
    {
        fs::write(&pid_file, nonsense).expect("it can be written");
        let copy = room.directory().with_file_name("copy");
        let run = Command::new("cp").arg("-R").arg(room.directory()).arg(&copy).status();
        assert!(run.expect("cp can be run").success());
        // The servers run in the directory that this is a copy of.
        let down = Workshop::new().run(script("down").arg(&copy));
        assert!(down.status.success() && !copy.exists(), "{nonsense:?}: {}", down.stderr);
        assert!(somebody_listens(room.port + 1) && somebody_listens(room.port + 2), "{nonsense:?}");
    }
}

#[test]
fn foreign_files_in_the_directory_stay() {
    let room = Showroom::open();
    let (notes, folder) = (room.directory().join("notes.txt"), room.directory().join("more"));
    fs::write(&notes, "mine").expect("it can be written");
    fs::create_dir(&folder).expect("it can be made");
    let run = room.script("down", &[]);
    assert!(
        run.status.success() && run.stdout.contains("they stay"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let mut left = names_in(&room.directory());
    left.sort();
    assert_eq!(left, ["more", "notes.txt"]);
    assert!(!somebody_runs_in(&room.directory()));
    // It is no directory of servers any more.
    assert_eq!(room.script("down", &[]).status.code(), Some(1));
    assert!(notes.exists());
}

/// The program that is started as the third server ends the script at that moment.
#[test]
fn an_interrupted_start_leaves_nothing_behind() {
    let (place, workshop) = (Directory::new(), Workshop::new());
    let directory = place.path().join("my servers");
    for signal in ["HUP", "INT", "TERM"] {
        loop {
            let port = ports::free();
            let lines = format!(
                "#!/bin/sh\ncase \"$*\" in *\"--port {}\"*) kill -{signal} $PPID ;; esac\nexec {} \"$@\"\n",
                port + 2,
                product::tls_program()
            );
            let server = workshop.write(&format!("server-{signal}-{port}"), &lines);
            fs::set_permissions(&server, Permissions::from_mode(0o755)).expect("it is ours");
            let mut up = script("up");
            up.env("REDIS_SERVER", server).arg(&directory).arg(port.to_string());
            let run = workshop.run(&mut up);
            assert!(!run.status.success() && run.stdout.is_empty(), "{signal}: {}", run.stdout);
            assert!(!directory.exists(), "{signal}: {}", run.stderr);
            assert!(!somebody_runs_in(&directory), "{signal}");
            // Another test may have one of its ports, and then the script ended because of that.
            if !run.stderr.contains("is in use") {
                assert_eq!(run.stderr, "", "{signal}");
                break;
            }
        }
    }
}

#[test]
fn a_failed_start_leaves_nothing_behind() {
    let (room, workshop) = (Showroom::open(), Workshop::new());
    let directory = room.directory().with_file_name("others");
    let run = workshop.run(script("up").arg(&directory).arg(room.port.to_string()));
    assert_eq!(run.status.code(), Some(1));
    assert!(
        run.stderr.contains("is in use") && run.stderr.contains("take others"),
        "{}",
        run.stderr
    );
    assert!(!directory.exists(), "{}", run.stderr);
    assert!(somebody_listens(room.port), "it ended the servers of another directory");
}

#[test]
fn wrong_arguments_of_the_script_are_explained() {
    let (place, workshop) = (Directory::new(), Workshop::new());
    let no_directory = place.join("servers");
    for (arguments, status) in [
        (vec![], 2),
        (vec!["stop"], 2),
        (vec!["down", &no_directory, &no_directory], 2),
        (vec!["up", &no_directory, "7000", "7001"], 2),
        (vec!["up", &no_directory, &no_directory], 1),
        (vec!["up", &no_directory, "0"], 1),
        (vec!["up", &no_directory, "65434"], 1),
        (vec!["up", &no_directory, "07000"], 1),
        (vec!["up", &no_directory, "7000000000000000000000"], 1),
    ] {
        let mut command = script("");
        let path = command.get_args().next().expect("the script").to_owned();
        command = Command::new("sh");
        let run = workshop.run(command.arg(path).args(&arguments));
        assert_eq!(run.status.code(), Some(status), "{arguments:?}: {}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("up [DIRECTORY [PORT]]") == (status == 2), "{arguments:?}");
        assert_eq!(names_in(place.path()), Vec::<String>::new(), "{arguments:?}");
    }
}
