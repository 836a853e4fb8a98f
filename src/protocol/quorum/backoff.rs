//! How long to pause before the next try.

use std::time::Duration;

use super::hand_overs::HandOvers;
use crate::protocol::moment::Moment;

/// A pause around a mean of `delay_ms`: from half of it up to one and a half times it, as in CRedLock's code.
/// `random` is uniform over all of u64.
pub fn pause(delay_ms: i64, random: u64) -> Duration {
    let delay = u128::from(delay_ms.max(0).unsigned_abs()) * 1_000_000;
    let nanos = delay / 2 + ((delay * u128::from(random)) >> 64);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The pauses of a caller that waits for a lock for a time. They have full jitter: each is uniform from nothing
/// up to a bound, so that callers that were refused together do not come again together. The bound is a few
/// round trips at first, and each refusal doubles it. The younger the wait, the more frequent the polls. A lock
/// that is held for long is polled seldom, and a lock that changes hands often is taken soon.
///
/// A pause ends early when so many keys can have expired that a quorum is free. One server alone cannot bring
/// that about. The word of a server that puts the end of its key off as time passes counts for nothing. Neither
/// does the word of a server for which a few pauses have ended early, until one pause has not ended early.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    bound: Duration,
    /// What each server said last.
    told: Vec<Reported>,
}

/// A server's word about its key.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub server: usize,
    /// When the key expires if the server's clock runs like ours.
    pub expiry: Moment,
    /// The earliest moment when the key can have expired, if the server's clock is as fast as it may be.
    pub earliest: Moment,
}

/// What is known after a refusal.
#[derive(Clone, Debug, Default)]
pub struct Denial {
    /// How long the servers took to say it.
    pub round_trip: Duration,
    /// What they said of their keys.
    pub claims: Vec<Claim>,
    /// How many of these keys must expire before a quorum can be free.
    pub to_expire: usize,
    /// Whether all servers that refuse have said how long their keys live.
    pub is_complete: bool,
    /// Whether only clients that tell waiters of a release can be in the way.
    pub will_be_told: bool,
}

#[derive(Clone, Debug)]
struct Reported {
    server: usize,
    expiry: Moment,
    at: Moment,
    /// How many pauses have ended early for this server since the last pause that did not end early for any server.
    early: u32,
}

/// How a server's word is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It is the first.
    New,
    /// The key ends when the server said before.
    Stands,
    /// The key ends later than the server said before. There is another holder, or the server knows no end.
    MovesOn,
}

impl Backoff {
    /// The first bound. It is short enough not to miss a lock that is held only for moments. It is no shorter,
    /// so that asking does not become the load.
    const FIRST_ROUND_TRIPS: u32 = 4;
    const FIRST_MIN: Duration = Duration::from_micros(500);

    /// The longest bound while the lock changes hands, because the current holder will not hold it for long.
    const LIVELY_MAX: Duration = Duration::from_millis(16);

    /// How long the first client in line waits to be told, and how much longer a client waits for each one before it.
    /// `LOOK_MAX` limits this time. The pause may be longer still, by up to one `LOOK_SPREAD`th of the time.
    const LOOK: Duration = Duration::from_millis(200);
    const LOOK_MAX: Duration = Duration::from_secs(5);
    const LOOK_SPREAD: u32 = 4;

    /// Keys of one holder expire at one time. The times that servers report may differ by as long as a request
    /// is on its way. They may also differ by how much faster clocks run, which is a part of the time between.
    /// The keys of a new holder expire later by more than that.
    const SAME_HOLDER_MS: i64 = 3;
    const SAME_HOLDER_PART: i64 = 8;

    /// How many pauses may end early for one server, because its key may live a little longer than it seems.
    const EARLY_MAX: u32 = 5;

