use super::*;

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

fn life(number: u64) -> MemoryId {
    MemoryId::from_random(number)
}

/// A note of process a, made 5 s ago, of a memory whose grants are all in the log.
fn note(memory: u64, generation: i64) -> Note {
    let note = Note::sample(RunId::sample('a'), life(memory), generation);
    Note { since_ms: Note::SEEN_MS - 5_000, is_logged: true, ..note }
}

/// The judgement about a note of process `process`, after these notes were seen.
fn judge(process: char, identity: &Identity, seen: &[Note], judged: &Note) -> Admission {
    let memories = Memories::default();
    seen.iter().for_each(|it| _ = memories.judge(it, NOW));
    let (process, begun) = (RunId::sample(process), Some(life(99)));
    Known { process, clock_ms: Note::SEEN_MS, identity, memories: &memories, begun, epoch: None }
        .judge(judged, NOW)
}

/// The same note, rewritten.
fn next(note: Note) -> Note {
    Note { generation: note.generation + 1, ..note }
}

#[test]
fn a_complete_log_hands_the_note_to_the_next_process() {
    let (durable, judged) = (Identity::durable(true), note(1, 3));
    let since = Since::At(judged.since_ms);
    let taken_over = Admission::Rewrite(Note { id: RunId::sample('b'), ..next(note(1, 3)) }, since);
    assert_eq!(judge('b', &durable, &[note(1, 3)], &judged), taken_over);
    assert_eq!(judge('b', &durable, &[note(1, 4)], &judged), Admission::Lose);
    assert_eq!(judge('b', &Identity::durable(false), &[note(1, 3)], &judged), Admission::Lose);
    let unlogged = Note { is_logged: false, ..note(1, 3) };
    assert_eq!(judge('b', &durable, &[], &unlogged), Admission::Lose);
}

/// What shows that may be forgotten, before the server is marked.
#[test]
fn a_found_loss_counts_despite_a_sound_note() {
    let found = Admission::Accept { found_at: Some(NOW) };
    // It was another process's, and the log was not complete then.
    let (whole, part) = (Identity::durable(true), Identity::durable(false));
    let memories = [Memories::default(), Memories::default()];
    let judge = |process, identity, judged: &Note, now| {
        let memories = &memories[usize::from(process == 'a')];
        let (process, begun) = (RunId::sample(process), None);
        let clock_ms = Note::SEEN_MS;
        Known { process, clock_ms, identity, memories, begun, epoch: None }.judge(judged, now)
    };
    assert_eq!(judge('b', &part, &note(1, 3), NOW), Admission::Lose);
    let taken_over = judge('b', &whole, &note(1, 3), NOW.plus_ms(5));
    let Admission::Rewrite(rewritten, _) = taken_over else { panic!("{taken_over:?}") };
    let later = NOW.plus_ms(9);
    assert_eq!(judge('b', &whole, &rewritten, later), found);
    // It was promoted.
    let promoted = Identity::promoted(RunId::sample('c'));
    assert_eq!(judge('a', &promoted, &note(1, 3), NOW), Admission::Lose);
    assert_eq!(judge('a', &whole, &note(1, 3), later), found);
}

/// The data of a replica is another server's, and so may its note be.
#[test]
fn a_former_replica_takes_no_note_over() {
    let memories = Memories::default();
    memories.note_replica(RunId::sample('b'), NOW);
    let identity = &Identity::durable(true);
    let known = Known {
        process: RunId::sample('b'),
        clock_ms: Note::SEEN_MS,
        identity,
        memories: &memories,
        begun: None,
        epoch: None,
    };
    assert_eq!(known.judge(&note(1, 3), NOW), Admission::Lose);
    let known = Known { process: RunId::sample('c'), ..known };
    assert!(matches!(known.judge(&note(1, 3), NOW), Admission::Rewrite(..)));
}

/// Another client may have seen a loss of memory first. Its note is then in the place of ours.
#[test]
fn a_memory_from_this_handshake_is_no_foreign_one() {
    let durable = Identity::durable(true);
    let seen = [note(1, 3)];
    assert_eq!(judge('a', &durable, &seen, &note(99, 4)), Admission::Accept { found_at: None });
    let found_at = Some(NOW);
    assert_eq!(judge('a', &durable, &seen, &note(2, 4)), Admission::Accept { found_at });
    assert_eq!(judge('a', &durable, &seen, &note(1, 2)), Admission::Lose);
}

#[test]
fn every_rewrite_raises_the_generation() {
    let ahead = Note { since_ms: Note::SEEN_MS + 5_000, ..note(1, 3) };
    let corrected = Admission::Rewrite(next(ahead.clone()), Since::Now);
    assert_eq!(judge('a', &Identity::durable(true), &[], &ahead), corrected);
    let since = Since::At(Note::SEEN_MS - 5_000);
    let unlogged = Admission::Rewrite(Note { is_logged: false, ..next(note(1, 3)) }, since);
    assert_eq!(judge('a', &Identity::durable(false), &[], &note(1, 3)), unlogged);
}

/// It is a note of a time when this server was the master before, or the data of another master.
#[test]
fn a_note_of_another_epoch_is_a_loss() {
    let judged = |note_epoch, epoch| {
        let (memories, identity) = (Memories::default(), &Identity::durable(true));
        let (process, begun) = (RunId::sample('a'), None);
        let clock_ms = Note::SEEN_MS;
        let known = Known { process, clock_ms, identity, memories: &memories, begun, epoch };
        let judged = known.judge(&Note { epoch: note_epoch, ..note(1, 3) }, NOW);
        (judged == Admission::Lose, memories.lost_at().is_some())
    };
    for (note_epoch, epoch, is_lost) in [
        (3, Some(3), false),
        (0, Some(0), false),
        (2, Some(3), true),
        (4, Some(3), true),
        (0, Some(3), true),
        // No majority of Sentinels is asked.
        (4, None, false),
    ] {
        assert_eq!(judged(note_epoch, epoch), (is_lost, is_lost), "{note_epoch} {epoch:?}");
    }
}

/// It is that of another server, or of another time, and the server is not marked. Then it shows an older one.
#[test]
fn a_note_that_does_not_hold_is_remembered() {
    let (durable, plain) = (Identity::durable(true), Identity::durable(false));
    let promoted = Identity::promoted(RunId::sample('c'));
    for (process, identity, epoch) in
        [('a', &promoted, None), ('a', &durable, Some(3)), ('b', &plain, None)]
    {
        let memories = &Memories::default();
        let (process, begun) = (RunId::sample(process), None);
        let clock_ms = Note::SEEN_MS;
        let known = Known { process, clock_ms, identity, memories, begun, epoch };
        assert_eq!(known.judge(&note(1, 3), NOW), Admission::Lose);
        let known = Known { process: RunId::sample('a'), identity: &durable, epoch: None, ..known };
        assert_eq!(known.judge(&note(1, 2), NOW), Admission::Lose);
    }
}
