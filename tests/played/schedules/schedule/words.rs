//! Describes a schedule in words, for readers of the story of a play.

use std::fmt;

use super::{Fault, Hitch, How, Schedule, ServerPlan, Step, name_of};
use crate::world::clocks::MS;

/// True time, since the beginning of the play.
pub(crate) struct At(pub(crate) i64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / MS as f64)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, breaks {:?}", self.seed, self.sins)?;
        writeln!(f, "weather: {:?}, permits {}", self.weather, self.permits)?;
        for (index, it) in self.servers.iter().enumerate() {
            let ServerPlan { ahead, per_million, early_ms, dialect, password } = it;
            write!(f, "server {index}: clock ahead {}, {per_million} per million, ", At(*ahead))?;
            writeln!(f, "keys {early_ms} ms early, {dialect:?}, password {password}")?;
        }
        for (index, it) in self.clients.iter().enumerate() {
            if it.callers.iter().all(Vec::is_empty) {
                continue;
            }
            write!(f, "client {index}: servers {:?}, clock ahead {}, ", it.list, At(it.ahead))?;
            write!(f, "{} per million, drift {}, ", it.per_million, it.drift)?;
            write!(f, "{} tries every {} ms, ", it.tries, it.delay_ms)?;
            writeln!(f, "connect {} ms, reply {} ms", it.connect_ms, it.reply_ms)?;
            for (other, list) in it.others.iter().enumerate() {
                writeln!(f, "  its manager {}: servers {list:?}", other + 1)?;
            }
            for (caller, steps) in it.callers.iter().enumerate() {
                for step in steps {
                    let Step { pause, before_end, call, manager, slot, resource, mishap, .. } =
                        step;
                    write!(f, "  {index}.{caller}: after {}", At(*pause))?;
                    if step.drives {
                        write!(f, ", asking for events")?;
                    }
                    if let Some(before) = before_end {
                        write!(f, " (or {} before its end)", At(*before))?;
                    }
                    write!(f, ", lease {slot}")?;
                    if *manager > 0 {
                        write!(f, " through manager {manager}")?;
                    }
                    write!(f, ": ")?;
                    write!(f, "{} {call:?}", name_of(*resource))?;
                    if step.keeps {
                        write!(f, ", kept")?;
                    }
                    if let How::Submits { cancelled_after } = step.how {
                        write!(f, ", submitted")?;
                        if let Some(after) = cancelled_after {
                            write!(f, " and cancelled after {}", At(after))?;
                        }
                    }
                    match mishap {
                        Some((after, what)) => writeln!(f, ", and after {} {what:?}", At(*after))?,
                        None => writeln!(f)?,
                    }
                }
            }
            for Hitch { step, lasts } in &it.hitches {
                match lasts {
                    Some(lasts) => writeln!(f, "  at its step {step}: stopped for {}", At(*lasts))?,
                    None => writeln!(f, "  at its step {step}: ended")?,
                }
            }
        }
        for Fault { at, lasts, what } in &self.faults {
            writeln!(f, "fault at {} for {}: {what:?}", At(*at), At(*lasts))?;
        }
        Ok(())
    }
}
