//! The workers: processes that are started, stopped, killed and replaced.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::board::{Board, Orders};
use crate::ground::Ground;
use crate::journal::Journal;
use crate::plan::Plan;
use crate::support::process::Process;
use crate::support::wait_until;
use crate::workshop;

struct Member {
    name: String,
    process: Process,
    threads: u64,
    is_steady: bool,
}

pub(crate) struct Fleet<'a> {
    plan: &'a Plan,
    journal: &'a Journal,
    board: Board,
    worker: workshop::Worker,
    logs: PathBuf,
    ground: &'a Ground,
    /// By slot.
    members: Vec<Member>,
    /// How many workers were started.
    started: usize,
}

impl<'a> Fleet<'a> {
    pub(crate) fn start(
        plan: &'a Plan,
        journal: &'a Journal,
        logs: &Path,
        ground: &'a Ground,
    ) -> Self {
        let mut fleet = Self {
            plan,
            journal,
            board: Board::new(logs.join("board")),
            worker: workshop::compile(&std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())),
            logs: logs.to_owned(),
            ground,
            members: Vec::new(),
            started: 0,
        };
        for slot in 0..plan.workers {
            let member = fleet.launch(slot);
            fleet.members.push(member);
        }
        fleet
    }

    pub(crate) fn started(&self) -> usize {
        self.started
    }

    /// The workers that may be killed.
    pub(crate) fn mortals(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|&slot| !self.members[slot].is_steady).collect()
    }

    /// Stops the worker, but never between its last check of the time and the write after it. A holder that
    /// checks must be able to act on the result.
    pub(crate) fn stop(&self, slot: usize) {
        let Member { name, process, .. } = &self.members[slot];
        self.journal.say(format_args!("stop process={name}"));
        process.freeze();
        while self.board.writing(slot) != 0 {
            process.resume();
            process.freeze();
        }
    }

    pub(crate) fn cont(&self, slot: usize) {
        let Member { name, process, .. } = &self.members[slot];
        process.resume();
        self.journal.say(format_args!("cont process={name}"));
    }

    /// Kills the worker, and puts a new one in its place.
    pub(crate) fn replace(&mut self, slot: usize) {
        let Member { name, process, .. } = &self.members[slot];
        assert!(!process.has_ended(), "{name} has ended: see what it printed");
        self.journal.say(format_args!("kill process={name}"));
        process.kill();
        self.journal.say(format_args!("dead process={name}"));
        self.board.clear(slot);
        self.members[slot] = self.launch(slot);
    }

    /// Returns when all workers rest.
    pub(crate) fn rest(&self) {
        self.board.order(Orders::Rest);
        for (slot, member) in self.members.iter().enumerate() {
            wait_until("a worker comes to rest", || {
                assert!(!member.process.has_ended(), "{} has ended", member.name);
                self.board.resting(slot) == member.threads
            });
        }
    }

    /// Returns when all have ended, as they should.
    pub(crate) fn end(&self) {
        self.board.order(Orders::End);
        for Member { name, process, .. } in &self.members {
            wait_until("a worker ends", || process.has_ended());
            let status = process.status().expect("it has ended");
            assert!(status.success(), "{name}: {status}");
        }
    }

    /// The names of the resources with a counter, and the values of the counters.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (String, u64)> {
        (0..self.plan.resources).map(|it| (resource(it), self.board.counter(it)))
    }

    fn launch(&mut self, slot: usize) -> Member {
        let name = format!("w{}", self.started);
        let is_steady = slot < self.plan.steady;
        let threads = 1 + slot % 3;
        let seed = self.plan.seed.wrapping_mul(1009).wrapping_add(self.started as u64);
        self.started += 1;
        let numbers = [slot.to_string(), seed.to_string(), threads.to_string()];
        let mut command = Command::new(self.worker.path());
        command
            .arg(&name)
            .args([&*self.logs, self.board.path()])
            .args(numbers)
            .arg(self.plan.resources.to_string())
            .arg(if is_steady { "steady" } else { "mortal" })
            .envs(self.plan.is_lawless.then_some(("REDLOCK_UNGUARDED", "1")))
            .args(if slot.is_multiple_of(2) { self.ground.urls() } else { self.ground.detours() });
        let process = Process::start(&mut command).expect("the worker can be run");
        Member { name, process, threads: threads as u64, is_steady }
    }
}

/// As in worker/actor.c.
pub(crate) fn resource(number: usize) -> String {
    format!("shared-{number}")
}
