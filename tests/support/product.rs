//! The program that is used as a server, and its version. There are several programs, and several versions
//! of each.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The program that is run as a server: redis-server, unless REDIS_SERVER names another.
pub(crate) fn program() -> String {
    chosen("REDIS_SERVER")
}

/// The program for servers with TLS, which not every build supports. REDLOCK_TLS_SERVER names it.
pub(crate) fn tls_program() -> String {
    chosen("REDLOCK_TLS_SERVER")
}

fn chosen(variable: &str) -> String {
    env::var(variable).ok().filter(|it| !it.is_empty()).unwrap_or_else(|| "redis-server".to_owned())
}

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) is_valkey: bool,
    /// The first two numbers of its version.
    pub(crate) version: (u32, u32),
}

/// The kind of [`program`].
pub(crate) fn product() -> Product {
    Product::of(&program())
}

impl Product {
    /// The kind of a program, as the program reports it.
    pub(crate) fn of(program: &str) -> Self {
        static KNOWN: Mutex<BTreeMap<String, Product>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(program.to_owned()).or_insert_with(|| {
            let said = Command::new(program).arg("--version").output();
            let said = said.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
            let line = String::from_utf8_lossy(&said.stdout).into_owned();
            Self::parse(&line)
                .unwrap_or_else(|| panic!("{program} does not say what it is: {line}"))
        })
    }

    /// From text such as "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64".
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(" server v=")?;
        let mut numbers = rest.split(['.', ' ']).map(str::parse);
        let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self { is_valkey: name == "Valkey", version })
    }

    /// Whether it is a Redis before 7.0. Valkey began as 7.2, with versions of its own.
    pub(crate) fn is_before_7(self) -> bool {
        !self.is_valkey && self.version < (7, 0)
    }

    /// Whether it has `MSETEX`.
    pub(crate) fn sets_several(self) -> bool {
        let since = if self.is_valkey { (9, 1) } else { (8, 4) };
        self.version >= since
    }

    /// The command, by its name in the server's statistics, that deletes a key with a given value.
    pub(crate) fn deletes_by(self) -> &'static str {
        match (self.is_valkey, self.version) {
            (true, (9.., _)) => "delifeq",
            (false, (8, 4..) | (9.., _)) => "delex",
            _ => "eval",
        }
    }

    /// The rules that forbid a user to release anything: for the command that is tried first, and for the
    /// script that is tried after it.
    pub(crate) fn without_releases(self) -> &'static [&'static str] {
        match self.deletes_by() {
            "delifeq" => &["-delifeq", "-eval"],
            "delex" => &["-delex", "-eval"],
            _ => &["-eval"],
        }
    }
}
