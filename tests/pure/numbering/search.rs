//! The search through all worlds, nearest to the start first.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::acquiring;
use crate::losing;
use crate::restoring;
use crate::rules::{Clocks, Start};
use crate::state::World;
use crate::symmetry::sorted;

/// What a search has found.
pub(crate) struct Found {
    pub(crate) states: usize,
    /// Whether all states were visited.
    pub(crate) is_complete: bool,
    /// Whether a token came after a greater one, or twice.
    pub(crate) is_wrong: bool,
}

/// The worlds that can follow one.
#[derive(Default)]
pub(crate) struct Next {
    worlds: Vec<(Step, World)>,
}

/// What happened, and to which client or server.
type Step = (&'static str, usize);

/// The states that were met, as 64 bits of each. With 50 million states, two of them have the same bits with a
/// probability of less than one in ten thousand.
type Seen = HashSet<u64, BuildHasherDefault<Mixer>>;

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
        acquiring::each_next(world, start, self);
        losing::each_next(world, start, self);
        restoring::each_next(world, start, self);
    }
}

/// Visits at most `most` states, and stops at the first that is wrong.
pub(crate) fn search(start: &Start, most: usize) -> Found {
    let mut is_wrong = false;
    let (states, is_complete) = visit(start, most, |world| {
        is_wrong = world.is_wrong;
        !is_wrong
    });
    Found { states, is_complete, is_wrong }
}

/// Visits at most `most` states, until the visitor returns false. Returns how many it met, and whether these are all.
pub(crate) fn visit(
    start: &Start,
    most: usize,
    mut visitor: impl FnMut(&World) -> bool,
) -> (usize, bool) {
    let sorts_servers = start.has_equal_servers();
    let first = first_of(start);
    let mut seen = Seen::from_iter([mixed(&first)]);
    let mut due = VecDeque::from([first]);
    let mut next = Next::default();
    while let Some(world) = due.pop_front() {
        if !visitor(&world) || seen.len() >= most {
            return (seen.len(), false);
        }
        next.fill(&world, start);
        for (_, after) in &next.worlds {
            let after = sorted(after, sorts_servers);
            if seen.insert(mixed(&after)) {
                due.push_back(after);
            }
        }
    }
    (seen.len(), true)
}

/// Searches for a wrong state again, and says what happened. This takes longer and needs more memory.
pub(crate) fn tell(start: &Start) -> String {
    let mut seen = Seen::default();
    // Each world, the step that led to it, and where the world before that step stands.
    let mut met: Vec<(usize, Step, World)> = vec![(0, ("start", 0), first_of(start))];
    let mut next = Next::default();
    for at in 0.. {
        let Some(&(_, _, world)) = met.get(at) else { break };
        next.fill(&world, start);
        for (step, after) in next.worlds.drain(..).filter(|it| seen.insert(mixed(&it.1))) {
            met.push((at, step, after));
            if after.is_wrong {
                return story(&met);
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

/// Plays at most `most` games of random steps, always the same ones. Returns whether one of them went wrong.
pub(crate) fn play(start: &Start, most: usize) -> bool {
    let mut next = Next::default();
    let mut random = Mixer::default();
    for game in 1..=most {
        let mut world = first_of(start);
        for _ in 0..STEPS {
            next.fill(&world, start);
            if next.worlds.is_empty() {
                break;
            }
            random.write_usize(game);
            let chosen = random.finish() % next.worlds.len() as u64;
            world = next.worlds[chosen as usize].1;
            if world.is_wrong {
                return true;
            }
        }
    }
    false
}

/// The length of a game.
const STEPS: usize = 60;

fn first_of(start: &Start) -> World {
    World::new(u8::from(start.clocks == Clocks::NeverSetBack), start.is_first_lost)
}

fn mixed(world: &World) -> u64 {
    let mut mixer = Mixer::default();
    world.hash(&mut mixer);
    mixer.finish()
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ ODD) * u128::from(FACTOR);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
