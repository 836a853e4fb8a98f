//! `redlock`: runs a program while a distributed lock is held, and inspects the servers.
//!
//! `cli` defines the arguments, `servers` finds the servers, `failure` defines the exit statuses. Each
//! command has a module of its own. All commands are built on the library's Rust interface.

// The print macros panic if nobody reads the output; `output` does not.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod bench;
mod cli;
mod cluster;
mod completions;
mod config;
mod doctor;
mod failure;
mod histogram;
mod hosts;
mod inspect;
mod keys;
mod list;
mod output;
mod report;
mod run;
mod screen;
mod sentinels;
mod servers;
mod survey;
mod table;
mod time;
mod top;
mod unlock;

use std::env;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Verb};
use crate::failure::{Failure, Kind};

fn main() -> ExitCode {
    completions::complete();
    // If the arguments are wrong, this much is still known of them.
    let json = env::args_os().take_while(|it| it != "--").any(|it| it == "--json");
    match servers::check_arguments(env::args_os()).map(|()| Cli::try_parse()) {
        Ok(Ok(cli)) => carry_out(cli),
        Ok(Err(error)) if error.use_stderr() && !json => {
            let _ = error.print();
            return Kind::Usage.into();
        }
        Ok(Err(error)) if error.use_stderr() => Err(Failure::usage(error.render().to_string())),
        Ok(Err(help)) => output::check(help.print()).map(|()| ExitCode::SUCCESS),
        Err(failure) => Err(failure),
    }
    .unwrap_or_else(|failure| failure.tell(json))
}

fn carry_out(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.verb {
        Verb::Run(options) => run::run(&cli.common, &options),
        Verb::Status { permits, names } => inspect::status(&cli.common, &names, permits),
        Verb::Unlock(options) => unlock::unlock(&cli.common, &options),
        Verb::List { prefix, all } => list::list(&cli.common, &prefix, all),
        Verb::Doctor { suggest_tags: None } => doctor::doctor(&cli.common),
        Verb::Doctor { suggest_tags: Some(count) } => cluster::suggest(&cli.common, count.into()),
        Verb::Top { prefix, interval, once } => top::top(&cli.common, &prefix, interval, once),
        Verb::Bench { duration, threads } => bench::bench(&cli.common, duration, threads),
        Verb::Completions { shell } => completions::completions(shell),
    }
}
