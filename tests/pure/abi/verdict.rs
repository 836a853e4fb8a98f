//! What a change of the interface means, and what must be done about it.

use std::fmt;

use crate::library;
use crate::record::Record;

/// How the interface differs from the recorded one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Unrecorded,
    /// The library has another name. Programs that ask for the old name do not get the new library.
    Renamed,
    /// The interface has everything that was recorded, and more.
    More {
        added: Vec<String>,
    },
    /// Something that programs may use has changed or is missing.
    Broken {
        gone: Vec<String>,
        added: Vec<String>,
    },
}

impl Verdict {
    pub(crate) fn on(recorded: Option<&Record>, now: &[String]) -> Self {
        let Some(Record { lines }) = recorded else { return Self::Unrecorded };
        let without = |these: &[String], others: &[String]| -> Vec<String> {
            these.iter().filter(|it| !others.contains(it)).cloned().collect()
        };
        let (mut gone, added) = (without(lines, now), without(now, lines));
        gone.retain(|before| !added.iter().any(|after| has_grown(before, after)));
        if gone.is_empty() && added.is_empty() {
            Self::Same
        } else if gone.iter().any(|it| it.starts_with("library ")) {
            Self::Renamed
        } else if gone.is_empty() {
            Self::More { added }
        } else {
            Self::Broken { gone, added }
        }
    }

    /// Whether a struct is longer than the recorded one, which libabigail would call a break.
    pub(crate) fn has_grown_struct(&self) -> bool {
        matches!(self, Self::More { added } if added.iter().any(|it| it.contains(SIZED)))
    }

    pub(crate) fn is_good(&self) -> bool {
        *self == Self::Same
    }

    pub(crate) fn forbids_recording(&self) -> bool {
        matches!(self, Self::Broken { .. })
    }
}

/// How a struct begins that may become longer: the library asks a program how long the struct is that it knows.
const SIZED: &str = ": struct { size_t size;";

/// Whether the second line is the first one with more at the end: more fields in a struct that begins with its size, or
/// more values in the macro that initializes one.
fn has_grown(before: &str, after: &str) -> bool {
    let has_more = |end: &str, more: &str| {
        let start = before.strip_suffix(end);
        start.is_some_and(|start| {
            after.starts_with(&format!("{start}{more}")) && after.ends_with(end)
        })
    };
    before.contains(SIZED) && has_more("}", "")
        || before.starts_with("macro ") && before.contains(" {sizeof(") && has_more("}", ", ")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => write!(f, "the interface is the recorded one"),
            Self::Unrecorded => write!(f, "no interface is recorded: run `make abi-record`"),
            Self::Renamed => write!(
                f,
                "The library is {} now, so it may have another interface: run `make abi-record`, look at \
                 what changes in abi/, and commit that.",
                library::SONAME
            ),
            Self::More { added } => write!(
                f,
                "There is more in the interface than is recorded:\n{}That breaks no program. Run `make \
                 abi-record` and commit abi/: from then on it is to stay.",
                listed('+', added)
            ),
            Self::Broken { gone, added } => write!(
                f,
                "This breaks programs that were built with {}:\n{}{}{}",
                library::SONAME,
                listed('-', gone),
                listed('+', added),
                what_to_do()
            ),
        }
    }
}

/// Says what must be done about a break.
pub(crate) fn what_to_do() -> String {
    format!(
        "From 0.3 on the interface only grows. Leave it as it was, and add what is new under a name of its \
         own. If it has to be, raise the minor version (below 1.0; from then on the major one) in Cargo.toml \
         and in src/ffi/version.rs, so that the library gets another name than {}, and every program must be \
         built again; then run `make header` and `make abi-record`, and commit abi/.",
        library::SONAME
    )
}

