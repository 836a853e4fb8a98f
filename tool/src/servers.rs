//! Finds the servers in the arguments, a file or the environment. Also refuses passwords in the arguments,
//! because everybody can read these.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use redlock::{Builder, Level, Manager};
use serde_json::json;

use crate::cli::Common;
use crate::config::Config;
use crate::failure::Failure;
use crate::output;

const NOWHERE: &str =
    "no servers given: use --servers, --config, or REDLOCK_SERVERS in the environment";

/// Refuses a password in the arguments of this program.
pub(crate) fn check_arguments(arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let own = arguments.take_while(|it| it != "--");
    let texts = own.map(|it| it.to_string_lossy().into_owned());
    for text in texts {
        if text.split(',').any(has_password) {
            return Err(Failure::usage(
                "an argument contains a password, which other users can read (ps): put the servers into a file \
                 (--config, mode 600) or REDLOCK_SERVERS, or the password into REDLOCK_PASSWORD, and change \
                 the password",
            ));
        }
    }
    Ok(())
}

/// Whether a text is a URL with a password in it, or contains such a URL.
pub(crate) fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password that is not encoded may contain any of these characters.
    let at = rest.rfind('@');
    let in_front = at.is_some_and(|at| rest[..at].contains(':'));
    let query = rest[end..].split_once('?').map_or("", |it| it.1);
    let behind = query.split('&').filter_map(|it| it.split_once('='));
    in_front || behind.clone().any(|(key, value)| key.contains("pass") && !value.is_empty())
}

/// The servers, and the user's identity there.
pub(crate) struct Servers {
    pub(crate) config: Config,
}

impl Servers {
    /// The order is: arguments, then --config, then the environment.
    pub(crate) fn find(common: &Common) -> Result<Self, Failure> {
        let named = text_of("REDLOCK_SERVERS")?;
        let file = common.config.clone();
        // Servers that the environment names take precedence over a file that only the environment names.
        let file = file.or_else(|| {
            let file = env::var_os("REDLOCK_CONFIG").filter(|it| !it.is_empty());
            file.filter(|_| named.is_none()).map(PathBuf::from)
        });
        let mut config = file.as_deref().map_or_else(|| Ok(Config::default()), Config::read)?;
        if !common.servers.is_empty() {
            config.servers = split(&common.servers.join(","));
        } else if let Some(named) = named.filter(|_| common.config.is_none()) {
            config.servers = split(&named);
        }
        config.servers.retain(|it| !it.is_empty());
        if config.servers.is_empty() {
            return Err(Failure::usage(NOWHERE));
        }
        config.user = text_of("REDLOCK_USER")?.or(config.user);
        config.password = text_of("REDLOCK_PASSWORD")?.or(config.password);
        Ok(Self { config })
    }

    /// All servers, in the form that the library expects.
    pub(crate) fn named(&self) -> Vec<String> {
        self.config.servers.iter().map(|it| with_port(it)).collect()
    }

    /// A manager of these servers, with the settings that all commands need.
    pub(crate) fn builder(&self, common: &Common) -> Result<Builder, Failure> {
        let Config { user, password, tls_ca, tls_server_name, .. } = &self.config;
        let mut builder = Manager::builder().servers(self.named());
        if let Some(password) = password {
            builder = builder.credentials(user.as_deref(), password);
        } else if user.is_some() {
            return Err(Failure::usage("a user is given without a password: set REDLOCK_PASSWORD"));
        }
        if let Some(file) = tls_ca {
            builder = builder.tls_ca_file(file);
        }
        match (&self.config.tls_certificate, &self.config.tls_key) {
            (Some(certificate), Some(key)) => builder = builder.tls_certificate(certificate, key),
            (None, None) => {}
            _ => return Err(Failure::usage("set both tls_certificate and tls_key, or neither")),
        }
        if let Some(name) = tls_server_name {
            builder = builder.tls_server_name(name);
        }
        let json = common.json;
        if common.verbose {
            builder = builder.logger(move |level, line| tell(json, level, line));
        }
        Ok(builder)
    }
}

fn tell(json: bool, level: Level, line: &str) {
    let level = if level == Level::Warning { "warning" } else { "info" };
    if json {
        output::tell(json!({"event": "log", "level": level, "words": line}));
    } else {
        output::tell_words(line);
    }
}

/// Splits a text at commas, spaces or line ends into servers. The Sentinels and the nodes of one URL are separated by
/// commas, too.
fn split(text: &str) -> Vec<String> {
    let mut servers: Vec<String> = Vec::new();
    for part in text.split([',', ' ', '\n', '\t']).filter(|it| !it.is_empty()) {
        match servers.last_mut() {
            Some(last) if is_unfinished(last, part) => {
                last.push(',');
                last.push_str(part);
            }
            _ => servers.push(part.to_owned()),
        }
    }
    servers
}

/// Whether this is the beginning of a URL of Sentinels, and the master is still missing. Or of a URL of a cluster, the tag
/// is missing, and the next part is no URL.
fn is_unfinished(url: &str, next: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    match scheme.split_once(['-', '+']).map(|it| it.1) {
        Some("sentinel") => !rest.contains('/'),
        Some("cluster") => !rest.contains(['/', '?']) && !next.contains("://"),
        _ => false,
    }
}

/// Adds Redis's usual port to a host without a port.
fn with_port(server: &str) -> String {
    let is_bare = !server.contains("://") && !server.contains(':') && !server.is_empty();
    if is_bare { format!("{server}:6379") } else { server.to_owned() }
}

/// The value of a variable; `None` if it is empty.
fn text_of(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(text) => Ok(Some(text).filter(|it| !it.trim().is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{name} in the environment is not UTF-8")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_anywhere_in_a_url() {
        for text in [
            "redis://:secret@h:1",
            "rediss://me:secret@h:1/0",
            "redis://me:se/cret@h",
            "--servers=redis://:secret@h:1",
            "unix:///run/redis?pass=secret",
            "redis-sentinel://a,b/m?sentinel_password=secret",
        ] {
            assert!(has_password(text), "{text}");
        }
        for text in
            ["h:1", "redis://h:1", "redis://me@h:1", "redis://[::1]:1", "unix:///run/r?db=1"]
        {
            assert!(!has_password(text), "{text}");
        }
    }

    #[test]
    fn arguments_of_the_program_are_not_checked() {
        let arguments = |words: &[&str]| {
            check_arguments(words.iter().map(OsString::from).collect::<Vec<_>>().into_iter())
        };
        let error = arguments(&["run", "-s", "redis://h:1,redis://:secret@h:2"]).expect_err("one");
        assert!(!error.words.contains("secret"));
        arguments(&["run", "r", "--", "redis-cli", "-u", "redis://:secret@h:2"]).expect("none");
    }

    #[test]
    fn a_list_of_servers_keeps_sentinel_urls_whole() {
        let text = "a:1, redis-sentinel://b:1,c:1/mymaster\nunix:///run/r";
        assert_eq!(split(text), ["a:1", "redis-sentinel://b:1,c:1/mymaster", "unix:///run/r"]);
        let text = "redis-cluster://a,b?tag=x,redis-cluster://a,b:1,redis+cluster://c?tag=y d";
        let urls =
            ["redis-cluster://a,b?tag=x", "redis-cluster://a,b:1", "redis+cluster://c?tag=y"];
        assert_eq!(split(text), [&urls[..], &["d"]].concat());
        assert_eq!(with_port("h"), "h:6379");
        assert_eq!(with_port("h:1"), "h:1");
    }
}
