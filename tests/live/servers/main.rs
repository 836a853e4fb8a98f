//! Servers that are down, slow, broken or not what they seem. A minority of them has no effect. With a majority
//! of them, every call reports it in time. In no case is anything left behind.

#[path = "../../support/mod.rs"]
mod support;

mod addresses;
mod dialects;
mod faults;
mod returning;
mod rights;
mod secrets;

use support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, connected, connected_unguarded,
    every_way_to_lock_is_unreachable, everything_works, in_time, locks_again, make_brief, names,
    nothing_is_left, patient, unguarded,
};
