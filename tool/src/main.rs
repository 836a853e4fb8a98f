//! `redlock`: runs a program while a distributed lock is held, and looks after the servers.
//!
//! `cli` says what can be asked for, `servers` where the servers are, `failure` with which status it ends. Each command
//! has a module of its own. All stands on the library's face for Rust programs.

mod bench;
mod cli;
mod config;
mod doctor;
mod failure;
mod histogram;
mod inspect;
mod list;
mod report;
mod run;
mod screen;
mod servers;
mod survey;
mod table;
mod time;
mod top;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Verb};
use crate::failure::{Failure, Kind};

fn main() -> ExitCode {
    if let Err(failure) = servers::check_arguments(std::env::args_os()) {
        return failure.tell(false);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Kind::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let json = cli.common.json;
    carry_out(cli).unwrap_or_else(|failure| failure.tell(json))
}

fn carry_out(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.verb {
        Verb::Run(options) => run::run(&cli.common, &options),
        Verb::Status { names } => inspect::status(&cli.common, &names),
        Verb::List { prefix, all } => list::list(&cli.common, &prefix, all),
        Verb::Doctor => doctor::doctor(&cli.common),
        Verb::Top { prefix, interval, once } => top::top(&cli.common, &prefix, interval, once),
        Verb::Bench { duration, threads } => bench::bench(&cli.common, duration, threads),
        Verb::Completions { shell } => {
            cli::write_completions(shell);
            Ok(ExitCode::SUCCESS)
        }
    }
}
