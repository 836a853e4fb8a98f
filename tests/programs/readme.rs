//! What the README shows, built and run as it stands there. Only the ports are others: those of
//! servers that were started for this.

use std::fs;
#[cfg(feature = "tls")]
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::compilers;
use crate::go::go;
use crate::library;
use crate::node::{self, node};
use crate::python::python;
use crate::ruby::ruby;
#[cfg(feature = "tls")]
use crate::secure::Showroom;
#[cfg(feature = "tls")]
use crate::support::Authority;
use crate::support::{Cluster, Server, wait_until};
use crate::workshop::Workshop;

const PORTS: [&str; 3] = ["6379", "6380", "6381"];

#[test]
fn the_c_example_runs() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let source = workshop.write("readme.c", &shown("c", &cluster));
    for compiler in compilers::c(&["c99", "c11", "c17"]) {
        let program = workshop.build(compiler, &[&source]);
        let run = workshop.succeed(&mut Command::new(&program));
        assert!(run.stdout.starts_with("ours for "), "{}", run.stdout);
        assert_eq!(run.stderr, "");
    }
    took_locks_and_gave_them_back(&cluster);
}

#[test]
fn the_c_example_says_why_it_cannot() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let source = workshop.write("readme.c", &shown("c", &cluster));
    let program = workshop.build(compilers::c(&["c11"]).next().expect("one"), &[&source]);
    cluster[..2].iter().for_each(Server::kill);
    let run = workshop.run(&mut Command::new(&program));
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stdout.starts_with("REDLOCK_UNREACHABLE: "), "{}", run.stdout);
    assert!(run.stdout.contains(&cluster[0].address()), "{}", run.stdout);
}

#[test]
fn the_cpp_lines_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let lines = shown("cpp", &cluster);
    let headers = "#include <mutex>\n#include \"redlock.hpp\"\n";
    let source = workshop.write("readme.cpp", &format!("{headers}int main() {{\n{lines}}}\n"));
    for compiler in compilers::cxx(&["c++11", "c++20"]) {
        let program = workshop.build(compiler, &[&source]);
        workshop.succeed(&mut Command::new(&program));
    }
    took_locks_and_gave_them_back(&cluster);
}

#[test]
fn the_go_lines_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let lines = shown("go", &cluster);
    let ours = library::root().join("c-examples/go");
    let module = format!(
        "module readme\ngo 1.19\nrequire redlock.example/redlock v0.0.0\n\
         replace redlock.example/redlock => {}\n",
        ours.display()
    );
    let source = format!(
        "package main\nimport (\n\"context\"\n\"time\"\n\"redlock.example/redlock\"\n)\n\
         func main() {{\nif err := run(context.Background()); err != nil {{\npanic(err)\n}}\n}}\n\
         func run(ctx context.Context) error {{\n{lines}return nil\n}}\n"
    );
    let module = workshop.write("go/go.mod", &module);
    workshop.write("go/main.go", &source);
    let module = module.parent().expect("it is in a directory");
    workshop.succeed(go(module).args(["run", "."]));
    took_locks_and_gave_them_back(&cluster);
}

#[test]
fn the_ruby_lines_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let lines = shown("ruby", &cluster).replace("|lease|", "|_lease|");
    let ours = library::root().join("c-examples/ruby/redlock");
    let before = format!("require {ours:?}\ndef send_invoice = puts(:sent)\n");
    let script = workshop.write("readme.rb", &(before + &lines));
    let run = workshop.succeed(&mut ruby(&script));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("sent\n", ""));
    took_locks_and_gave_them_back(&cluster);
}

#[test]
fn the_node_lines_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let lines = shown("js", &cluster).replace("\"redlock-native\"", &in_node());
    let script = format!(
        "async function sendInvoice() {{ console.log('sent'); }}\n(async () => {{\n{lines}}})();\n"
    );
    let script = workshop.write("readme.js", &script);
    let run = workshop.succeed(&mut node(&script, &node::build(&workshop, "cc")));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("sent\n", ""));
    took_locks_and_gave_them_back(&cluster);
}

/// As JavaScript names the module.
fn in_node() -> String {
    format!("{:?}", library::root().join("c-examples/node"))
}

