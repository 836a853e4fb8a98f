//! Random commands. Some of them need the commands before them.

use super::pair::{Pair, THERE};
use super::{KEYS, MEMORIES, TOKENS};
use crate::protocol::command::fence::KEY as FENCE;
use crate::protocol::command::several::waking::{ENROL_SCRIPT, RELEASE_SCRIPT};
use crate::protocol::command::shared::{acquire, enrol, extend, inspect, intend, release};
use crate::protocol::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_AND_WAKE, RELEASE_PERMITS,
    RELEASE_SLOT,
};
use crate::protocol::command::{
    acquire_with_token, inspect_permits, raise_fence, release_after, release_permits, several,
    take_permit,
};
use crate::world::commands::{EXTEND, RELEASE};
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Refusal};

impl Pair {
    pub(super) fn step(&mut self, dice: &mut Dice) {
        let (key, token, ttl) = (dice.pick(&KEYS), dice.pick(&TOKENS), &*self.ttl(dice));
        match dice.below(50) {
            36..=41 => self.step_permits(dice, token, ttl),
            42..=45 => drop(self.step_in_line(dice, key, token)),
            46..=49 => drop(self.step_in_other_lines(dice, token)),
            24..=29 => self.step_fenced(dice, key, token, ttl),
            30..=35 => self.step_several(dice, token, ttl),
            0..=5 => self.compare(&["SET", key, token, "PX", ttl, "NX"]),
            9 => self.compare(&["EVAL", release_after::SCRIPT, "1", key, token, ttl]),
            6..=8 => self.compare(&["EVAL", EXTEND, "1", key, token, ttl]),
            10..=13 => match self.store.dialect {
                Dialect::Delifeq if dice.once_in(2) => self.compare(&["DELIFEQ", key, token]),
                Dialect::Delex if dice.once_in(2) => self.compare(&["DELEX", key, "IFEQ", token]),
                _ => self.compare(&["EVAL", RELEASE, "1", key, token]),
            },
            14 | 15 => self.compare(&["GETRANGE", key, "0", "127"]),
            16 | 17 => self.compare(&["PTTL", key]),
            18 if dice.once_in(2) => self.compare(&["DEL", key]),
            18 => self.compare(&["PEXPIRE", key, ttl]),
            19 if self.refusal != Some(Refusal::ReadOnly) => self.let_expire(key),
            20 => self.compare(dice.pick(&[
                &["PING"][..],
                &["DELEX"],
                &["DELIFEQ"],
                &["SELECT", "99"],
            ])),
            21 => self.compare(dice.pick(&[
                &["SET", "a", "x", "PX", "0", "NX"][..],
                &["SET", "a", "x", "PX", "no"],
                &["SET", "a", "x", "PX"],
                &["SET", "a"],
                &["GETRANGE", "a", "0"],
                &["PTTL"],
                &["AUTH", "nobody"],
            ])),
            22 => self.compare(&["SELECT", dice.pick(&["0", "2"])]),
            19 => {}
            _ => self.refuse(dice.pick(&[
                None,
                None,
                Some(Refusal::Oom),
                Some(Refusal::ReadOnly),
                Some(Refusal::NoPerm),
                Some(Refusal::NoPermLook),
            ])),
        }
    }

    /// Uses numbers that no clock limits, because the clocks of the two servers show different times.
    fn step_fenced(&mut self, dice: &mut Dice, key: &str, token: &str, ttl: &str) {
        const SPREAD: &str = "4000000000000000";
        let number = dice.between(1, 6).to_string();
        let rest = [dice.pick(&["7", "8"]), MEMORIES[0]];
        let words = match dice.below(3) {
            0 => vec!["EVAL", raise_fence::SCRIPT, "2", key, FENCE, token, &number],
            _ => vec![
                "EVAL",
                acquire_with_token::SCRIPT,
                "2",
                key,
                FENCE,
                token,
                ttl,
                &number,
                SPREAD,
            ],
        };
        self.compare(&[&words[..], &rest].concat());
    }

    /// The keys are slots of a semaphore, and other values that are there represent permits of other
    /// clients.
    fn step_permits(&mut self, dice: &mut Dice, token: &str, ttl: &str) {
        let slot = dice.between(1, 3).to_string();
        let (script, rest) = match dice.below(6) {
            0 | 1 => (take_permit::SCRIPT, vec![token, ttl, &slot, "3"]),
            2 => (take_permit::SCRIPT, vec![token, ttl, &slot, "1"]),
            3 => (release_permits::SCRIPT, vec![token, "0"]),
            4 => (release_permits::SCRIPT, vec![token, &slot]),
            _ => (inspect_permits::SCRIPT, vec!["128"]),
        };
        let slots = ["EVAL", script, "3", KEYS[0], KEYS[1], KEYS[2]];
        self.compare(&[&slots[..], &rest].concat());
    }

    /// There are two waiting clients. One has waited for longer than any client is believed to wait, and
    /// receives nothing. The other is connected, and its time of arrival is in the future, so that its turn
    /// never comes before the other's.
    pub(super) fn step_in_line(&mut self, dice: &mut Dice, key: &str, token: &str) -> usize {
        const WAITERS: [(&str, &str); 2] = [("gone", "0"), (THERE, "9000000000000000")];
        let (line, (channel, since)) = (format!("{key}:w"), dice.pick(&WAITERS));
        match dice.below(4) {
            0 | 1 => self.compare(&["EVAL", ENROL, "2", key, &line, channel, since, "100000"]),
            2 => self.compare(&["EVAL", LEAVE, "2", key, &line, channel]),
            _ => self.compare(&["EVAL", RELEASE_AND_WAKE, "2", key, &line, token]),
        }
        self.told()
    }

