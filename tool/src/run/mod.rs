//! `redlock run`: a program runs while a lock is held.
//!
//! One thread does all of it. It waits for the sockets of the lock, for signals and for the program. `hold`
//! takes and keeps the lock, `child` is the program, and `guard` is a process that stands by in case this
//! process dies or stands still. Only the names of servers that may have moved are looked up in other threads.

mod cgroup;
mod child;
mod guard;
mod hold;
mod terminal;
mod tree;
mod waiting;
mod watch;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;
use std::{env, io};

use redlock::{Lease, Manager, Options, Ticket};
use serde_json::json;

use self::cgroup::Cgroup;
use self::child::{Child, End, State};
use self::guard::Guard;
use self::hold::Hold;
use self::waiting::Waiting;
use self::watch::{Signal, Watch};
use crate::cli::{Common, Run};
use crate::failure::{Failure, Kind};
use crate::keys;
use crate::report::Report;
use crate::servers::Servers;
use crate::time::Wait;

/// With a shorter TTL there is no time to stop a program.
const TTL_MIN: Duration = Duration::from_millis(500);

/// The environment variables that the program gets.
const NAME: &str = "REDLOCK_NAME";
const FENCING_TOKEN: &str = "REDLOCK_FENCING_TOKEN";
const TICKET: &str = "REDLOCK_TICKET";

pub(crate) fn run(common: &Common, options: &Run) -> Result<ExitCode, Failure> {
    check(options)?;
    let report = Report::new(common);
    let servers = Servers::find(common)?;
    // Start the guard before there are connections, because it would keep them open.
    let cgroup = if options.detach { None } else { Cgroup::make() };
    let guard = if options.detach { None } else { Some(Guard::start(cgroup.as_ref())?) };
    let manager = servers.builder(common)?.fencing(has_fencing(options)).build()?;
    let mut watch = Watch::new(&manager)?;
    let lease = take(&manager, &mut watch, options, report)?;
    let name = String::from_utf8_lossy(lease.resource()).into_owned();
    let fence = lease.fencing_token().map(|it| it.get());
    let event = json!({"event": "acquired", "name": name, "fencing_token": fence,
        "remaining_ms": lease.remaining().as_millis()});
    report.tell(&format!("{name} is locked"), &event);
    let command = command(options, &lease);
    match guard {
        None => become_program(command, lease),
        Some(guard) => {
            let hold = Hold::new(lease, options.ttl(), options.hold_at_least);
            supervise(&manager, &mut watch, hold, (guard, cgroup), command, report)
        }
    }
}

fn check(options: &Run) -> Result<(), Failure> {
    if options.ttl() < TTL_MIN {
        return Err(Failure::usage(
            "--ttl is less than 500ms, too short to stop the program in time",
        ));
    }
    if options.names.len() > 1 && (options.shared || options.permits.is_some()) {
        return Err(Failure::usage("several names cannot be locked with --shared or --permits"));
    }
    Ok(())
}

/// A fencing token orders the holders of a lock that hold it one after another.
fn has_fencing(options: &Run) -> bool {
    let is_for_several = options.shared || options.permits.is_some_and(|permits| permits > 1);
    !options.no_fencing && !is_for_several
}

/// Takes or adopts the lock, unless a signal ends the wait.
fn take(
    manager: &Manager,
    watch: &mut Watch,
    options: &Run,
    report: Report,
) -> Result<Lease, Failure> {
    let mut waiting = Waiting::new(manager, options, report);
    let taken = if options.adopt {
        let ticket = env::var(TICKET).map_err(|_| {
            Failure::usage("--adopt needs a ticket in REDLOCK_TICKET, which is not set")
        })?;
        let lease =
            watch.wait_for(manager, manager.adopt_async(&Ticket::from(ticket)), &mut waiting)?;
        lease.and_then(|mut lease| {
            // The remaining time of the lock may be too short to begin with.
            lease.extend(options.ttl())?;
            lease.keep_alive()?;
            Ok(lease)
        })
    } else {
        let wanted = Options::several(options.names.iter().map(String::as_str), options.ttl());
        let wanted = match options.permits {
            Some(permits) => wanted.permit_of(permits),
            None if options.shared => wanted.shared(),
            None => wanted,
        };
        let wanted = wanted.keep_alive(!options.detach);
        let wanted = match options.wait {
            _ if options.no_wait => wanted,
            Wait::For(wait) => wanted.wait(wait),
            Wait::Forever => wanted.wait_forever(),
        };
        watch.wait_for(manager, manager.acquire_async(&wanted), &mut waiting)?
    };
    taken.map_err(|error| {
        let mut failure = Failure::from(error);
        // In a log of several jobs, this tells which one it was.
        if let (Kind::Taken | Kind::Unreachable, [name, ..]) = (failure.kind, &*options.names) {
            failure.words = format!("{name}: {}", failure.words);
        }
        match (failure.kind, options.conflict_exit_code) {
            (Kind::Taken, Some(status)) => Failure { kind: Kind::Chosen(status), ..failure },
            _ => failure,
        }
    })
}

fn command(options: &Run, lease: &Lease) -> Command {
    let (program, arguments) = options
        .command
        .split_first()
        .map_or_else(Default::default, |it| (it.0.clone(), it.1.to_vec()));
    let mut command = Command::new(program);
    command.args(arguments).env_remove(TICKET).env_remove(FENCING_TOKEN);
    command.env(NAME, String::from_utf8_lossy(lease.resource()).as_ref());
    if let Some(token) = lease.fencing_token() {
        command.env(FENCING_TOKEN, token.to_string());
    }
    command
}

