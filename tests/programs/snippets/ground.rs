//! The environment of a block of a page: servers, a directory with the files that pages mention, and the
//! library as if it were installed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use super::judge;
use crate::go::go;
use crate::library;
use crate::node;
use crate::pages::Snippet;
#[cfg(feature = "tls")]
use crate::secure::Showroom;
#[cfg(feature = "tls")]
use crate::support::Authority;
use crate::support::nodes::Nodes;
use crate::support::{Cluster, Server};
use crate::workshop::Workshop;

/// The ports of servers in pages. Three are started unless one of the last two is named.
const PORTS: [&str; 5] = ["6379", "6380", "6381", "6382", "6383"];
/// The ports with TLS, as c-examples/servers.sh starts them.
#[cfg(feature = "tls")]
const TLS_PORTS: [&str; 3] = ["6479", "6480", "6481"];

/// The ports of the masters of a cluster in pages. It is started if one of them is named.
const NODE_PORTS: [&str; 3] = ["7001", "7002", "7003"];

/// Commands in pages that change the system. The tests replace them with commands that do nothing.
const IDLE: [&str; 3] = ["apt", "apt-get", "sudo"];

const PROGRAM: &str = "#include <redlock.h>\n#include <stdio.h>\n\
    int main(void) {\n    puts(RedLock_Version());\n    return 0;\n}\n";

pub(super) struct Ground {
    pub(super) workshop: Workshop,
    pub(super) cluster: Cluster,
    nodes: Option<Nodes>,
    place: PathBuf,
    #[cfg(feature = "tls")]
    room: Option<Showroom>,
    #[cfg(feature = "tls")]
    _authority: Option<Authority>,
}

impl Ground {
    pub(super) fn new(snippet: &Snippet) -> Self {
        let text = snippet.everything();
        let count = if names(&text, PORTS[3]) || names(&text, PORTS[4]) { 5 } else { 3 };
        let workshop = Workshop::new();
        let place = workshop.write("place/program.c", PROGRAM);
        workshop.write("place/program.cpp", &PROGRAM.replace("redlock.h>", "redlock.hpp>"));
        let place = place.parent().expect("it is in a directory").to_owned();
        let ground = Self {
            #[cfg(feature = "tls")]
            room: TLS_PORTS.iter().any(|it| names(&text, it)).then(Showroom::open),
            #[cfg(feature = "tls")]
            _authority: text.contains(".pem").then(|| certificates(&place)),
            workshop,
            cluster: Cluster::start(count),
            nodes: NODE_PORTS
                .iter()
                .any(|it| names(&text, it))
                .then(|| Nodes::start(NODE_PORTS.len(), false)),
            place,
        };
        ground.furnish();
        ground
    }

    fn furnish(&self) {
        let root = library::root();
        for (name, target) in [
            ("bindings", root.join("bindings")),
            ("c-examples", root.join("c-examples")),
            // By their package names.
            ("node_modules/redlock-native", root.join("bindings/node")),
            ("redlock_native", root.join("bindings/python/redlock")),
            ("redlock", root.join("bindings/ruby/lib/redlock")),
            ("redlock.rb", root.join("bindings/ruby/lib/redlock.rb")),
            #[cfg(feature = "tls")]
            ("servers", self.room.as_ref().map_or_else(PathBuf::new, Showroom::directory)),
        ] {
            let link = self.place.join(name);
            fs::create_dir_all(link.parent().expect("it is in a directory")).expect("it is ours");
            if target.exists() {
                symlink(target, link).expect("a link can be made");
            }
        }
        for name in IDLE {
            self.tool(name, "exit 0");
        }
        // Other tests check what it builds and installs. This one checks that its targets exist.
        let make = format!("exec {} -n -C '{}' \"$@\" > make.log", real("make"), root.display());
        self.tool("make", &make);
        let (include, lib) = (root.join("include"), library::directory());
        let pc = format!(
            "Name: redlock\nDescription: as installed\nVersion: {}\nCflags: -I{}\nLibs: -L{} -lredlock\n",
            env!("CARGO_PKG_VERSION"),
            include.display(),
            lib.display()
        );
        self.workshop.write("prefix/lib/pkgconfig/redlock.pc", &pc);
        symlink(include, self.prefix().join("include")).expect("a link can be made");
        for name in fs::read_dir(lib).expect("it is there") {
            let path = name.expect("it can be read").path();
            let to = self.prefix().join("lib").join(path.file_name().expect("a name"));
            symlink(path, to).expect("a link can be made");
        }
        let full = concat!("lib/libredlock.so.", env!("CARGO_PKG_VERSION"));
        symlink(crate::support::library::path(), self.prefix().join(full))
            .expect("a link can be made");
    }

