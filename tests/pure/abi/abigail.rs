//! Compares the interface with libabigail, if it is installed. libabigail compares everything that debuggers are
//! told about an interface, to the last bit.
//!
//! The compared library is written in C. It has the functions of the header with empty bodies. With the real
//! library, libabigail would also report its internals, which programs do not depend on.

use std::env::consts::ARCH;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::compiler::{self, root};
use crate::directory::Directory;
use crate::library;

/// The output of abidw for the recorded interface.
pub(crate) const DUMP: &str = "abi/redlock.x86_64.xml";
/// The architecture that the interface was recorded on. Sizes depend on it.
const RECORDED_ON: &str = "x86_64";

pub(crate) enum Finding {
    None,
    LeftOut(String),
    Break(String),
}

/// Compares the header as it is now with the record.
pub(crate) fn compare() -> Finding {
    if ARCH != RECORDED_ON {
        return Finding::LeftOut(format!("the record is of {RECORDED_ON}"));
    }
    let dump = root().join(DUMP);
    if !fs::read_to_string(&dump).is_ok_and(|it| it.contains(library::SONAME)) {
        return Finding::LeftOut(format!("there is no record of {}", library::SONAME));
    }
    let hollow = Hollow::make();
    let mut command = Command::new("abidiff");
    command.args(["--no-added-syms", "--no-show-locs"]).arg(dump).arg(&hollow.library);
    match command.output() {
        Err(_) => Finding::LeftOut("there is no abidiff (Debian: abigail-tools)".to_owned()),
        Ok(said) if said.status.success() => Finding::None,
        Ok(said) => Finding::Break(format!(
            "abidiff ends with {}:\n{}{}",
            said.status,
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        )),
    }
}

/// The output of abidw for the header as it is now.
#[track_caller]
pub(crate) fn dump() -> String {
    assert_eq!(ARCH, RECORDED_ON, "the interface is recorded on {RECORDED_ON}");
    let hollow = Hollow::make();
    let options = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed"];
    let said = Command::new("abidw").args(options).arg(&hollow.library).output();
    let said = said.unwrap_or_else(|error| panic!("abidw (Debian: abigail-tools): {error}"));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).expect("names are UTF-8")
}

/// A library whose functions are those of the header and do nothing.
struct Hollow {
    library: PathBuf,
    _directory: Directory,
}

impl Hollow {
    #[track_caller]
    fn make() -> Self {
        let directory = Directory::new();
        let library = PathBuf::from(directory.join("libhollow.so"));
        let header = compiler::reads_header(&["-E"]);
        let functions = crate::interface::prototypes(&header);
        let bodies: String =
            functions.iter().map(|it| format!("{it} {{ for (;;) {{ }} }}\n")).collect();
        let text = format!("#include \"redlock.h\"\n{bodies}");
        compiler::makes_library(&text, library::SONAME, &library);
        Self { library, _directory: directory }
    }
}
