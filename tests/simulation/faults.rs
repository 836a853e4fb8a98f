//! What may go wrong, and, for a schedule that is to be found out, what must not.

use std::rc::Rc;

use crate::client::{Client, Dice};
use crate::link::{Fault, Trip, Way};
use crate::server::Clock;
use crate::world::{Cluster, MS, World};

/// Nothing lasts longer: no freeze, no way of a request, no step of a clock.
pub(crate) const LONGEST_MS: i64 = 1_500;

/// What the servers do that they must not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sins {
    None,
    LostKeys,
    LeapingClocks,
    FastClocks,
}

/// A client with settings and a clock of its own, which is held up now and then.
pub(crate) fn client(cluster: &Cluster, dice: &Rc<Dice>) -> Client {
    // No clock of a client is slow, and none of a server is faster than by the drift factor.
    let clock = Clock {
        ahead: dice.between(-100_000 * MS, 1 << 50),
        per_million: dice.between(1_000_000, 1_002_000),
    };
    let client = Client::new(&cluster.0, clock)
        .tries(dice.between(1, 3) as i32, dice.between(0, 100) as i32);
    let (connect_ms, reply_ms) = (dice.between(20, 300), dice.pick(&[0, 0, 5, 50, 700]));
    client.settings.set_timeouts(connect_ms, reply_ms).expect("in bounds");
    let often = dice.pick(&[30, 100, 1_000]);
    let dice = Rc::clone(dice);
    cluster.peer(client.me).stall = Some(Box::new(move || match dice.between(1, often) {
        1 => dice.between(0, 200) * MS,
        2 => dice.between(0, LONGEST_MS) * MS,
        _ => 0,
    }));
    client
}

/// Lets loose what may happen within so long.
pub(crate) fn unleash(cluster: &Cluster, dice: &Rc<Dice>, span_ms: i64, sins: Sins) {
    let rates = match sins {
        Sins::FastClocks => (1_100_000, 1_300_000),
        _ => (995_000, 1_010_000),
    };
    for server in 0..cluster.servers() {
        let (ahead, per_million) = (dice.between(0, 1 << 50), dice.between(rates.0, rates.1));
        cluster.server(server).clock = Clock { ahead, per_million };
    }
    *cluster.weather.borrow_mut() = weather(dice);
    for _ in 0..dice.between(0, 12) {
        let (dice, at_ms) = (Rc::clone(dice), dice.between(0, span_ms));
        cluster.after_ms(at_ms, move |world| strike(world, &dice, sins));
    }
}

/// Trips that are short as a rule, and sometimes very long, or end in an error or in silence.
fn weather(dice: &Rc<Dice>) -> Box<dyn FnMut(Way) -> Trip> {
    let dice = Rc::clone(dice);
    let bad = dice.pick(&[8, 30, 200]);
    Box::new(move |_| {
        let mut trip = Trip {
            there: dice.between(0, 2 * MS),
            back: dice.between(0, 2 * MS),
            fault: Fault::None,
        };
        match dice.between(1, bad) {
            1 => trip.there += dice.between(0, LONGEST_MS / 3) * MS,
            2 => trip.back += dice.between(0, LONGEST_MS / 3) * MS,
            3 if dice.once_in(8) => trip.back = Trip::NEVER,
            4 => trip.fault = dice.pick(&[Fault::ErrorAfter, Fault::ErrorInstead]),
            _ => {}
        }
        trip
    })
}

/// Something happens to one of the servers, or to one of the clients.
fn strike(world: &World, dice: &Rc<Dice>, sins: Sins) {
    let server = dice.between(0, world.servers() as i64 - 1) as usize;
    let client = dice.between(0, world.peers() as i64 - 1) as usize;
    let ms = dice.between(1, dice.pick(&[50, 300, LONGEST_MS / 3]));
    match (sins, dice.between(0, 7)) {
        (Sins::LostKeys, 0..=3) => world.server(server).lose_all(),
        (Sins::LeapingClocks, 0..=3) => world.server(server).clock.ahead += ms * MS,
        (_, 0 | 1) => {
            world.freeze(server);
            world.after_ms(ms, move |world| world.thaw(server));
        }
        (_, 2 | 3) => world.cut(Way { client, server }, dice.once_in(2)),
        (_, 4) => {
            world.kill(server);
            world.after_ms(ms, move |world| world.start(server));
        }
        // Keys may live longer than they should.
        (_, 5) => world.server(server).clock.ahead -= ms / 5 * MS,
        _ => world.suspend(client, ms),
    }
}

/// Ends all that goes wrong. What is under way arrives.
pub(crate) fn heal(cluster: &Cluster) {
    *cluster.weather.borrow_mut() = Box::new(|_| Trip::default());
    for server in 0..cluster.servers() {
        cluster.thaw(server);
        cluster.start(server);
    }
    for client in 0..cluster.peers() {
        cluster.peer(client).stall = None;
    }
}
