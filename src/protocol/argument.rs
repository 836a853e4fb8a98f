//! Arguments in error messages. Each language has its own names for them, and its own unit of time. A message about an
//! argument is therefore made when it is known who reads it.

use std::ops::RangeInclusive;

/// The language of the program that reads the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
    Go,
    Node,
    Python,
    Ruby,
    Rust,
    /// The command `redlock`.
    Command,
}

/// An argument, or a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    Ttl,
    /// Of a call that connects.
    Timeout,
    /// How long a held lock must be confirmed for.
    Least,
    /// How long others are kept out after the lock was taken.
    HoldAtLeast,
    Tries,
    RetryDelay,
    ConnectTimeout,
    ReplyTimeout,
    DriftFactor,
    LongestTtl,
    GuardCap,
    User,
    Password,
    CaFile,
    CertificateFile,
    KeyFile,
    ServerName,
    UserVariable,
    PasswordVariable,
}

/// What is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A time in milliseconds that is out of its range.
    Time { ms: i64, range: RangeInclusive<i64> },
    /// A TTL of which nothing is left after the allowance for clock drift, both in milliseconds.
    Drift { ttl_ms: i64, allowance_ms: i64 },
    /// It is missing, and the other one is given.
    MissingBeside(Argument),
    /// The words that follow the name.
    Words(String),
}

impl Argument {
    /// The names in the order of [`Language`].
    #[rustfmt::skip]
    fn names(self) -> [&'static str; 8] {
        match self {
            Self::Ttl => ["ttl_ms", "ttl", "ttl", "ttl", "ttl", "ttl", "ttl", "--ttl"],
            Self::Timeout => ["timeout_ms", "timeout", "timeout", "timeout", "timeout", "timeout", "timeout", "timeout"],
            Self::Least => ["least_ms", "least", "least", "least", "least", "least", "least", "least"],
            Self::HoldAtLeast =>
                ["least_ms", "least", "least", "holdAtLeast", "hold_at_least", "hold_at_least", "least", "--hold-at-least"],
            Self::Tries => ["count", "tries", "Tries", "tries", "tries", "tries", "tries", "tries"],
            Self::RetryDelay =>
                ["delay_ms", "delay", "RetryDelay", "retryDelay", "retry_delay", "retry_delay", "pause", "pause"],
            Self::ConnectTimeout =>
                ["connect_ms", "connect", "ConnectTimeout", "connectTimeout", "connect_timeout", "connect_timeout", "connect", "connect"],
            Self::ReplyTimeout =>
                ["reply_ms", "reply", "ReplyTimeout", "replyTimeout", "reply_timeout", "reply_timeout", "reply", "reply"],
            Self::DriftFactor =>
                ["factor", "factor", "ClockDriftFactor", "driftFactor", "drift_factor", "drift_factor", "factor", "factor"],
            Self::LongestTtl =>
                ["longest_ttl_ms", "longest_ttl", "LongestTTL", "longestTtl", "longest_ttl", "longest_ttl", "longest_ttl", "longest_ttl"],
            Self::GuardCap => ["cap_ms", "cap", "GuardCap", "guardCap", "guard_cap", "guard_cap", "cap", "cap"],
            Self::User => ["user", "user", "Username", "username", "user", "user", "user", "user"],
            Self::Password =>
                ["password", "password", "Password", "password", "password", "password", "password", "password"],
            Self::CaFile => ["ca_file", "ca_file", "TLS.CAFile", "tls.ca", "tls.ca", "tls.ca", "file", "tls_ca"],
            Self::CertificateFile =>
                ["certificate_file", "certificate_file", "TLS.CertFile", "tls.certificate", "tls.certificate", "tls.certificate", "certificate", "tls_certificate"],
            Self::KeyFile => ["key_file", "key_file", "TLS.KeyFile", "tls.key", "tls.key", "tls.key", "key", "tls_key"],
            Self::ServerName =>
                ["name", "name", "TLS.ServerName", "tls.serverName", "tls.server_name", "tls.server_name", "name", "tls_server_name"],
            Self::UserVariable =>
                ["user_variable", "user_variable", "user_variable", "credentialsFromEnv.username", "user_variable", "user_variable", "user_variable", "user_variable"],
            Self::PasswordVariable =>
                ["password_variable", "password_variable", "password_variable", "credentialsFromEnv.password", "password_variable", "password_variable", "password_variable", "password_variable"],
        }
    }

