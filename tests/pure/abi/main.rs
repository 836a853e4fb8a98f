//! The interface that programs were built against must not change. These tests compare it with the record in
//! `abi/`. If it has changed, the message says what to do.

#[allow(dead_code)]
#[path = "../../support/directory.rs"]
mod directory;
#[allow(dead_code)]
#[path = "../../support/library.rs"]
mod library;

mod abigail;
mod compiler;
mod interface;
mod plain;
mod record;
mod verdict;

use std::collections::BTreeSet;
use std::env;
use std::path::Path;

use abigail::Finding;
use record::Record;
use verdict::Verdict;

/// If ABI_RECORD is set, records the interface instead. See `make abi-record`.
#[test]
fn the_interface_is_as_recorded() {
    let now = interface::now();
    let recorded = Record::read();
    let verdict = Verdict::on(recorded.as_ref(), &now);
    if env::var_os("ABI_RECORD").is_some() {
        assert!(!verdict.forbids_recording(), "{verdict}");
        Record::write(&now);
        return;
    }
    assert!(verdict.is_good(), "{verdict}");
}

#[test]
fn libabigail_finds_no_break() {
    if Verdict::on(Record::read().as_ref(), &interface::now()).has_grown_struct() {
        return println!("left out: a struct has grown. Record it first");
    }
    match abigail::compare() {
        Finding::None => {}
        Finding::LeftOut(why) => println!("left out: {why}"),
        Finding::Break(words) => panic!("{words}\n{}", verdict::what_to_do()),
    }
}

/// In C++ and in C23, a status is an enumeration type of its own. It must have the same size as in C11.
#[test]
fn a_status_is_an_int32_in_every_language() {
    let claim = "(sizeof(RedLockStatus) == sizeof(int32_t), \"\")";
    let c = format!("#include \"redlock.h\"\n_Static_assert{claim};\n");
    let cpp = format!("#include \"redlock.h\"\nstatic_assert{claim};\n");
    compiler::accepts(&["-x", "c", "-std=c11"], &c);
    compiler::accepts(&["-x", "c", "-std=c2x"], &c);
    compiler::accepts(&["-x", "c++", "-std=c++11"], &cpp);
}

#[test]
fn the_library_has_the_recorded_functions() {
    let recorded: BTreeSet<_> = Record::read().expect("there is a record").functions();
    assert_eq!(library_of(&library::path()), (recorded.clone(), library::SONAME.to_owned()));
    assert_eq!(library_of(&plain::build()), (recorded, library::SONAME.to_owned()));
}

/// The functions that a library exports, and its soname.
fn library_of(library: &Path) -> (BTreeSet<String>, String) {
    let listing = compiler::output("nm", &["-D", "--defined-only"], library);
    let exported = listing.lines().filter_map(|it| it.split_whitespace().last());
    let dynamic = compiler::output("readelf", &["-d", "--wide"], library);
    let soname = dynamic.lines().find(|it| it.contains("(SONAME)")).expect("it has a soname");
    let soname = soname.rsplit(['[', ']']).nth(1).expect("it stands in brackets");
    (exported.map(str::to_owned).collect(), soname.to_owned())
}
