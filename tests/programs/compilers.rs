//! The compilers, and the languages that the headers are good for.

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

fn each(
    programs: [&'static str; 2],
    standards: &'static [&'static str],
) -> impl Iterator<Item = Compiler> {
    programs
        .into_iter()
        .flat_map(|program| standards.iter().map(move |standard| Compiler { program, standard }))
}