    /// Its name in this language.
    pub(crate) fn name(self, language: Language) -> &'static str {
        self.names()[language as usize]
    }
}

impl Language {
    /// All of them, each at its number.
    pub(crate) const ALL: [Self; 8] = [
        Self::C,
        Self::Cpp,
        Self::Go,
        Self::Node,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::Command,
    ];

    /// A time as a program of this language gives it. In C, the unit is in the name of the argument.
    fn time(self, ms: i64) -> String {
        match self {
            Self::C => ms.to_string(),
            Self::Go | Self::Command => format!("{ms}ms"),
            Self::Cpp | Self::Node | Self::Rust => format!("{ms} ms"),
            Self::Python | Self::Ruby => format!("{} s", seconds(ms)),
        }
    }
}

/// Seconds with as many decimals as are needed.
fn seconds(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let (whole, rest) = (ms.unsigned_abs() / 1_000, ms.unsigned_abs() % 1_000);
    let text = format!("{sign}{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The message about the argument, for a program in this language.
pub(crate) fn words(argument: Argument, fault: &Fault, language: Language) -> String {
    let (name, time) = (argument.name(language), |ms| language.time(ms));
    match fault {
        Fault::Time { ms, range } => {
            let least = time(*range.start());
            let allowed = match *range.end() {
                i64::MAX => format!("at least {least}"),
                most => format!("{least} to {}", time(most)),
            };
            format!("{name} is {}: it must be {allowed}", time(*ms))
        }
        Fault::MissingBeside(other) => {
            let missing = if language == Language::C { "NULL" } else { "missing" };
            format!("{name} is {missing}, but {} is given", other.name(language))
        }
        Fault::Drift { ttl_ms, allowance_ms } => format!(
            "{name} is {}: too short, {} of it are reserved for clock drift",
            time(*ttl_ms),
            time(*allowance_ms)
        ),
        Fault::Words(words) => format!("{name} {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_names_and_its_unit() {
        let fault = Fault::Time { ms: -500, range: 1..=90_000 };
        let said = |language| words(Argument::RetryDelay, &fault, language);
        assert_eq!(said(Language::C), "delay_ms is -500: it must be 1 to 90000");
        assert_eq!(said(Language::Cpp), "delay is -500 ms: it must be 1 ms to 90000 ms");
        assert_eq!(said(Language::Go), "RetryDelay is -500ms: it must be 1ms to 90000ms");
        assert_eq!(said(Language::Node), "retryDelay is -500 ms: it must be 1 ms to 90000 ms");
        assert_eq!(said(Language::Python), "retry_delay is -0.5 s: it must be 0.001 s to 90 s");
        assert_eq!(said(Language::Ruby), said(Language::Python));
        assert_eq!(said(Language::Rust), "pause is -500 ms: it must be 1 ms to 90000 ms");
        let drift = Fault::Drift { ttl_ms: 3, allowance_ms: 3 };
        let short = "--ttl is 3ms: too short, 3ms of it are reserved for clock drift";
        assert_eq!(words(Argument::Ttl, &drift, Language::Command), short);
        let endless = Fault::Time { ms: -1, range: 0..=i64::MAX };
        let negative = words(Argument::Timeout, &endless, Language::Python);
        assert_eq!(negative, "timeout is -0.001 s: it must be at least 0 s");
        let alone = Fault::MissingBeside(Argument::CertificateFile);
        let said = |language| words(Argument::KeyFile, &alone, language);
        assert_eq!(said(Language::Go), "TLS.KeyFile is missing, but TLS.CertFile is given");
        assert_eq!(said(Language::C), "key_file is NULL, but certificate_file is given");
        let empty = Fault::Words("is empty".to_owned());
        assert_eq!(words(Argument::KeyFile, &empty, Language::Node), "tls.key is empty");
    }
}
