//! The compilers, and the languages that the headers support.

use crate::support::program::words_of;

/// A compiler, and the language standard of its input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler {
    pub(crate) program: &'static str,
    pub(crate) standard: &'static str,
}

const C: [&str; 2] = ["gcc", "clang"];
const CXX: [&str; 2] = ["g++", "clang++"];

/// Every C compiler with each standard.
pub(crate) fn c(standards: &'static [&'static str]) -> impl Iterator<Item = Compiler> {
    each(C, standards)
}

/// Every C++ compiler with each standard.
pub(crate) fn cxx(standards: &'static [&'static str]) -> impl Iterator<Item = Compiler> {
    each(CXX, standards)
}

/// Every C++ compiler once, one with the oldest standard and one with the newest: for programs that are run.
/// Other tests, which only compile, check the headers with every compiler in every standard.
pub(crate) fn cxx_apart() -> impl Iterator<Item = Compiler> {
    cxx(&["c++11"])
        .filter(|it| it.program == CXX[0])
        .chain(cxx(&["c++20"]).filter(|it| it.program == CXX[1]))
}

/// REDLOCK_TEST_COMPILERS may select some of them, such as "gcc g++".
fn each(
    programs: [&'static str; 2],
    standards: &'static [&'static str],
) -> impl Iterator<Item = Compiler> {
    let wanted = words_of("REDLOCK_TEST_COMPILERS");
    programs
        .into_iter()
        .filter(move |it| wanted.is_empty() || wanted.iter().any(|word| word == it))
        .flat_map(|program| standards.iter().map(move |standard| Compiler { program, standard }))
}
