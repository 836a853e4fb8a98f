//! The configuration file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;
use crate::servers::has_password;

/// The contents of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) servers: Vec<String>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) tls_certificate: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_server_name: Option<String>,
}

impl Config {
    /// Reads the file. A file that contains a password is refused if users other than its owner may read
    /// it. Errors are reported without quoting the file, because its text may be a secret.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |words: String| Failure::usage(format!("{}: {words}", path.display()));
        let mut text = String::new();
        let mut file = File::open(path).map_err(|error| fail(error.to_string()))?;
        file.read_to_string(&mut text).map_err(|error| fail(error.to_string()))?;
        let config: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count());
            fail(format!("line {} is invalid: {}", line + 1, without_quotes(error.message())))
        })?;
        let is_secret =
            config.password.is_some() || config.servers.iter().any(|it| has_password(it));
        if is_secret {
            // These are the permissions of the file that was read, not of a file that has replaced it
            // since.
            let found = file.metadata().map_err(|error| fail(error.to_string()))?;
            if found.mode() & 0o077 != 0 {
                let words = "contains a password, but other users can read it: run chmod 600";
                return Err(fail(words.to_owned()));
            }
            let own = nix::unistd::geteuid().as_raw();
            if found.uid() != own && found.uid() != 0 {
                return Err(fail("contains a password, but belongs to another user".to_owned()));
            }
        }
        Ok(config)
    }
}

/// The parser's message, without the values that it quotes.
fn without_quotes(words: &str) -> String {
    let is_name = |it: &str| {
        !it.is_empty()
            && it.len() < 20
            && it.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
    };
    let parts = words.lines().next().unwrap_or_default().split(['`', '"']).enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        1 if !is_name(part) => "...",
        _ => part,
    });
    parts.collect::<Vec<_>>().join("`")
}