    /// Until when to pause, at most for `longest`. `random` is uniform over all of u64.
    pub fn next(
        &mut self,
        refusal: &Denial,
        longest: Duration,
        random: u64,
        now: Moment,
    ) -> Moment {
        let words: Vec<Word> = refusal.claims.iter().map(|claim| self.hear(claim, now)).collect();
        let is_lively = Self::is_lively(refusal, &words);
        let most = if is_lively { longest.min(Self::LIVELY_MAX) } else { longest };
        let first = refusal.round_trip * Self::FIRST_ROUND_TRIPS;
        self.bound = (2 * self.bound).max(first).max(Self::FIRST_MIN).min(most);
        self.cut(refusal, &words, now.plus(jitter(self.bound, random)), now)
    }

    /// Until when to pause for a caller that stands in line behind at most `rank` others, and is told when it
    /// is its turn. It looks again all the same, because the message may not come. It comes again soon if the
    /// lock changes hands and nobody tells it.
    pub fn fallback(
        &mut self,
        refusal: &Denial,
        (rank, untold): (Option<u32>, &mut HandOvers),
        random: u64,
        now: Moment,
    ) -> Moment {
        let words: Vec<Word> = refusal.claims.iter().map(|claim| self.hear(claim, now)).collect();
        untold.note_held(Self::is_lively(refusal, &words), rank, now);
        if refusal.will_be_told {
            *untold = HandOvers::default();
        }
        let soon = untold.pause_ms(now).map(|mean_ms| pause(mean_ms, random));
        let pause = soon.unwrap_or_else(|| {
            let rank = rank.unwrap_or_default();
            let least = Self::LOOK.saturating_mul(rank.saturating_add(1)).min(Self::LOOK_MAX);
            least + jitter(least / Self::LOOK_SPREAD, random)
        });
        self.cut(refusal, &words, now.plus(pause), now)
    }

    /// Whether the lock changes hands.
    fn is_lively(refusal: &Denial, words: &[Word]) -> bool {
        refusal.is_complete && words.contains(&Word::MovesOn) && !words.contains(&Word::Stands)
    }

    /// The end of a pause, or the moment when so many keys can have expired that a quorum is free.
    fn cut(
        &mut self,
        refusal: &Denial,
        words: &[Word],
        pause_until: Moment,
        now: Moment,
    ) -> Moment {
        let is_credible = |server: usize, word: Word| {
            let is_tried =
                |known: &Reported| known.server == server && known.early >= Self::EARLY_MAX;
            word != Word::MovesOn && !self.told.iter().any(is_tried)
        };
        let credible = refusal.claims.iter().zip(words.iter().copied());
        let credible = credible.filter(|heard| is_credible(heard.0.server, heard.1));
        let mut ends: Vec<_> = credible.map(|(it, _)| (it.worth_a_look_at(), it.server)).collect();
        ends.sort_unstable();
        let end = refusal.to_expire.checked_sub(1).and_then(|index| ends.get(index)).copied();
        match end.filter(|&(end, _)| end < pause_until) {
            Some((end, server)) => {
                let told = self.told.iter_mut().filter(|known| known.server == server);
                told.for_each(|known| known.early += 1);
                end.max(now.plus(Self::FIRST_MIN)).min(pause_until)
            }
            None => {
                self.told.iter_mut().for_each(|known| known.early = 0);
                pause_until
            }
        }
    }

    fn hear(&mut self, claim: &Claim, now: Moment) -> Word {
        let &Claim { server, expiry, .. } = claim;
        let Some(told) = self.told.iter_mut().find(|known| known.server == server) else {
            self.told.push(Reported { server, expiry, at: now, early: 0 });
            return Word::New;
        };
        let same_ms = Self::SAME_HOLDER_MS + now.ms_since(told.at) / Self::SAME_HOLDER_PART;
        let moves_on = expiry > told.expiry.plus_ms(same_ms);
        (told.expiry, told.at) = (expiry, now);
        if moves_on { Word::MovesOn } else { Word::Stands }
    }
}

