//! The search through all worlds, nearest to the start first.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;

use crate::key::Key;
use crate::rules::Start;
use crate::state::World;
use crate::symmetry::sorted;
use crate::{asking, electing, locking, passing};

/// What a search has found.
pub(crate) struct Found {
    pub(crate) states: usize,
    /// How many steps lead from the start to the last state.
    pub(crate) steps: usize,
    /// Whether all states were visited.
    pub(crate) is_complete: bool,
    /// Whether two clients held the lock at once.
    pub(crate) is_wrong: bool,
}

/// The worlds that can follow one.
#[derive(Default)]
pub(crate) struct Next {
    worlds: Vec<(Step, World)>,
}

/// What happened, and to which client, arbiter or node.
type Step = (&'static str, usize);

/// The states that were met.
type Seen = HashSet<Key, BuildHasherDefault<Mixer>>;

/// A faster hash than that of the standard library. The keys are numbers of our own.
#[derive(Default)]
pub(crate) struct Mixer(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

impl Next {
    pub(crate) fn tell(&mut self, what: &'static str, who: usize, world: World) {
        self.worlds.push(((what, who), world));
    }

    fn fill(&mut self, world: &World, start: &Start) {
        self.worlds.clear();
        passing::each_next(world, start, self);
        electing::each_next(world, start, self);
        asking::each_next(world, start, self);
        locking::each_next(world, start, self);
        for (_, world) in &mut self.worlds {
            world.settle(start);
        }
    }
}

/// Visits about `most` states, and stops at the first that is wrong.
pub(crate) fn search(start: &Start, most: usize) -> Found {
    let mut found = Found { states: 0, steps: 0, is_complete: false, is_wrong: false };
    found.is_complete = visit(start, most, |world, steps| {
        found.states += 1;
        found.steps = steps;
        found.is_wrong = world.has_two_holders();
        !found.is_wrong
    });
    found
}

/// Visits about `most` states, until the visitor returns false. It is also told how many steps led to the state.
/// Returns whether these are all states.
pub(crate) fn visit(
    start: &Start,
    most: usize,
    mut visitor: impl FnMut(&World, usize) -> bool,
) -> bool {
    let (key, first) = sorted(&World::new(start), start);
    let mut seen = Seen::from_iter([key]);
    let mut due = vec![first];
    let mut found = Vec::new();
    let mut next = Next::default();
    if !visitor(&first, 0) {
        return false;
    }
    for steps in 1.. {
        for world in due.drain(..) {
            next.fill(&world, start);
            for (_, after) in &next.worlds {
                let (key, after) = sorted(after, start);
                if seen.insert(key) {
                    found.push(after);
                    if !visitor(&after, steps) {
                        return false;
                    }
                }
            }
            if seen.len() >= most {
                return false;
            }
        }
        if found.is_empty() {
            break;
        }
        mem::swap(&mut due, &mut found);
    }
    true
}

/// All worlds that can follow this one.
pub(crate) fn following(world: &World, start: &Start) -> Vec<World> {
    let mut next = Next::default();
    next.fill(world, start);
    next.worlds.into_iter().map(|it| it.1).collect()
}

/// Searches for a wrong state again, and says what happened. This needs more memory.
pub(crate) fn tell(start: &Start) -> String {
    let mut seen = Seen::default();
    // Each world, the step that led to it, and where the world before that step stands.
    let mut met: Vec<(usize, Step, World)> = vec![(0, ("start", 0), World::new(start))];
    let mut next = Next::default();
    for at in 0.. {
        let Some(&(_, _, world)) = met.get(at) else { break };
        next.fill(&world, start);
        for (step, after) in next.worlds.drain(..) {
            // The order stays as it is, so that each client keeps its number.
            if seen.insert(sorted(&after, start).0) {
                met.push((at, step, after));
                if after.has_two_holders() {
                    return story(&met);
                }
            }
        }
    }
    String::new()
}

fn story(met: &[(usize, Step, World)]) -> String {
    let mut at = met.len() - 1;
    let mut lines = vec![format!("{:#?}", met[at].2)];
    while at > 0 {
        let (before, (what, who), _) = met[at];
        lines.push(format!("{what} {who}"));
        at = before;
    }
    lines.reverse();
    lines.join("\n")
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u128(byte.into());
        }
    }

    fn write_u128(&mut self, number: u128) {
        for half in [number as u64, (number >> 64) as u64] {
            let product = u128::from(self.0 ^ half ^ ODD) * u128::from(FACTOR);
            self.0 = (product >> 64) as u64 ^ product as u64;
        }
    }
}
