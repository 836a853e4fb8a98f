//! The compilers, and the languages that the headers are good for.

use crate::support::program::words_of;

/// A compiler and what it is to take its input for.
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

/// REDLOCK_TEST_COMPILERS may name those that are wanted, such as "gcc g++", and REDLOCK_TEST_STANDARDS say
/// "newest": where a program is run for what it does, not for what compilers say of it.
fn each(
    programs: [&'static str; 2],
    standards: &'static [&'static str],
) -> impl Iterator<Item = Compiler> {
    let wanted = words_of("REDLOCK_TEST_COMPILERS");
    let first = match words_of("REDLOCK_TEST_STANDARDS").as_slice() {
        [word] if word == "newest" => standards.len() - 1,
        _ => 0,
    };
    programs
        .into_iter()
        .filter(move |it| wanted.is_empty() || wanted.iter().any(|word| word == it))
        .flat_map(move |program| {
            standards[first..].iter().map(move |standard| Compiler { program, standard })
        })
}