impl Claim {
    /// When to look at the key: as early as it can have expired. If that is within 1 ms of its expiry, one
    /// millisecond after the expiry, because a server counts whole milliseconds.
    fn worth_a_look_at(&self) -> Moment {
        if self.expiry.ms_since(self.earliest) > 1 { self.earliest } else { self.expiry.plus_ms(1) }
    }
}

/// A random time from nothing up to a bound.
pub fn jitter(bound: Duration, random: u64) -> Duration {
    let nanos = (bound.as_nanos() * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The longest pause around a mean of `delay_ms`.
pub fn longest(delay_ms: i64) -> Duration {
    pause(delay_ms, u64::MAX)
}

/// How long to wait before trying again to reach a server that failed `failures` times in a row. The time
/// doubles with each failure, from 20 ms up to 640 ms. It is spread so that clients do not come all at once.
pub fn reconnect(failures: u32, random: u64) -> Duration {
    const FIRST_MS: i64 = 20;
    const DOUBLINGS: u32 = 5;
    pause(FIRST_MS << failures.saturating_sub(1).min(DOUBLINGS), random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_50_to_150_percent_of_the_delay() {
        let ms = |random| pause(200, random).as_millis();
        assert_eq!([0, 1 << 63, u64::MAX].map(ms), [100, 200, 299]);
        assert_eq!(pause(0, u64::MAX), Duration::ZERO);
        assert!(pause(i64::from(i32::MAX), u64::MAX) > Duration::from_secs(3_000_000));
    }

    const LONGEST: Duration = Duration::from_millis(300);

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
    const MS: Duration = Duration::from_millis(1);

    /// A refusal by servers of which two are a quorum. Each says that its key lives this long.
    fn refused(claims_ms: &[(usize, i64)], now: Moment) -> Denial {
        let claim = |&(server, left_ms): &(usize, i64)| {
            let expiry = now.plus_ms(left_ms);
            Claim { server, expiry, earliest: now.plus_ms(left_ms - left_ms / 100) }
        };
        let claims = claims_ms.iter().map(claim).collect();
        Denial { round_trip: MS, claims, to_expire: 1, is_complete: true, will_be_told: false }
    }

    /// The bounds of pauses, in milliseconds, after refusals because of a key that expires at these times.
    fn bounds(expiries_ms: &[i64]) -> Vec<u128> {
        let mut backoff = Backoff::default();
        let bound = |&ms: &i64| {
            backoff.next(&refused(&[(0, ms)], NOW), LONGEST, u64::MAX, NOW);
            backoff.bound.as_millis()
        };
        expiries_ms.iter().map(bound).collect()
    }

    /// The first `count` pauses, in milliseconds, of a caller that is answered in 1 ms. What the servers claim
    /// depends on how long the caller has waited.
    fn pauses(count: usize, claims_at: impl Fn(i64) -> Vec<(usize, i64)>) -> Vec<i64> {
        let (mut backoff, mut now) = (Backoff::default(), NOW);
        let mut pauses = Vec::new();
        for _ in 0..count {
            let refusal = refused(&claims_at(now.ms_since(NOW)), now);
            let end = backoff.next(&refusal, LONGEST, 1 << 63, now);
            pauses.push(end.ms_since(now));
            now = end.plus(MS);
        }
        pauses
    }

    #[test]
    fn a_lock_held_for_long_is_checked_rarely() {
        assert_eq!(bounds(&[9000; 9]), [4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn a_lock_with_changing_holders_is_checked_often() {
        let (same, others) = ([9000; 7], [9004, 9020, 9100]);
        assert_eq!(bounds(&[&same[..], &others[..]].concat())[6..], [256, 16, 16, 16]);
        // A difference of a few milliseconds comes from the network.
        assert_eq!(bounds(&[9000, 9003, 9001, 9004, 9001]), [4, 8, 16, 32, 64]);
    }

    /// The clocks of the servers and ours drift apart while nobody asks. A difference of an eighth of that time
    /// does not indicate a new holder.
    #[test]
    fn older_news_of_a_key_allows_more_drift() {
        let heard = |ms_later: i64, moved_ms: i64| {
            let mut backoff = Backoff::default();
            let claim = |expiry| Claim { server: 0, expiry, earliest: expiry };
            let end = NOW.plus_ms(60_000);
            assert_eq!(backoff.hear(&claim(end), NOW), Word::New);
            backoff.hear(&claim(end.plus_ms(moved_ms)), NOW.plus_ms(ms_later))
        };
        assert_eq!([heard(0, 3), heard(0, 4)], [Word::Stands, Word::MovesOn]);
        assert_eq!([heard(8_000, 1_003), heard(8_000, 1_004)], [Word::Stands, Word::MovesOn]);
    }

    #[test]
    fn the_earliest_possible_end_of_a_key_sets_the_look() {
        let look = |unsure_ms: i64| {
            Claim { server: 0, expiry: NOW, earliest: NOW.plus_ms(-unsure_ms) }.worth_a_look_at()
        };
        let end = |ms: i64| NOW.plus_ms(ms);
        assert_eq!([look(0), look(1), look(2), look(5)], [end(1), end(1), end(-2), end(-5)]);
    }

    /// These pauses are the same for three servers: one says nothing of the key, one has it for ever, and one
    /// is believed for a while.
    const USUAL: [i64; 9] = [2, 4, 8, 16, 32, 64, 128, 150, 150];

    #[test]
    fn one_server_cannot_set_the_pace() {
        assert_eq!(pauses(9, |_| Vec::new()), USUAL);
        assert_eq!(pauses(9, |at| vec![(0, 100_000 - at), (1, 100_000 - at)]), USUAL);
        let for_ever = i64::MAX / 1_000_000;
        // It answers before a server that tells the truth, or with other servers that are down or free.
        let beside = |left_ms| pauses(40, move |at| vec![(0, left_ms), (1, 100_000 - at)]);
        let alone = |left_ms| pauses(40, move |_| vec![(0, left_ms)]);
        for left_ms in [0, 1, 5, 20, 100, 250, for_ever] {
            for (what, pauses) in [("beside", beside(left_ms)), ("alone", alone(left_ms))] {
                let early = pauses[..12].iter().filter(|&&it| it < 2).count();
                assert!(early <= 5, "{left_ms} ms, {what}: {pauses:?}");
                let usual = if what == "beside" { 150 } else { 8 };
                assert!(pauses[12..].iter().all(|&it| it >= usual), "{left_ms} {what}: {pauses:?}");
            }
        }
        // If it answers alone, the lock seems to change hands. If other servers are down, nothing says so.
        let (mut backoff, mut now) = (Backoff::default(), NOW);
        for nth in 0..40 {
            let refusal = Denial { is_complete: false, ..refused(&[(0, 5)], now) };
            let end = backoff.next(&refusal, LONGEST, 1 << 63, now);
            assert!(nth < 15 || end.ms_since(now) == 150, "{nth}: {:?}", end.ms_since(now));
            now = end;
        }
    }

    #[test]
    fn a_pause_ends_when_a_quorum_may_have_expired() {
        let next = |to_expire, left_ms: &[i64]| {
            let claims: Vec<_> = left_ms.iter().copied().enumerate().collect();
            let refusal = Denial { to_expire, ..refused(&claims, NOW) };
            Backoff::default().next(&refusal, 1_000_000 * MS, u64::MAX, NOW)
        };
        // The first pause is at most 4 ms.
        assert_eq!(next(1, &[1, 9000]), NOW.plus_ms(2));
        assert_eq!(next(2, &[1, 2, 9000]), NOW.plus_ms(3));
        assert!(next(2, &[1, 9000]) > NOW.plus_ms(3));
        assert!(next(0, &[1, 1]) > NOW.plus_ms(3));
        // A key that lives for long is asked for as early as a fast clock makes it useful.
        let (mut backoff, mut now, end) = (Backoff::default(), NOW, NOW.plus_ms(60_000));
        while now < end {
            let refusal = refused(&[(0, end.ms_since(now)), (1, end.ms_since(now))], now);
            now = backoff.next(&refusal, 1_000_000 * MS, u64::MAX, now);
        }
        assert!(now <= end.plus_ms(1), "{}", now.ms_since(end));
    }

    #[test]
    fn a_key_ending_with_the_pause_shortens_nothing() {
        let (mut backoff, refusal) = (Backoff::default(), refused(&[(0, 1)], NOW.plus_ms(-2)));
        let mut next = |refusal: &Denial, random| backoff.next(refusal, LONGEST, random, NOW);
        (0..Backoff::EARLY_MAX).for_each(|_| assert_eq!(next(&refusal, 0), NOW));
        assert_eq!(next(&refused(&[(0, 1)], NOW), u64::MAX), NOW.plus_ms(2));
    }

    #[test]
    fn servers_cannot_shorten_most_pauses() {
        // All of them say that their keys end now, or that they ended long ago.
        for (least, is_past) in [(40, false), (5, true)] {
            let (mut backoff, mut now, mut whole) = (Backoff::default(), NOW, 0);
            for _ in 0..60 {
                let claims = refused(&[(0, 0), (1, 0)], if is_past { NOW } else { now }).claims;
                let refusal = Denial { claims, ..refused(&[], now) };
                let end = backoff.next(&refusal, LONGEST, u64::MAX, now);
                assert!(end - now >= 499_999, "{}", end - now);
                whole += usize::from(end.plus(MS) > now.plus(backoff.bound));
                now = end;
            }
            assert!(whole >= least, "{whole}");
        }
    }

    #[test]
    fn a_pause_is_bounded_and_the_first_is_not_too_short() {
        let next = |longest, random| {
            Backoff::default().next(&Denial::default(), longest, random, NOW) - NOW
        };
        let first = i64::try_from(Backoff::FIRST_MIN.as_nanos()).unwrap();
        assert_eq!(next(LONGEST, 0), 0);
        assert_eq!(next(LONGEST, 1 << 63), first / 2);
        assert!(next(LONGEST, u64::MAX) < first);
        assert_eq!(next(Duration::ZERO, u64::MAX), 0);
    }

    #[test]
    fn reconnecting_slows_down_to_a_limit() {
        let ms = |failures| reconnect(failures, 1 << 63).as_millis();
        assert_eq!([1, 2, 6, u32::MAX].map(ms), [20, 40, 640, 640]);
    }

    #[test]
    fn the_bound_of_a_pause_doubles_from_four_round_trips() {
        let bounds = |round_trip, longest| -> Vec<Duration> {
            let refusal = Denial { round_trip, ..Denial::default() };
            let mut backoff = Backoff::default();
            let mut next = || backoff.next(&refusal, longest, u64::MAX, NOW) - NOW;
            // The longest possible pause is a nanosecond shorter than the bound.
            (0..5).map(|_| Duration::from_nanos(next().unsigned_abs() + 1)).collect()
        };
        assert_eq!(bounds(MS, 50 * MS), [4 * MS, 8 * MS, 16 * MS, 32 * MS, 50 * MS]);
        assert_eq!(bounds(MS / 10, MS), [MS / 2, MS, MS, MS, MS]);
        assert_eq!(bounds(20 * MS, 100 * MS)[..2], [80 * MS, 100 * MS]);
        assert_eq!(bounds(20 * MS, 50 * MS), [50 * MS; 5]);
    }

    #[test]
    fn jitter_is_uniform_up_to_the_bound() {
        let bound = Duration::from_millis(100);
        let drawn = [0, 1 << 62, 1 << 63].map(|random| jitter(bound, random));
        assert_eq!(drawn, [Duration::ZERO, bound / 4, bound / 2]);
        assert!(jitter(bound, u64::MAX) < bound);
        let longest_ever = longest(i64::from(i32::MAX));
        assert!(jitter(longest_ever, u64::MAX) > longest_ever / 100 * 99);
        assert_eq!(longest(200), pause(200, u64::MAX));
    }
}