/// Gives the lock to the program, and becomes the program.
fn become_program(mut command: Command, mut lease: Lease) -> Result<ExitCode, Failure> {
    let ticket = lease.detach()?;
    let error = command.env(TICKET, ticket.as_str()).exec();
    // Nobody owns the lock now: it ends with its TTL.
    Err(child::cannot_run(&command, &error))
}

/// Runs the program until it ends, and stops it if the lock cannot be kept.
fn supervise(
    manager: &Manager,
    watch: &mut Watch,
    mut hold: Hold,
    (mut guard, cgroup): (Guard, Option<Cgroup>),
    command: Command,
    report: Report,
) -> Result<ExitCode, Failure> {
    guard.tell_deadline(&mut hold);
    let announcement = guard.announcement(&mut hold);
    let mut child = match Child::start(command, cgroup, guard.id(), announcement) {
        Ok(child) => child,
        Err(failure) => {
            hold.release_at_once();
            guard.dismiss();
            return Err(failure);
        }
    };
    guard.tell_child(child.group(), &mut hold);
    warn_of_limits(&child, report);
    let end = loop {
        watch.wait(hold.time_to_next_step())?;
        manager.drive()?;
        look_up_if_due(manager);
        for signal in watch.signals() {
            match signal {
                Signal::Child => stand_in(&mut guard, &mut child, report),
                Signal::Stop => child.pass_on_stop(),
                Signal::Continue => child.go_on(),
                Signal::Other(number) => child.pass_on(number),
            }
        }
        match child.state() {
            Ok(State::Ended) => break child.end(),
            Ok(State::Stopped) => child.follow_stop(),
            Ok(State::Running) => {}
            Err(error) => return Err(give_up(&error, hold, guard, child)),
        }
        if hold.is_to_be_killed() {
            kill(&mut child, report);
        } else if let Some(why) = hold.is_to_be_stopped() {
            report.warn(
                &format!("{why}; stopping the program"),
                &json!({"event": "stopping", "words": why, "remaining_ms": hold.remaining().as_millis()}),
            );
            child.terminate();
        }
        guard.tell_deadline(&mut hold);
    };
    await_rest(watch, manager, &mut hold, &mut child, report)?;
    guard.dismiss();
    let was_interrupted = child.leave();
    let finished = finish(hold, &child, end, report);
    if was_interrupted && finished.is_ok() {
        keys::interrupt_group();
    }
    finished
}

/// On systems other than Linux the manual page says so.
fn warn_of_limits(child: &Child, report: Report) {
    if cfg!(target_os = "linux") && !child.finds_all() {
        let words = "cannot list child processes on this system: if the lock is lost, processes that have left the \
                     process group of the program are not killed";
        report.warn(words, &json!({"event": "limited", "words": words}));
    }
}

/// If the guard was killed, another one takes its place.
fn stand_in(guard: &mut Guard, child: &mut Child, report: Report) {
    match guard.stand_in(child.cgroup()) {
        Ok(false) => {}
        Ok(true) => child.note_guard(guard.id()),
        Err(failure) => {
            let words = format!("the guard process was killed and cannot be restarted: {failure}");
            report.warn(&words, &json!({"event": "limited", "words": words}));
        }
    }
}

/// The lock is about to end.
fn kill(child: &mut Child, report: Report) {
    if let Some(process) = child.kill() {
        let words = format!(
            "the lock is lost, but process {process} runs as another user and cannot be killed"
        );
        let process = process.as_raw();
        report.warn(&words, &json!({"event": "unkillable", "process": process, "words": words}));
    }
}

/// The system does not tell when the program ends.
fn give_up(error: &io::Error, mut hold: Hold, guard: Guard, mut child: Child) -> Failure {
    child.kill_blindly(hold.remaining());
    guard.dismiss();
    let _ = hold.release();
    Failure::usage(format!(
        "the program was killed, because redlock cannot wait for its end: {error}"
    ))
}

/// Servers may get other addresses while the lock is kept. The resolver may take long, so a thread waits for it. The
/// lock is renewed meanwhile, and this process may end.
fn look_up_if_due(manager: &Manager) {
    if manager.is_look_up_due() {
        let manager = manager.clone();
        // Without a thread it is due again.
        let _ = thread::Builder::new().spawn(move || manager.look_up());
    }
}

/// If the program was stopped, its other processes must stop as well, or be killed. Otherwise the processes
/// that it leaves behind are left alone.
fn await_rest(
    watch: &mut Watch,
    manager: &Manager,
    hold: &mut Hold,
    child: &mut Child,
    report: Report,
) -> Result<(), Failure> {
    while hold.was_to_be_stopped() && child.has_processes() {
        if hold.is_to_be_killed() {
            kill(child, report);
            return Ok(());
        }
        watch.wait(hold.time_to_next_step())?;
        manager.drive()?;
        // Only the end of one of these processes matters now.
        drop(watch.signals());
    }
    Ok(())
}

fn finish(mut hold: Hold, child: &Child, end: End, report: Report) -> Result<ExitCode, Failure> {
    let lost = hold.release();
    let event = json!({"event": "ended", "status": end.status, "signal": end.signal, "lost": lost,
        "valid_until_ms": hold.end().as_millis()});
    report.tell(&format!("the program ended with status {}", end.status), &event);
    match lost {
        Some(words) if child.was_beyond_us() => Err(Failure::new(Kind::Unkillable, words)),
        Some(words) => Err(Failure::new(Kind::Lost, words)),
        None => Ok(ExitCode::from(end.status)),
    }
}
