use super::*;

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

fn record(kind: Kind) -> Record {
    let mut record = Record::new(Account { kind, ..Account::default() }, None);
    record.begin(NOW);
    record
}

fn end(record: &Record, outcome: Outcome, ms: i64, counts: &mut Counts) -> Option<String> {
    record.end(outcome, NOW.plus_ms(ms), Tracing::Off, counts)
}

#[test]
fn a_lock_taken_at_once_has_no_wait() {
    let mut counts = Counts::default();
    let mut record = record(Kind::Acquire);
    record.note_attempt(&mut counts);
    assert_eq!(end(&record, Outcome::Ok, 3, &mut counts), None);
    assert_eq!((counts.attempts, counts.waits), (1, 0));
    assert_eq!((counts.acquire_time.count, counts.acquire_time.sum_us), (1, 3_000));
    assert_eq!((counts.wait_time.count, counts.acquire.of(Outcome::Ok)), (0, 1));
}

#[test]
fn a_wait_is_counted_once_from_its_start() {
    let mut counts = Counts::default();
    let mut record = record(Kind::Acquire);
    for ms in [1, 5, 9] {
        record.note_attempt(&mut counts);
        record.note_wait(NOW.plus_ms(ms), &mut counts);
    }
    assert!(record.is_waiting());
    end(&record, Outcome::Taken, 11, &mut counts);
    assert_eq!((counts.attempts, counts.waits), (3, 1));
    assert_eq!((counts.wait_time.count, counts.wait_time.sum_us), (1, 10_000));
    // The lock was not taken.
    assert_eq!((counts.acquire_time.count, counts.acquire.of(Outcome::Taken)), (0, 1));
}

#[test]
fn keeping_a_lock_counts_no_wait() {
    let mut counts = Counts::default();
    let mut record = record(Kind::Other);
    record.note_wait(NOW, &mut counts);
    end(&record, Outcome::Ok, 1, &mut counts);
    assert_eq!(counts, Counts::default());
}

#[test]
fn hold_time_ends_with_the_release() {
    let mut counts = Counts::default();
    let account = Account { kind: Kind::Release, held_since: Some(NOW) };
    let mut record = Record::new(account, None);
    record.begin(NOW.plus_ms(5));
    end(&record, Outcome::Ok, 7, &mut counts);
    end(&record, Outcome::Lost, 7, &mut counts);
    assert_eq!((counts.hold_time.count, counts.hold_time.sum_us), (1, 7_000));
    assert_eq!((counts.release.of(Outcome::Ok), counts.release.of(Outcome::Lost)), (1, 1));
}

#[test]
fn a_trace_names_the_resource_only_on_request() {
    let mut counts = Counts::default();
    let resource: Arc<[u8]> = Arc::from(&b"in\"voice\n\xff 42"[..]);
    let account = Account { kind: Kind::Acquire, ..Account::default() };
    let mut record = Record::new(account, Some(resource));
    record.begin(NOW);
    record.note_attempt(&mut counts);
    record.note_wait(NOW.plus_ms(1), &mut counts);
    let mut line = |outcome, tracing| record.end(outcome, NOW.plus_ms(4), tracing, &mut counts);
    assert_eq!(
        line(Outcome::Ok, Tracing::Events).as_deref(),
        Some("event=acquired duration_ms=4.000 attempts=1 waited_ms=3.000")
    );
    assert_eq!(
        line(Outcome::Taken, Tracing::Resources).as_deref(),
        Some(
            "event=refused resource=\"in\\\"voice\\x0a\\xff 42\" outcome=taken duration_ms=4.000 \
             attempts=1 waited_ms=3.000"
        )
    );
    assert_eq!(line(Outcome::Ok, Tracing::Off), None);
}

#[test]
fn a_trace_has_only_lock_outcomes() {
    let told = |kind, outcome| {
        let line = record(kind).end(outcome, NOW, Tracing::Events, &mut Counts::default());
        line.map(|it| it.split(' ').next().unwrap_or_default().to_owned())
    };
    for (kind, outcome, expected) in [
        (Kind::Acquire, Outcome::Cancelled, Some("event=refused")),
        (Kind::Release, Outcome::Ok, Some("event=released")),
        (Kind::Release, Outcome::Unreachable, Some("event=not_released")),
        (Kind::Release, Outcome::Lost, Some("event=lost")),
        (Kind::Extend, Outcome::Ok, Some("event=extended")),
        (Kind::Extend, Outcome::Lost, Some("event=lost")),
        (Kind::Extend, Outcome::Unreachable, Some("event=not_extended")),
        (Kind::Confirm, Outcome::Lost, Some("event=lost")),
        (Kind::Confirm, Outcome::Ok, None),
        (Kind::Inspect, Outcome::Ok, None),
        (Kind::Adopt, Outcome::Ok, Some("event=adopted")),
        (Kind::Detach, Outcome::Ok, Some("event=detached")),
        (Kind::Other, Outcome::Lost, None),
    ] {
        assert_eq!(told(kind, outcome).as_deref(), expected, "{kind:?} {outcome:?}");
    }
}
