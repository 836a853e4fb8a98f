//! Locks end. Servers lose something, and clients mark them. Notes are rewritten. Time passes.

use crate::rules::{Clocks, Forgets, Mistake, Start};
use crate::search::Next;
use crate::state::{Hash, Note, Restorer, SERVERS, Server, World};
use crate::trust::trusts;

/// In seconds.
const GUARD_TIME: u8 = 3;
pub(crate) const LAST_SECOND: u8 = 8;

pub(crate) fn each_next(world: &World, start: &Start, next: &mut Next) {
    for place in 0..SERVERS {
        if world.servers[place].lock.is_some() {
            let mut after = *world;
            after.servers[place].lock = None;
            next.tell("the lock ends at", place, after);
        }
        let is_reliable = place >= start.unreliable;
        if world.losses < start.losses && !is_reliable {
            lose(world, start, place, next);
        }
        if !trusts(&world.servers[place], start) {
            let mut after = *world;
            begin_memory(&mut after.servers[place]);
            wait(&mut after, start, place);
            next.tell("a client marks", place, after);
        } else if world.rewrites < start.rewrites && !is_reliable {
            rewrite(world, start, place, next);
        }
    }
    if start.clocks == Clocks::NeverSetBack && world.now < LAST_SECOND {
        next.tell("a second passes", 0, World { now: world.now + 1, ..*world });
    }
}

fn wait(world: &mut World, start: &Start, place: usize) {
    if start.clocks == Clocks::NeverSetBack {
        world.servers[place].waits_until = world.now + GUARD_TIME;
    }
}

fn begin_memory(server: &mut Server) {
    let note = Note { life: server.known.life + 1, rewrites: 0 };
    server.note = Some(note);
    server.known = note;
    server.is_copy = false;
    server.restorer = Restorer::default();
}

/// A note was dated in the future, and its time is corrected. Or the server was restarted and has kept everything,
/// and its note gets the id of the new process.
fn rewrite(world: &World, start: &Start, place: usize, next: &mut Next) {
    let mut after = *world;
    after.rewrites += 1;
    let server = &mut after.servers[place];
    let Some(note) = &mut server.note else { return };
    note.rewrites += 1;
    if start.makes(Mistake::RewriteBeginsALife) {
        *note = Note { life: server.known.life + 1, rewrites: 0 };
    }
    server.known = *note;
    if start.makes(Mistake::RewriteMakesAnyHashFit) {
        server.hash.life = note.life;
    }
    server.restorer = Restorer::default();
    next.tell("a client rewrites the note of", place, after);
}

fn lose(world: &World, start: &Start, place: usize, next: &mut Next) {
    let server = &world.servers[place];
    let lost = World { losses: world.losses + 1, ..*world };
    let with = |server: Server| {
        let mut after = lost;
        after.servers[place] = Server { restorer: Restorer::default(), ..server };
        after
    };
    let hash = Hash::default();
    let empty = Server { lock: None, note: None, is_copy: false, hash, ..*server };
    next.tell("everything is lost at", place, with(empty));
    if start.forgets == Forgets::AllOrNews {
        for old in older(server) {
            next.tell("older data comes back at", place, with(old));
        }
    }
    if start.forgets == Forgets::AllOrHash {
        let mut after = with(Server { hash, ..*server });
        // The wait begins when a client sees this. That is now at the earliest.
        wait(&mut after, start, place);
        next.tell("somebody deletes the hash of", place, after);
    }
}

/// The server with data from earlier: as a copy that is promoted, or with an older note.
fn older(server: &Server) -> Vec<Server> {
    let mut notes = Vec::new();
    if let Some(note) = server.note {
        notes.push((note, true));
        if note.rewrites > 0 {
            notes.push((Note { rewrites: note.rewrites - 1, ..note }, server.is_copy));
        }
        if note.life > 1 {
            notes.push((Note { life: note.life - 1, rewrites: 0 }, server.is_copy));
        }
    }
    let mut found = Vec::new();
    // The data may be from before the numbers were restored.
    let seen = [server.hash.seen, server.late.map_or(0, |it| it.seen)];
    for (note, is_copy) in notes {
        for (lock, seen) in
            [None, server.lock].into_iter().flat_map(|it| seen.map(|seen| (it, seen)))
        {
            let server = Server {
                lock,
                note: Some(note),
                is_copy,
                restorer: Restorer::default(),
                ..*server
            };
            found.extend(
                older_hashes(Hash { seen, ..server.hash }, note)
                    .map(|hash| Server { hash, ..server }),
            );
        }
    }
    found.dedup();
    found
}

/// The hash may not have been restored when the data was saved.
fn older_hashes(hash: Hash, note: Note) -> impl Iterator<Item = Hash> {
    let numbers = [(0, 0), (0, hash.base), (hash.field.min(1), hash.base), (hash.field, hash.base)];
    let lives = [0, note.life];
    let all = lives.into_iter().flat_map(move |life| numbers.map(|it| (life, it)));
    all.map(move |(life, (field, base))| Hash { life, field, base, ..hash })
}
