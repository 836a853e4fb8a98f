//! The promises of docs/RELIABILITY.md and of docs/promise.md, each with a name. Every verdict says which
//! promise is broken. `plants.rs` has a way to break each promise on purpose, and promises.md has a table
//! of all promises.

use std::fmt;

/// A promise, or a part of one that is checked separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Promise {
    OneHolder,
    WriterAlone,
    AllOrNothing,
    AtMostPermits,
    GrantInTime,
    DeadlineKept,
    DeadlineGrows,
    InTime,
    NoCrash,
    NoSecrets,
    KnownRequests,
    TrueLock,
    TrueExtend,
    TrueConfirm,
    TrueUnlock,
    TrueIsLocked,
    HandedOver,
    TrueTaken,
    TrueUnreachable,
    TrueTooSlow,
    TrueLost,
    TrueTooShort,
    TrueInvalid,
    NoFault,
    OthersKeys,
    LostStaysLost,
    LostIsNotHeld,
    ExtensionSetsNothing,
    AcquireOnce,
    TokensDiffer,
    TokensGrow,
    ReleasedInOrder,
    FailedIsReleased,
    EndsByItself,
    LockAgain,
    OtherServers,
    AnyOrder,
    LostInTime,
    LostForAReason,
    KeptNoMore,
    OneEvent,
    NotForgotten,
}

/// All promises, with their names and what is promised.
pub(crate) const PROMISES: [(Promise, &str, &str); 42] = [
    (Promise::OneHolder, "one-holder", "no two hold one resource at one time"),
    (Promise::WriterAlone, "writer-alone", "nobody shares a resource while somebody has it alone"),
    (
        Promise::AllOrNothing,
        "all-or-nothing",
        "of several resources a server has all or none, and a quorum has all when they are had",
    ),
    (
        Promise::AtMostPermits,
        "at-most-permits",
        "no more have a permit of a semaphore at one time than there are, those counted that lock its resource",
    ),
    (Promise::GrantInTime, "grant-in-time", "a grant that comes too late is none"),
    (
        Promise::DeadlineKept,
        "deadline-kept",
        "a quorum keeps the lock until the time that its holder was told",
    ),
    (
        Promise::DeadlineGrows,
        "deadline-grows",
        "no extension makes a lock shorter, for its holder or on a server",
    ),
    (Promise::InTime, "in-time", "a call comes back in its time"),
    (Promise::NoCrash, "no-crash", "nothing crashes"),
    (Promise::NoSecrets, "no-secrets", "messages hold no token and no password"),
    (
        Promise::KnownRequests,
        "known-requests",
        "servers are sent what every Redlock client sends, and the scripts that were compared with a real one",
    ),
    (Promise::TrueLock, "true-lock", "OK to Lock: a quorum granted it"),
    (
        Promise::TrueExtend,
        "true-extend",
        "OK to Extend: a quorum extended it, before its end and before it was released",
    ),
    (
        Promise::TrueConfirm,
        "true-confirm",
        "OK to Confirm: a quorum said that it has it, and has it for so long",
    ),
    (Promise::TrueUnlock, "true-unlock", "OK to Unlock: a quorum was told"),
    (
        Promise::TrueIsLocked,
        "true-is-locked",
        "what IsLocked says is so: one value on a quorum, or on none",
    ),
    (
        Promise::HandedOver,
        "handed-over",
        "a lock that was given away is its giver's no more, and is adopted by a quorum that has it",
    ),
    (Promise::TrueTaken, "true-taken", "TAKEN: somebody else had it"),
    (
        Promise::TrueUnreachable,
        "true-unreachable",
        "UNREACHABLE: no quorum answered in time, and not for the sake of a minority",
    ),
    (Promise::TrueTooSlow, "true-too-slow", "TOO_SLOW: a quorum granted, and no validity was left"),
    (Promise::TrueLost, "true-lost", "LOST: it was not ours any more"),
    (
        Promise::TrueTooShort,
        "true-too-short",
        "TOO_SHORT: it was ours, and not for as long as was asked",
    ),
    (Promise::TrueInvalid, "true-invalid", "INVALID_ARGUMENT: an argument makes no sense"),
    (Promise::NoFault, "no-fault", "no call fails without a reason"),
    (Promise::OthersKeys, "others-keys", "nobody else's key is deleted or prolonged"),
    (
        Promise::LostStaysLost,
        "lost-stays-lost",
        "a lock that a majority has lost is not vouched for again",
    ),
    (
        Promise::LostIsNotHeld,
        "lost-is-not-held",
        "a lease does not say that it is held once a call has found it lost",
    ),
    (Promise::ExtensionSetsNothing, "extension-sets-nothing", "no extension sets a key"),
    (
        Promise::AcquireOnce,
        "acquire-once",
        "no server is asked twice to set a key, unless it says that it has lost it",
    ),
    (Promise::TokensDiffer, "tokens-differ", "no token is used twice"),
    (
        Promise::TokensGrow,
        "tokens-grow",
        "a fencing token is greater than those that were told before its lock was asked for, and no two are the same",
    ),
    (
        Promise::ReleasedInOrder,
        "released-in-order",
        "a release goes over the same connection, behind what it releases",
    ),
    (
        Promise::FailedIsReleased,
        "failed-is-released",
        "what a failed attempt or an Unlock leaves is released",
    ),
    (Promise::EndsByItself, "ends-by-itself", "what no release can reach ends with its TTL"),
    (Promise::LockAgain, "lock-again", "when the fault is over, a lock is had again"),
    (
        Promise::OtherServers,
        "other-servers",
        "a lease is not used with a manager of other servers: INVALID_ARGUMENT",
    ),
    (
        Promise::AnyOrder,
        "any-order",
        "a lease may be used with every manager of the same servers, in whatever order",
    ),
    (
        Promise::LostInTime,
        "lost-in-time",
        "a lock that cannot be kept is told while a tenth of its TTL is left, if somebody asks for events",
    ),
    (
        Promise::LostForAReason,
        "lost-for-a-reason",
        "a kept lock is not told to be lost that a quorum would extend, if somebody drives",
    ),
    (
        Promise::KeptNoMore,
        "kept-no-more",
        "a lock that was unlocked, or let go of, is not renewed any more, nor told to be lost",
    ),
    (
        Promise::OneEvent,
        "one-event",
        "a submitted call has one event, and a kept lock not more than one that it is lost",
    ),
    (
        Promise::NotForgotten,
        "not-forgotten",
        "who waits has the lock in a few round trips after its release, or at its next look if what it was told is lost",
    ),
];

