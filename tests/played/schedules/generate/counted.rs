//! Schedules in which one server after another loses its fencing tokens, and clocks are ahead for a while: of one
//! server, or of all. Each server is restored before the next one is lost, because locks are taken all the time.

use crate::schedules::schedule::{Call, Fault, Keeps, Mishap, Schedule, Sin, Step, What};
use crate::world::clocks::MS;
use crate::world::dice::Dice;

const HOUR: i64 = 3_600_000 * MS;

/// The locks are short, so a server has no vote for the shortest time after a loss: three seconds.
const TTL_MS: i64 = 500;

/// When clocks that are ahead are set right, and when the first server is lost. The next ones follow at this distance:
/// time enough to find a loss, to wait, and to restore the server.
const RIGHT_AT: i64 = 12_000 * MS;
const FIRST_LOSS_AT: i64 = 14_000 * MS;
const APART: i64 = 16_000 * MS;
const LOSSES: usize = 3;

/// A server to which nobody can connect is not restored. Servers that are lost meanwhile are lost at one time.
const CONNECT_MS: i64 = 300;

pub(super) fn lose_numbers_in_turn(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 16, 0);
    schedule.sins = vec![Sin::LostKeys, Sin::LeapingClocks];
    (schedule.is_guarded, schedule.is_fenced, schedule.permits) = (true, true, 0);
    schedule.connects_first = true;
    let servers = schedule.servers.len();
    let ahead = dice.between(HOUR, 100 * HOUR);
    let all = dice.once_in(2);
    let one = dice.below(servers);
    schedule.faults.clear();
    for server in (0..servers).filter(|&server| all || server == one) {
        // From the beginning, or all at once when clients know the clocks already.
        match schedule.seed.is_multiple_of(2) {
            true => schedule.servers[server].ahead += ahead,
            false => schedule.faults.push(at(4_000 * MS, What::StepClock { server, by: ahead })),
        }
        schedule.faults.push(at(RIGHT_AT, What::StepClock { server, by: -ahead }));
    }
    let first = dice.below(servers);
    for nth in 0..LOSSES {
        let server = (first + nth) % servers;
        let what = match dice.once_in(2) {
            true => What::Flush { server },
            false => What::Kill { server, keeps: Keeps::None, quietly: false },
        };
        let begins = FIRST_LOSS_AT + nth as i64 * APART;
        schedule.faults.push(Fault { lasts: dice.between(0, 20 * MS), ..at(begins, what) });
    }
    schedule.faults.sort_by_key(|it| it.at);
    for client in &mut schedule.clients {
        client.connect_ms = CONNECT_MS;
        client.hitches.clear();
        client.others.clear();
        client.callers.truncate(1);
        client.callers.iter_mut().for_each(|steps| *steps = locks(&mut dice));
    }
}

/// A caller that takes a lock and gives it back, until some time after the last loss. Meanwhile it locks another resource,
/// because each lock brings the number of its own resource to servers that had lost it.
fn locks(dice: &mut Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut passed = 0;
    let all_lost = FIRST_LOSS_AT + LOSSES as i64 * APART;
    while passed < all_lost + 4_000 * MS {
        let pause = dice.between(50 * MS, 900 * MS);
        let mishap = dice.once_in(20).then(|| cut(dice));
        let resource = usize::from((RIGHT_AT - 2_000 * MS..all_lost).contains(&passed));
        let lock = Step { resource, ..Step::of(Call::Lock { ttl_ms: TTL_MS }) };
        steps.push(Step { pause, mishap, ..lock });
        steps.push(Step { pause: dice.between(0, 20 * MS), ..Step::of(Call::Unlock) });
        passed += pause;
    }
    steps
}

/// A connection is lost while something may be under way.
fn cut(dice: &mut Dice) -> (i64, Mishap) {
    (dice.between(0, 4 * MS), Mishap::Cut { server: 0 })
}

fn at(at: i64, what: What) -> Fault {
    Fault { at, lasts: 0, what }
}