fn listed(mark: char, lines: &[String]) -> String {
    lines.iter().map(|it| format!("  {mark} {it}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: [&str; 4] = [
        "library libredlock.so.0.3",
        "type S: a struct that only the library knows",
        "constant E A = 0",
        "function F: E (S *, int)",
    ];

    fn lines(these: &[&str]) -> Vec<String> {
        these.iter().map(|&it| it.to_owned()).collect()
    }

    fn verdict(now: &[&str]) -> Verdict {
        Verdict::on(Some(&Record { lines: lines(&RECORDED) }), &lines(now))
    }

    #[test]
    fn an_addition_is_no_break_but_must_be_recorded() {
        assert!(verdict(&RECORDED).is_good());
        for more in ["function G: void (S *)", "constant E B = 1", "macro REDLOCK_X 1"] {
            let verdict = verdict(&[&RECORDED[..], &[more]].concat());
            assert_eq!(verdict, Verdict::More { added: lines(&[more]) });
            assert!(!verdict.is_good() && !verdict.forbids_recording());
            assert!(verdict.to_string().contains("make abi-record"), "{verdict}");
        }
    }

    /// Programs that know the shorter struct say so with its size.
    #[test]
    fn a_struct_with_a_size_may_become_longer() {
        let short = ["type O: struct { size_t size; int a; }", "macro O_INIT {sizeof(O), 0}"];
        let long =
            ["type O: struct { size_t size; int a; int b; }", "macro O_INIT {sizeof(O), 0, 0}"];
        let record = Record { lines: lines(&short) };
        let verdict = Verdict::on(Some(&record), &lines(&long));
        assert_eq!(verdict, Verdict::More { added: lines(&long) });
        assert!(verdict.has_grown_struct());
        let breaks = [
            "type O: struct { size_t size; int64_t a; }",
            "type O: struct { size_t size; int b; int a; }",
            "type O: struct { size_t size; }",
            "type P: struct { size_t size; int a; int b; }",
        ];
        for after in breaks {
            let verdict = Verdict::on(Some(&record), &lines(&[after, short[1]]));
            assert!(verdict.forbids_recording(), "{after}");
        }
        let fixed = Record { lines: lines(&["type O: struct { int a; }"]) };
        let verdict = Verdict::on(Some(&fixed), &lines(&["type O: struct { int a; int b; }"]));
        assert!(verdict.forbids_recording(), "nobody can tell how long it is");
    }

    #[test]
    fn a_removal_or_change_is_a_break() {
        let changes = [
            ("type S: a struct that only the library knows", "type S: struct S { int a; }"),
            ("constant E A = 0", "constant E A = 2"),
            ("function F: E (S *, int)", "function F: E (S *, int64_t)"),
            ("function F: E (S *, int)", "function F: void (S *, int)"),
            ("function F: E (S *, int)", ""),
        ];
        for (before, after) in changes {
            let now = RECORDED.map(|it| if it == before { after } else { it });
            let now: Vec<_> = now.into_iter().filter(|it| !it.is_empty()).collect();
            let verdict = verdict(&now);
            assert!(verdict.forbids_recording(), "{verdict}");
            for words in ["minor version", "make abi-record", before, after] {
                assert!(verdict.to_string().contains(words), "{verdict}");
            }
        }
    }

    #[test]
    fn nothing_that_is_recorded_can_be_removed() {
        let record = Record::read().expect("there is a record");
        let (library, parts) = record.lines.split_first().expect("it has lines");
        assert!(library.starts_with("library ") && parts.len() > 100, "{library}");
        for part in parts {
            let now: Vec<_> = record.lines.iter().filter(|it| *it != part).cloned().collect();
            let verdict = Verdict::on(Some(&record), &now);
            assert!(verdict.forbids_recording(), "{part}");
            assert!(verdict.to_string().contains(&format!("  - {part}\n")), "{verdict}");
        }
    }

    #[test]
    fn a_new_library_name_allows_every_change() {
        let verdict = verdict(&["library libredlock.so.0.4", "constant E A = 2"]);
        assert_eq!(verdict, Verdict::Renamed);
        assert!(!verdict.is_good() && !verdict.forbids_recording());
    }

    #[test]
    fn a_missing_record_is_not_good() {
        let verdict = Verdict::on(None, &lines(&RECORDED));
        assert!(!verdict.is_good() && !verdict.forbids_recording());
    }
}