    fn tool(&self, name: &str, line: &str) {
        let path = self.workshop.write(&format!("tools/{name}"), &format!("#!/bin/sh\n{line}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// Where the library is as if it were installed.
    pub(super) fn prefix(&self) -> PathBuf {
        self.place.with_file_name("prefix")
    }

    /// Writes a file in the block's directory, with the ports of these servers, and the path of this project.
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let mut text = text.to_owned();
        for (port, server) in PORTS.iter().zip(self.cluster.iter()) {
            text = replace(&text, port, &server.port().to_string());
        }
        for (port, node) in NODE_PORTS.iter().zip(self.nodes.iter().flat_map(|it| &it.servers)) {
            text = replace(&text, port, &node.port().to_string());
        }
        #[cfg(feature = "tls")]
        if let Some(room) = &self.room {
            for (number, port) in (100..).zip(TLS_PORTS) {
                text = replace(&text, port, &(room.port + number).to_string());
            }
            // The relative path differs, because `bindings` is a link here.
            text = text.replace("../../servers", &self.place.join("servers").display().to_string());
        }
        text = text.replace("/path/to/", &format!("{}/", library::root().display()));
        self.workshop.write(&format!("place/{name}"), &text)
    }

    /// Runs it to its end, which must be as the page says, unless it must only be built.
    #[track_caller]
    pub(super) fn run(&self, snippet: &Snippet, command: &mut Command) {
        if !snippet.has("compile") {
            self.dress(command);
            if command.get_program() == "node" || snippet.everything().contains("node ") {
                command.env("REDLOCK_ADDON", addon());
            }
            // It is seldom needed, and takes a while to build.
            if snippet.code.lines().any(|it| it.trim_start().starts_with("redlock ")) {
                command.env("PATH", format!("{}:{}", programs().display(), self.path()));
            }
            let run = self.workshop.run(command);
            judge(snippet, &run);
        }
    }

    /// The search path for programs.
    fn path(&self) -> String {
        let tools = self.place.with_file_name("tools");
        format!("{}:{}", tools.display(), env::var("PATH").unwrap_or_default())
    }

    fn dress(&self, command: &mut Command) {
        let (root, prefix) = (library::root(), self.prefix());
        let servers: Vec<_> = self.cluster.iter().map(Server::address).collect();
        let variables = go(root)
            .get_envs()
            .filter_map(|it| Some((it.0.to_owned(), it.1?.to_owned())))
            .collect::<Vec<_>>();
        command.current_dir(&self.place).envs(variables);
        command.env("PATH", self.path()).env("PREFIX", &prefix);
        command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        command.env("LD_LIBRARY_PATH", library::directory());
        command.env("REDLOCK_LIBRARY", library::directory().join("libredlock.so"));
        command.env("REDLOCK_SERVERS", servers.join(","));
        command.env("PYTHONPATH", root.join("bindings/python"));
        let ruby = format!("{}:{}", root.join("bindings/ruby/lib").display(), self.place.display());
        command.env("RUBYLIB", ruby);
    }
}

/// Where programs of the project are, such as its command, built once.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let built = env::current_exe().expect("this program has a path");
        let place = built.parent().and_then(Path::parent).expect("it is in a directory").to_owned();
        let manifest = fs::read_to_string(library::root().join("Cargo.toml")).expect("Cargo.toml");
        if manifest.contains("[workspace]") {
            let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
            // As `make test` builds it. Otherwise it would be built again, with the library.
            cargo.args(["test", "--quiet", "--workspace", "--test", "tool", "--no-run"]);
            cargo.current_dir(library::root());
            Workshop::new().succeed(cargo.env("CARGO_TARGET_DIR", place.with_file_name("")));
        }
        place
    })
}

/// The addon for Node.js, built once.
fn addon() -> &'static Path {
    static ADDON: OnceLock<(Workshop, PathBuf)> = OnceLock::new();
    let (_, addon) = ADDON.get_or_init(|| {
        let workshop = Workshop::new();
        let addon = node::build(&workshop, "cc");
        (workshop, addon)
    });
    addon
}

/// The files that pages name: ca.pem, client.pem and client.key.
#[cfg(feature = "tls")]
fn certificates(place: &Path) -> Authority {
    let authority = Authority::new();
    let client = authority.client();
    for (from, to) in [
        (&authority.file(), "ca.pem"),
        (&client.certificate, "client.pem"),
        (&client.key, "client.key"),
    ] {
        fs::copy(from, place.join(to)).expect("it can be copied");
    }
    authority
}

fn real(program: &str) -> String {
    let path = env::var("PATH").unwrap_or_default();
    let mut places = path.split(':').map(|it| format!("{it}/{program}"));
    places.find(|it| Path::new(it).exists()).unwrap_or_else(|| panic!("{program} is needed"))
}

/// Whether the text has this number, and not only as a part of a longer one.
fn names(text: &str, number: &str) -> bool {
    replace(text, number, "") != text
}

fn replace(text: &str, number: &str, by: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(number) {
        let is_part = before.ends_with(|it: char| it.is_ascii_digit())
            || after.starts_with(|it: char| it.is_ascii_digit());
        made.push_str(before);
        made.push_str(if is_part { number } else { by });
        rest = after;
    }
    made + rest
}