impl Promise {
    pub(crate) fn name(self) -> &'static str {
        PROMISES.iter().find(|it| it.0 == self).map_or("?", |it| it.1)
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The table in `promises.md` is generated from this list, from the files that report a broken promise, and
/// from `plants.rs`.
#[test]
fn the_table_of_promises_matches_the_code() {
    use std::{env, fs};

    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/played");
    let mut files: Vec<(String, String)> = Vec::new();
    let mut folders = ["schedules", "world"].map(str::to_owned).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(format!("{root}/{folder}")).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let name = format!("{folder}/{name}");
            if path.is_dir() {
                folders.push(name);
            } else if name.ends_with(".rs") {
                files.push((name, fs::read_to_string(&path).expect("a source file")));
            }
        }
    }
    files.sort();
    files.retain(|it| !["schedules/promises.rs", "schedules/plants.rs"].contains(&&*it.0));
    let mut table =
        "| promise | what is promised | looked at in | seen broken by |\n|---|---|---|---|\n"
            .to_owned();
    for (promise, name, words) in PROMISES {
        let says = |it: &str| {
            let variant = format!("Promise::{promise:?}");
            it.match_indices(&variant).any(|(at, found)| {
                !it[at + found.len()..].starts_with(|it: char| it.is_ascii_alphanumeric())
            })
        };
        let places: Vec<_> =
            files.iter().filter(|it| says(&it.1)).map(|it| format!("`{}`", it.0)).collect();
        assert!(!places.is_empty(), "nobody looks at {promise}");
        let plants = crate::schedules::plants::PLANTS.iter().filter(|it| it.1 == promise);
        let plants: Vec<_> = plants.map(|it| it.0.to_string()).collect();
        let (places, plants) = (places.join(", "), plants.join("; "));
        table += &format!("| `{name}` | {words} | {places} | {plants} |\n");
    }
    let path = format!("{root}/schedules/promises.md");
    if env::var_os("REDLOCK_WRITE_PROMISES").is_some() {
        let page = fs::read_to_string(&path).unwrap_or_default();
        let head = page.split_once("| promise").map_or(&*page, |it| it.0);
        fs::write(&path, format!("{head}{table}")).expect("it can be written");
    }
    let page = fs::read_to_string(&path).expect("tests/played/schedules/promises.md");
    assert!(
        page.ends_with(&table),
        "tests/played/schedules/promises.md is to have this table:\n{table}"
    );
}
