//! Takes the turns of a part in order, round after round, within the time of the part.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Outcome;
use super::contenders::Contenders;
use super::plan::{Part, Planned};
use super::results::{BUSY, Results};
use super::servers::Servers;
use super::turns;

/// Runs the planned number of rounds, or fewer if there is not enough time. If others use the machine, it runs
/// more rounds, provided there is time. Then the quietest rounds count.
pub(crate) fn run(
    part: &Part,
    until: Instant,
    contenders: &Contenders,
    dir: &Path,
    results: &mut Results,
) -> Outcome<()> {
    let servers = Servers::start(part.servers, dir)?;
    let most = part.rounds + part.rounds / 2;
    let mut took = vec![Duration::ZERO; part.turns.len()];
    for round in 0..most {
        let due = |number: &usize| is_due(part, round, &part.turns[*number]);
        let estimate: Duration = (0..took.len()).filter(due).map(|number| took[number]).sum();
        if Instant::now() + estimate > until && round > 0 || is_enough(part, round, results) {
            break;
        }
        eprintln!("bench: {}, round {} ({} planned)", part.name, round + 1, part.rounds);
        one_round(part, round, until, contenders, (&servers, dir), &mut took, results)?;
    }
    Ok(())
}

/// Rounds beyond the planned number are only for turns with goals.
fn is_due(part: &Part, round: usize, planned: &Planned) -> bool {
    round.is_multiple_of(planned.every) && (round < part.rounds || planned.every == 1)
}

/// A different contender begins each round, because the order must not matter.
fn one_round(
    part: &Part,
    round: usize,
    until: Instant,
    contenders: &Contenders,
    (shared, dir): (&Servers, &Path),
    took: &mut [Duration],
    results: &mut Results,
) -> Outcome<()> {
    let count = part.turns.len();
    for place in 0..count {
        let number = (round + place) % count;
        let planned = &part.turns[number];
        let Planned { turn, times, every } = *planned;
        let start = Instant::now();
        let is_late = start > until && every > 1;
        let is_vain = results.is_absent(turn.who) || results.is_hopeless(turn);
        if !is_due(part, round, planned) || is_vain || is_late {
            continue;
        }
        let own = if turn.fresh { Some(Servers::start(turn.servers, dir)?) } else { None };
        let servers = own.as_ref().unwrap_or(shared);
        // Each turn has its own key, and all keys have the same length. So no turn meets keys that another has
        // left.
        let key = format!("bench:{:03}:{round:02}:{number:02}", part.servers);
        let record = turns::take(turn, round, &key, times, contenders, servers)?;
        results.add(turn, record);
        took[number] = start.elapsed();
    }
    Ok(())
}

fn is_enough(part: &Part, round: usize, results: &Results) -> bool {
    let core = part.turns.iter().filter(|planned| planned.every == 1);
    let quiet = |planned: &Planned| results.rounds_below(planned.turn, BUSY) >= part.rounds;
    round >= part.rounds && core.into_iter().all(quiet)
}
