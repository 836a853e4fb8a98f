//! Completion of arguments in a shell. The script of a shell calls this program at each TAB, with the words so far: so
//! the names of locks can be those on the servers.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::Shell;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::{Cli, Common};
use crate::failure::Failure;
use crate::output;
use crate::servers::Servers;
use crate::survey::Survey;

/// The environment variable that the scripts set: it has the name of the shell.
const SHELL: &str = "REDLOCK_COMPLETE";

/// Nobody reads more names than that.
const NAMES_MAX: usize = 200;

/// bash takes a colon in the name of a lock for the end of a word. The functions of bash-completion mend that.
const COLONS_IN_BASH: &str = include_str!("colons.bash");

/// zsh runs the file when somebody completes for the first time, instead of the function that it defines.
const FIRST_TIME_IN_ZSH: &str = include_str!("first_time.zsh");

/// Answers a script, if one has called this program.
pub(crate) fn complete() {
    CompleteEnv::with_factory(Cli::command).var(SHELL).complete();
}

/// Prints the script for this shell.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let name = shell.to_string();
    let Some(completer) = shells.completer(&name) else {
        return Err(Failure::usage(format!("there are no completions for {name}")));
    };
    let written = completer.write_registration(SHELL, "redlock", "redlock", "redlock", &mut script);
    written.map_err(|error| Failure::usage(format!("completions: {error}")))?;
    let more = match shell {
        Shell::Bash => COLONS_IN_BASH,
        Shell::Zsh => FIRST_TIME_IN_ZSH,
        _ => "",
    };
    output::print(format_args!("{}{more}", String::from_utf8_lossy(&script)))?;
    Ok(ExitCode::SUCCESS)
}

/// The names of locks that begin so. None if the servers do not answer, because a shell shows no messages here.
pub(crate) fn names(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = begin.to_str().map(look).and_then(Result::ok).unwrap_or_default();
    let names = found.into_iter().filter_map(|name| String::from_utf8(name).ok());
    // A shell would obey a control character.
    let names = names.filter(|name| !name.chars().any(char::is_control));
    names.take(NAMES_MAX).map(CompletionCandidate::new).collect()
}

fn look(begin: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let common = common(env::args_os());
    let servers = Servers::find(&common)?;
    Survey::open(&common, &servers)?.some_names(begin)
}

/// The options that stand in the words so far, which are not a whole command yet.
fn common(arguments: impl Iterator<Item = OsString>) -> Common {
    let words = arguments.skip_while(|it| it != "--").skip(1);
    let parsed = Cli::command().ignore_errors(true).try_get_matches_from(words);
    let common = parsed.ok().and_then(|it| Common::from_arg_matches(&it).ok());
    common.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_of_an_unfinished_command_are_found() {
        let servers = |line: &str| common(line.split(' ').map(OsString::from)).servers;
        assert_eq!(servers("redlock -- redlock --servers a:1,b:1 status x"), ["a:1,b:1"]);
        assert_eq!(servers("redlock -- redlock run -s a:1 -s b:1 --ttl"), ["a:1", "b:1"]);
        assert!(servers("redlock -- redlock unlock").is_empty());
    }
}