#[test]
fn the_python_lines_run() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let lines = shown("python", &cluster);
    let before = "import redlock\ndef send_invoice(): print('sent')\n";
    let script = workshop.write("readme.py", &(before.to_owned() + &lines));
    let run = workshop.succeed(&mut python(&script));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("sent\n", ""));
    took_locks_and_gave_them_back(&cluster);
}

/// They connect to nobody: it is enough that the settings are taken.
#[cfg(feature = "tls")]
#[test]
fn the_ruby_python_and_node_lines_about_tls_run() {
    let (authority, workshop) = (Authority::new(), Workshop::new());
    let line = |language: &str| {
        let readme = fs::read_to_string(library::root().join("README.md")).expect("README.md");
        let row = readme.lines().find_map(|it| it.strip_prefix(&format!("| {language} | `")));
        let row = row.expect("the README has a row for it").replace("ca.pem", &authority.file());
        let (row, _) = row.split_once('`').expect("it is code");
        let row = row.replace("\", …", "\"").replace('…', "'somebody'");
        assert!(row.contains("rediss://") && row.contains("somebody"), "{row}");
        row
    };
    let ours = library::root().join("c-examples/ruby/redlock");
    let script = workshop.write("tls.rb", &format!("require {ours:?}\n{}\n", line("Ruby")));
    assert_eq!(workshop.succeed(&mut ruby(&script)).stderr, "");
    let script = workshop.write("tls.py", &format!("import redlock\n{}\n", line("Python")));
    assert_eq!(workshop.succeed(&mut python(&script)).stderr, "");
    let lines = format!("const {{ Manager }} = require({});\n{}\n", in_node(), line("Node.js"));
    let script = workshop.write("tls.js", &lines);
    let addon = node::build(&workshop, "cc");
    assert_eq!(workshop.succeed(&mut node(&script, &addon)).stderr, "");
}

/// With the servers of the script, on ports that are free, and the library where it was built.
#[cfg(feature = "tls")]
#[test]
fn the_lines_to_try_tls_with_run() {
    let (room, workshop) = (Showroom::open(), Workshop::new());
    let block = blocks("sh").into_iter().find(|it| it.starts_with("set -- rediss://"));
    let mut block = block.expect("the block begins with the addresses");
    for (number, port) in [":6479", ":6480", ":6481"].into_iter().enumerate() {
        assert_eq!(block.matches(port).count(), 1, "{port} in:\n{block}");
        block = block.replace(port, &format!(":{}", usize::from(room.port) + 100 + number));
    }
    let pc = format!(
        "Name: redlock\nDescription: as installed\nVersion: 0\nCflags: -I{}\nLibs: -L{} -lredlock\n",
        library::root().join("include").display(),
        library::directory().display()
    );
    let pc = workshop.write("here/pkgconfig/redlock.pc", &pc);
    let here = pc.ancestors().nth(2).expect("a directory");
    symlink(library::root().join("c-examples"), here.join("c-examples")).expect("a link");
    symlink(room.directory(), here.join("servers")).expect("a link");
    // That is where the link to c-examples/go leads.
    let block = block.replace("../../servers", &here.join("servers").display().to_string());
    let mut command = Command::new("sh");
    command.args(["-euc", &block]).current_dir(here);
    for language in [go(here), ruby(here), python(here)] {
        let variables = language.get_envs().filter(|it| it.0 != "PYTHONPATH");
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    }
    command.env("PKG_CONFIG_PATH", pc.parent().expect("a directory"));
    command.env("LD_LIBRARY_PATH", library::directory());
    let run = workshop.succeed(&mut command);
    assert_eq!(run.stdout.matches("in secret").count(), 5, "{}", run.stdout);
}

/// Whoever has redlock-py, too, copies ours under another name.
#[test]
fn the_python_file_goes_by_another_name() {
    let (cluster, workshop) = (Cluster::start(3), Workshop::new());
    let readme = fs::read_to_string(library::root().join("README.md")).expect("README.md");
    assert!(readme.contains("`redlock_c.py`") && readme.contains("`import redlock_c`"));
    let ours = library::root().join("c-examples/python/redlock.py");
    let ours = workshop.write("redlock_c.py", &fs::read_to_string(ours).expect("it can be read"));
    workshop.write("redlock.py", "class Redlock: pass\n");
    let lines = shown("python", &cluster).replace("redlock.Manager", "redlock_c.Manager");
    let before =
        "import redlock\nimport redlock_c\nredlock.Redlock()\ndef send_invoice(): print('sent')\n";
    let script = workshop.write("readme.py", &(before.to_owned() + &lines));
    let mut command = python(&script);
    let run = workshop.succeed(command.env("PYTHONPATH", ours.parent().expect("a directory")));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("sent\n", ""));
    took_locks_and_gave_them_back(&cluster);
}

