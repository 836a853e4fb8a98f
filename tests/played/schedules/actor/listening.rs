//! A caller of the library that submits calls, and asks for events.

use super::{Actor, acquire, violate};
use crate::manager::call::{Call as LeaseCall, Patience};
use crate::manager::canceller::Canceller;
use crate::manager::event::{Event as Submitted, SubmittedCall, Tag};
use crate::manager::lease::Lease;
use crate::protocol::error::{Error, Status};
use crate::schedules::kept::Attends;
use crate::schedules::plants::Plant;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Call, How, Step};
use crate::world::clocks::MS;
use crate::world::{self, turns};

impl Actor {
    /// Asks for events for this time: usually by waiting for them, and for short times by polling.
    pub(super) fn drive(&self, manager: usize, pause: i64) {
        const LOOKS_FOR: i64 = 30 * MS;
        let until = world::with(|world| world.now) + pause;
        loop {
            let (now, is_gone) =
                world::with(|world| (world.now, world.clients[self.client].is_gone));
            if now >= until || is_gone {
                return;
            }
            world::with(|world| world.go_through(manager));
            let waits = until - now > LOOKS_FOR || pause % 2 == 0;
            if let Err(error) = self.ask_for_event(manager, waits, (Some(until), i64::MAX)) {
                return violate(Promise::NoFault, format!("no events are told: {error}"));
            }
        }
    }

    /// Submits a call, and asks for events until its own event has come: by waiting for them, or by
    /// polling.
    pub(super) fn submit(
        &self,
        step: &Step,
        keep: Option<Tag>,
        lease: &mut Lease,
        told_at: &mut Option<i64>,
    ) -> Result<(), Error> {
        let manager = &self.managers[step.manager];
        let number = self.submitted.get();
        self.submitted.set(number + 1);
        let canceller = Canceller::from(&*lease);
        let (own, tag) = (lease.clone(), Box::new(number));
        let call = match step.call {
            Call::Lock { ttl_ms } => {
                acquire(step, ttl_ms, Patience::Tries(self.tries.into()), keep)
            }
            Call::TryLock { ttl_ms, wait_ms } => acquire(step, ttl_ms, Patience::Ms(wait_ms), keep),
            Call::Extend { ttl_ms } => LeaseCall::Extend { ttl_ms },
            Call::Confirm { least_ms } => LeaseCall::Confirm { least_ms },
            Call::Downgrade => LeaseCall::Downgrade,
            _ => LeaseCall::Unlock,
        };
        manager.submit(call, own, tag)?;
        let How::Submits { cancelled_after } = step.how else { unreachable!("it is submitted") };
        let now = || world::with(|world| world.now);
        let mut cancelled_at = cancelled_after.map(|after| now() + after);
        loop {
            if world::with(|world| world.clients[self.client].is_gone) {
                // Another caller of the client may have received the event, and that caller does not
                // continue.
                return Ok(());
            }
            if cancelled_at.is_some_and(|at| now() >= at) {
                cancelled_at = None;
                manager.cancel(&canceller);
            }
            if let Some((own, outcome, at)) = self.ends.borrow_mut().remove(&number) {
                (*lease, *told_at) = (own, Some(at));
                return outcome;
            }
            self.ask_for_event(step.manager, number.is_multiple_of(2), (cancelled_at, 10))?;
        }
    }

    /// Asks for one event of any call of this client.
    fn ask_for_event(
        &self,
        manager: usize,
        waits: bool,
        (until, longest_ms): (Option<i64>, i64),
    ) -> Result<(), Error> {
        let me = self.client;
        let left_ms = until.map_or(i64::MAX, |at| (at - world::with(|world| world.now)) / MS + 1);
        let soon_ms = left_ms.min(longest_ms);
        world::with(|world| world.enter(me, manager, Attends::Listens));
        let event = self.managers[manager].next_event(if waits { soon_ms } else { 0 });
        let has_event = matches!(event, Ok(Some(_)));
        world::with(|world| world.look_at_kept(me));
        let taken = event.map(|event| self.take_event(event));
        world::with(|world| {
            world.judge_silence(me, manager);
            world.leave(me, manager, Attends::Listens);
        });
        taken?;
        if !has_event && !waits {
            turns::sleep(MS / 3);
        }
        Ok(())
    }

    pub(super) fn take_event(&self, event: Option<Submitted>) {
        let is_broken = |plant| world::with(|world| world.is_broken(plant));
        match event {
            Some(Submitted::Done { call, outcome }) => {
                let SubmittedCall { lease, tag, .. } = *call;
                let number = tag.downcast::<usize>().map_or(usize::MAX, |number| *number);
                for _ in 0..if is_broken(Plant::TellsTwice) { 2 } else { 1 } {
                    if !self.told.borrow_mut().insert(number) {
                        let words = "a call was told twice to have ended";
                        violate(Promise::OneEvent, words.to_owned());
                    }
                }
                let now = world::with(|world| world.now);
                self.ends.borrow_mut().insert(number, (lease, outcome, now));
            }
            Some(Submitted::Lost { .. }) if is_broken(Plant::HidesLost) => {}
            Some(Submitted::Lost { tag, error, remaining_ms }) => {
                let late = is_broken(Plant::TellsLostLate) && remaining_ms > 0;
                let remaining_ms = if late { 1 } else { remaining_ms };
                let number = tag.downcast::<usize>().map_or(usize::MAX, |number| *number);
                self.lose(number, &error, remaining_ms);
                if is_broken(Plant::LosesTwice) {
                    self.lose(number, &error, remaining_ms);
                }
            }
            None if is_broken(Plant::LosesForNothing) && self.kept.get() > 0 => {
                let error = Error::new(Status::Unreachable, "as broken as can be");
                self.lose(self.kept.get() - 1, &error, i64::MAX / MS / 100);
            }
            None => {}
        }
    }

    fn lose(&self, number: usize, error: &Error, remaining_ms: i64) {
        world::with(|world| {
            world.say(|world| {
                format!(
                    "{} was told that it loses {number}, {remaining_ms} ms left: {error}",
                    world.who()
                )
            });
            world.judge_lost_event(self.client, number, (error, remaining_ms));
        });
    }
}
