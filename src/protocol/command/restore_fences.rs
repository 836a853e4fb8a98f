//! Restores the numbers of a server that has lost them. Each server is sent a request of its own.

use super::definition::{Definition, done_or_absent};
use super::fence::{KEY, SPREAD_US};
use super::guard;
use super::numbers::Restored;
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| {
        let Some(Restored { memory, seen_ms, base, clock_us, is_by_clock }) =
            subject.restored.as_deref()
        else {
            return;
        };
        encoder.put_script(&SCRIPT, |command| {
            command.arg(2).key(KEY).key(guard::KEY);
            command.arg(memory.generation).arg(memory.life.as_str()).arg(*base);
            command.arg(*clock_us).arg(SPREAD_US).arg(i32::from(*is_by_clock)).arg(*seen_ms)
        });
    },
    done_or_absent,
);

pub(crate) static SCRIPT: &str = script!("restore_fences.lua");