#[test]
fn the_lines_about_events_compile() {
    let workshop = Workshop::new();
    let lines = blocks("c").swap_remove(1);
    let text = format!(
        "#include <redlock.h>\nvoid handle(void *user_data, RedLockStatus status, RedLockLease *lease);\n\
         void take(RedLock *rl, RedLockLease *lease, void *my_request);\n\
         void take(RedLock *rl, RedLockLease *lease, void *my_request) {{\n{lines}}}\n"
    );
    let source = workshop.write("events.c", &text);
    for compiler in compilers::c(&["c99"]) {
        assert_eq!(workshop.check(compiler, &source, &[]), Ok(()));
    }
}

#[test]
fn the_lines_about_tls_compile() {
    let workshop = Workshop::new();
    let lines = blocks("c").swap_remove(2);
    let text = format!(
        "#include <redlock.h>\n#include <stdio.h>\nvoid configure(RedLock *rl);\nvoid configure(RedLock *rl) {{\n{lines}}}\n"
    );
    let source = workshop.write("tls.c", &text);
    for compiler in compilers::c(&["c99"]) {
        assert_eq!(workshop.check(compiler, &source, &[]), Ok(()));
    }
}

#[test]
fn the_lines_about_fencing_tokens_compile() {
    let workshop = Workshop::new();
    let lines = blocks("c").swap_remove(4);
    assert!(lines.contains("RedLockLease_FencingToken"), "{lines}");
    let text = format!(
        "#include <redlock.h>\nint64_t draw(RedLock *rl, RedLockLease *lease);\n\
         int64_t draw(RedLock *rl, RedLockLease *lease) {{\n{lines}return token;\n}}\n"
    );
    let source = workshop.write("fencing.c", &text);
    for compiler in compilers::c(&["c99"]) {
        assert_eq!(workshop.check(compiler, &source, &[]), Ok(()));
    }
}

#[test]
fn the_lines_about_looking_at_a_lock_and_handing_it_over_compile() {
    let workshop = Workshop::new();
    let mut blocks = blocks("c");
    let (handing, looking) = (blocks.swap_remove(6), blocks.swap_remove(5));
    assert!(looking.contains("RedLock_Inspect") && handing.contains("RedLock_Detach"));
    let text = format!(
        "#define _POSIX_C_SOURCE 200809L\n#include <redlock.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         void look(RedLock *rl);\nvoid look(RedLock *rl) {{\n{looking}}}\n\
         void hand(RedLock *rl, RedLockLease *lease);\n\
         void hand(RedLock *rl, RedLockLease *lease) {{\n{handing}}}\n"
    );
    let source = workshop.write("looking.c", &text);
    for compiler in compilers::c(&["c99"]) {
        assert_eq!(workshop.check(compiler, &source, &[]), Ok(()));
    }
}

/// The blocks of the README in a language.
fn blocks(language: &str) -> Vec<String> {
    let readme = fs::read_to_string(library::root().join("README.md")).expect("README.md");
    let fence = format!("\n```{language}\n");
    let block = |after: &str| format!("{}\n", after.split_once("\n```").expect("the block ends").0);
    readme.split(&fence).skip(1).map(block).collect()
}

/// The first block in a language, with the ports of these servers.
fn shown(language: &str, cluster: &Cluster) -> String {
    let mut block = blocks(language).swap_remove(0);
    for (port, server) in PORTS.iter().zip(cluster.iter()) {
        assert_eq!(block.matches(port).count(), 1, "port {port} in:\n{block}");
        block = block.replace(port, &server.port().to_string());
    }
    block
}

#[track_caller]
fn took_locks_and_gave_them_back(cluster: &Cluster) {
    let deletes = |server: &Server| ["del", "delex", "delifeq"].map(|it| server.calls(it));
    let released = |server: &&Server| deletes(server).iter().sum::<u64>() > 0;
    wait_until("the servers released", || {
        cluster.iter().filter(released).count() >= cluster.quorum()
    });
    cluster.wait_until_gone("invoice:42");
}
