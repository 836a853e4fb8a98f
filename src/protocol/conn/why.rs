//! Why a server cannot be used: for people, and for programs.

use std::io;

use super::certificate_error::CertificateError;
use crate::protocol::command::guard::Unusable;
use crate::protocol::failure::Failure;
use crate::protocol::trouble::Trouble;

/// The system's words for the error, without its number.
pub(crate) fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => words,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Why {
    pub(crate) words: String,
    pub(crate) trouble: Trouble,
}

impl Why {
    pub(crate) fn new(trouble: Trouble, words: impl Into<String>) -> Self {
        Self { words: words.into(), trouble }
    }

    pub(crate) fn of_error(error: &io::Error) -> Self {
        let is_untrusted = error.get_ref().is_some_and(|it| it.is::<CertificateError>());
        let trouble = match error.kind() {
            io::ErrorKind::ConnectionRefused => Trouble::ConnectionRefused,
            _ if is_untrusted => Trouble::Certificate,
            _ => Trouble::Other,
        };
        Self::new(trouble, error_words(error))
    }

    pub(crate) fn of_failure(failure: &Failure) -> Self {
        Self::new(Trouble::of_failure(failure), failure.to_string())
    }
}

impl From<Unusable> for Why {
    fn from(unusable: Unusable) -> Self {
        let trouble = match unusable {
            Unusable::WrongType => Trouble::GuardKey,
            Unusable::Newer => Trouble::NewerVersion,
        };
        Self::new(trouble, unusable.to_string())
    }
}

/// Words that no program needs to tell from others.
impl From<String> for Why {
    fn from(words: String) -> Self {
        Self::new(Trouble::Other, words)
    }
}

impl From<&str> for Why {
    fn from(words: &str) -> Self {
        Self::from(words.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_the_trouble_and_people_the_words() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(Why::of_error(&refused).trouble, Trouble::ConnectionRefused);
        let untrusted = CertificateError("certificate has expired".to_owned());
        let why = Why::of_error(&io::Error::new(io::ErrorKind::InvalidData, untrusted));
        assert_eq!((why.trouble, &*why.words), (Trouble::Certificate, "certificate has expired"));
        for (code, trouble) in [
            ("NOAUTH", Trouble::NoPassword),
            ("WRONGPASS", Trouble::WrongPassword),
            ("NOPERM", Trouble::NoPermission),
            ("READONLY", Trouble::Replica),
            ("OOM", Trouble::Other),
        ] {
            assert_eq!(Why::of_failure(&Failure::of_error(code, "")).trouble, trouble, "{code}");
        }
        let lost = Failure::Forgot { ago_s: 3, left_s: 7 };
        assert_eq!(Why::of_failure(&lost).trouble, Trouble::LostData);
        assert_eq!(Why::from(Unusable::Newer).trouble, Trouble::NewerVersion);
        assert_eq!(Why::from("not tried yet").trouble, Trouble::Other);
    }
}
