//! `redlock top`: shows who waits for which lock, and how often locks change hands.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cli::Common;
use crate::failure::Failure;
use crate::list::{as_json, name_of};
use crate::output;
use crate::screen::Screen;
use crate::servers::Servers;
use crate::survey::{Found, Survey};
use crate::table::Table;
use crate::time;

/// How often the holders of the locks are read between two pages.
const LOOK: Duration = Duration::from_millis(100);

/// How many locks are watched in this way: the ones with the most waiters.
const WATCHED_MAX: usize = 1000;

/// With a shorter interval, a page would take longer to make than it is shown.
const INTERVAL_MIN: Duration = Duration::from_millis(200);

/// The last known holder of each lock, and how often the holder has changed.
#[derive(Default)]
struct Hands {
    last: BTreeMap<Vec<u8>, Vec<u8>>,
    changes: BTreeMap<Vec<u8>, u64>,
}

pub(crate) fn top(
    common: &Common,
    prefix: &str,
    interval: Duration,
    once: bool,
) -> Result<ExitCode, Failure> {
    if interval < INTERVAL_MIN {
        return Err(Failure::usage("--interval is less than 200ms"));
    }
    let servers = Servers::find(common)?;
    let mut survey = Survey::open(common, &servers)?;
    let screen = if once || common.json { None } else { Screen::open() };
    let mut found = survey.locks(prefix)?;
    loop {
        let (mut hands, start) = (Hands::default(), Instant::now());
        hands.look(&found);
        found.sort_by_key(|it| std::cmp::Reverse(it.waiters));
        let names: Vec<_> = found.iter().take(WATCHED_MAX).map(|it| it.name.clone()).collect();
        while start.elapsed() < interval {
            let pause = LOOK.min(interval.saturating_sub(start.elapsed()));
            match &screen {
                Some(screen) if screen.wait(pause) => return Ok(ExitCode::SUCCESS),
                Some(_) => {}
                None => thread::sleep(pause),
            }
            let tokens = survey.tokens(&names)?;
            hands.note(names.iter().cloned().zip(tokens));
        }
        found = survey.locks(prefix)?;
        found.retain(|it| it.is_held || it.waiters > 0);
        hands.look(&found);
        let seconds = start.elapsed().as_secs_f64();
        if common.json {
            output::print_line(json_page(&found, &hands, seconds))?;
        } else {
            let page = page(&found, &hands, seconds);
            match &screen {
                Some(screen) => screen.draw(&page),
                None => output::print_line(page)?,
            }
        }
        if once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

impl Hands {
    fn look(&mut self, found: &[Found]) {
        let held = found.iter().filter(|it| it.is_held);
        self.note(held.map(|it| (it.name.clone(), Some(it.token.clone()))));
    }

    /// Between two holders the lock may be free. That does not count as a change.
    fn note(&mut self, holders: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>) {
        for (name, token) in holders {
            let Some(token) = token else { continue };
            let before = self.last.insert(name.clone(), token.clone());
            if before.is_some_and(|it| it != token) {
                *self.changes.entry(name).or_default() += 1;
            }
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn rate(&self, name: &[u8], seconds: f64) -> f64 {
        self.changes.get(name).copied().unwrap_or(0) as f64 / seconds
    }

    #[allow(clippy::cast_precision_loss)]
    fn whole_rate(&self, seconds: f64) -> f64 {
        self.changes.values().sum::<u64>() as f64 / seconds
    }
}

fn page(found: &[Found], hands: &Hands, seconds: f64) -> String {
    let waiting: u64 = found.iter().map(|it| it.waiters).sum();
    let held = found.iter().filter(|it| it.is_held).count();
    let rate = hands.whole_rate(seconds);
    let mut found: Vec<_> = found.iter().collect();
    found.sort_by(|one, other| {
        let rates = hands.rate(&other.name, seconds).total_cmp(&hands.rate(&one.name, seconds));
        other.waiters.cmp(&one.waiters).then(rates).then(one.name.cmp(&other.name))
    });
    let mut table = Table::new(["NAME", "WAITING", "HAND-OVERS/S", "LEFT"]);
    for it in found {
        let left = if it.is_held { time::short(it.left) } else { "free".to_owned() };
        let rate = format!("{:.1}", hands.rate(&it.name, seconds));
        table.row([name_of(it), it.waiters.to_string(), rate, left]);
    }
    format!("{held} locks held, {waiting} waiting, {rate:.1} hand-overs/s\n\n{table}")
}

fn json_page(found: &[Found], hands: &Hands, seconds: f64) -> serde_json::Value {
    let locks = found.iter().map(|it| {
        let mut lock = as_json(it);
        lock["handovers_per_second"] = json!(hands.rate(&it.name, seconds));
        lock
    });
    json!({"handovers_per_second": hands.whole_rate(seconds), "seconds": seconds,
        "locks": locks.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_a_change_of_hands() {
        let mut hands = Hands::default();
        let mut see = |token: Option<&str>| {
            let token = token.map(|it| it.as_bytes().to_vec());
            hands.note([(b"r".to_vec(), token)].into_iter());
        };
        [Some("a"), Some("a"), None, Some("b"), None, Some("b"), Some("c")]
            .into_iter()
            .for_each(&mut see);
        assert!((hands.rate(b"r", 2.0) - 1.0).abs() < 1e-9);
        assert!((hands.whole_rate(1.0) - 2.0).abs() < 1e-9);
    }
}