    /// The same for clients that wait for a permit of a semaphore, whose slots are the keys, or for two
    /// keys at once.
    pub(super) fn step_in_other_lines(&mut self, dice: &mut Dice, token: &str) -> usize {
        const WAITERS: [(&str, &str); 2] = [("gone", "0"), (THERE, "9000000000000000")];
        let ((channel, since), [a, b, c]) = (dice.pick(&WAITERS), KEYS);
        let (of_a, of_b, ttl) = (&*format!("{a}:w"), &*format!("{b}:w"), "100000");
        let (all, one, other) = (["4", a, b, of_a, of_b], ["3", a, b, of_a], ["3", a, b, of_b]);
        let four = ["4", a, b, c, of_a];
        let slot = ["3", b, of_b, of_a];
        let stays = dice.pick(&["0", "1", "3"]);
        let words: Vec<&str> = match dice.below(12) {
            0 => [&["EVAL", ENROL_PERMITS][..], &four, &[channel, since, ttl]].concat(),
            1 => [&["EVAL", LEAVE_PERMITS][..], &four, &[channel]].concat(),
            2 | 3 => [&["EVAL", RELEASE_PERMITS][..], &four, &[token, stays]].concat(),
            4 => [&["EVAL", RELEASE_SLOT][..], &slot, &[token]].concat(),
            5 => [&["EVAL", LEAVE_SLOT][..], &slot, &[channel]].concat(),
            6 => {
                [&["EVAL", ENROL_SCRIPT][..], &all, &[channel, since, ttl, "2", "1", "2"]].concat()
            }
            7 => [&["EVAL", ENROL_SCRIPT][..], &one, &[channel, since, ttl, "2", "1"]].concat(),
            8 => [&["EVAL", ENROL_SCRIPT][..], &other, &[channel, since, ttl, "2", "2"]].concat(),
            9 => [&["EVAL", RELEASE_SCRIPT][..], &other, &[token, "2", "2"]].concat(),
            _ => [&["EVAL", RELEASE_SCRIPT][..], &all, &[token, "2", "1", "2"]].concat(),
        };
        self.compare(&words);
        self.told()
    }

    /// Runs one of the scripts about readers. Returns how many clients were told something, and whether a
    /// reader has joined.
    pub(super) fn step_shared(&mut self, dice: &mut Dice) -> (usize, bool) {
        const NEVER: &str = "315360000000";
        let (key, readers, line, intent) = ("a", "a:r", "a:w", "a:i");
        let (token, ttl) = (TOKENS[dice.below(2)], &*self.ttl(dice));
        let (channel, since) = dice.pick(&[("gone", "0"), (THERE, "9000000000000000")]);
        // An announcement of a writer that outlives this test.
        let word = "200000000";
        let longest = "300000000";
        match dice.below(16) {
            0..=3 => {
                let join = ["EVAL", acquire::SCRIPT, "3", key, readers, intent, token, ttl];
                self.compare(&[&join[..], &[longest]].concat());
                return (0, self.store.keys.iter().any(|it| it.is_reader));
            }
            4 => self.compare(&["EVAL", extend::SCRIPT, "2", key, readers, token, ttl, NEVER]),
            5 => self.compare(&["EVAL", extend::SCRIPT, "2", key, readers, token, "0", NEVER]),
            6 => self.compare(&["EVAL", release::SCRIPT, "2", key, readers, token, NEVER]),
            7 | 8 => {
                let keys = ["4", key, readers, line, intent, token, NEVER];
                self.compare(&[&["EVAL", release::WAKING_SCRIPT][..], &keys].concat());
            }
            9 => self.compare(&["EVAL", inspect::SCRIPT, "2", key, readers, token, "128", NEVER]),
            10 if dice.once_in(2) => {
                self.compare(&["EVAL", intend::SCRIPT, "2", key, intent, word]);
            }
            10 => self.compare(&["EVAL", RELEASE, "1", intent, "redlock:writer"]),
            11 | 12 => {
                let keys = ["3", key, line, intent, channel, since, "100000", longest];
                self.compare(&[&["EVAL", enrol::SCRIPT][..], &keys].concat());
            }
            13 => self.compare(&["EVAL", ENROL, "2", key, line, channel, since, "100000"]),
            14 if dice.once_in(2) => self.compare(&["EVAL", LEAVE, "2", key, line, channel]),
            14 => self.compare(&["EVAL", RELEASE_AND_WAKE, "2", key, line, token]),
            _ if dice.once_in(2) => self.compare(&["SET", key, token, "PX", ttl, "NX"]),
            _ => self.compare(&["ZCARD", readers]),
        }
        (self.told(), false)
    }

    /// Two keys at once, in either order.
    fn step_several(&mut self, dice: &mut Dice, token: &str, ttl: &str) {
        let one = dice.pick(&KEYS);
        let others: Vec<&str> = KEYS.into_iter().filter(|it| *it != one).collect();
        let other = dice.pick(&others);
        let script = dice.pick(&[
            several::acquire::SCRIPT,
            several::acquire::SCRIPT,
            several::repair::SCRIPT,
            several::extend::SCRIPT,
            several::extend::SCRIPT,
            several::release::SCRIPT,
        ]);
        let words = ["EVAL", script, "2", one, other, token, ttl];
        let is_without_ttl = script == several::release::SCRIPT
            || script == several::extend::SCRIPT && dice.once_in(2);
        self.compare(&words[..if is_without_ttl { 6 } else { 7 }]);
    }
}
