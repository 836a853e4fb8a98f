//! What servers say, in any order, and which of them may then vouch for a lock.

use super::*;

/// A lock that the first two of three servers granted. Nothing was heard of the third.
fn taken() -> Soundness {
    let mut soundness = Soundness::new(3);
    soundness.take(0b011, 0b111);
    soundness
}

fn sound(soundness: &Soundness) -> Vec<usize> {
    (0..3).filter(|&server| soundness.is_sound(server)).collect()
}

/// The server answers the last request that it was sent.
fn hear(soundness: &mut Soundness, server: usize, word: Word) {
    let number = match word {
        Word::Has { .. } | Word::Absent | Word::Foreign => soundness.last_number,
        Word::Granted { .. } | Word::Repaired | Word::NotSet | Word::Ended => {
            soundness.last_setter(server)
        }
    };
    soundness.hear(server, number, word);
}

fn pass(soundness: &mut Soundness, voters: u64) -> bool {
    let round = soundness.begin_round();
    soundness.pass_round(round, voters, 2)
}

#[test]
fn servers_with_a_grant_in_time_are_sound() {
    let mut soundness = taken();
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1], 3));
    for word in [Word::Granted { in_time: true }, Word::Has { in_time: true }] {
        let mut soundness = soundness.clone();
        hear(&mut soundness, 2, word);
        assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1, 2], 3));
        // This answer says nothing of the requests to the other servers.
        hear(&mut soundness, 0, Word::Absent);
        assert_eq!((soundness.voters(), soundness.begin_repairs().1), (2, 0b001));
    }
    hear(&mut soundness, 2, Word::Granted { in_time: false });
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1], 3));
    // How long the server still has the key tells when it granted the lock.
    hear(&mut soundness, 2, Word::Has { in_time: true });
    assert_eq!(sound(&soundness), [0, 1, 2]);
}

#[test]
fn a_server_without_a_grant_cannot_vouch() {
    let mut soundness = Soundness::new(3);
    hear(&mut soundness, 1, Word::NotSet);
    soundness.take(0b001, 0b011);
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0], 1));
}

#[test]
fn a_late_grant_counts_after_the_next_round() {
    let mut soundness = taken();
    let round = soundness.begin_round();
    hear(&mut soundness, 2, Word::Granted { in_time: false });
    assert!(soundness.pass_round(round, 0b011, 2));
    assert_eq!(sound(&soundness), [0, 1]);
    assert!(pass(&mut soundness, 0b011));
    assert_eq!(sound(&soundness), [0, 1, 2]);
}

#[test]
fn a_server_without_the_key_is_repaired_and_counts_later() {
    let mut soundness = taken();
    let round = soundness.begin_round();
    hear(&mut soundness, 2, Word::Has { in_time: true });
    hear(&mut soundness, 0, Word::Absent);
    assert_eq!(soundness.begin_repairs().1, 0, "a round is under way");
    assert!(soundness.pass_round(round, 0b110, 2));
    assert_eq!(soundness.begin_repairs().1, 0b001);
    assert_eq!(soundness.begin_repairs().1, 0, "one at a time");
    hear(&mut soundness, 0, Word::Absent);
    assert_eq!(soundness.begin_repairs().1, 0, "the first may be carried out still");
    hear(&mut soundness, 0, Word::Repaired);
    assert_eq!(sound(&soundness), [1, 2]);
    assert!(pass(&mut soundness, 0b110));
    assert_eq!(sound(&soundness), [0, 1, 2]);
}

/// The connection to the third server broke, and another process answers now.
#[test]
fn an_unanswered_acquire_is_repaired_if_the_key_is_missing() {
    let mut soundness = taken();
    hear(&mut soundness, 2, Word::Absent);
    assert_eq!(soundness.begin_repairs().1, 0, "the acquire may be carried out still");
    hear(&mut soundness, 2, Word::Ended);
    assert_eq!(soundness.begin_repairs().1, 0b100);
    hear(&mut soundness, 2, Word::Absent);
    // This is about the acquire.
    soundness.hear(2, 0, Word::Ended);
    assert_eq!(soundness.begin_repairs().1, 0, "the repair may be carried out still");
    hear(&mut soundness, 2, Word::Ended);
    assert_eq!((soundness.begin_repairs().1, sound(&soundness)), (0b100, vec![0, 1]));
}

/// It may have been carried out before.
#[test]
fn an_unanswered_acquire_may_have_set_the_key() {
    for in_time in [false, true] {
        let mut soundness = taken();
        hear(&mut soundness, 2, Word::Ended);
        assert_eq!((soundness.voters(), soundness.begin_repairs().1), (3, 0));
        let round = soundness.begin_round();
        soundness.hear(2, round, Word::Has { in_time });
        assert_eq!(soundness.is_sound(2), in_time);
        assert!(soundness.pass_round(round, 0b011, 2) && pass(&mut soundness, 0b011));
        assert_eq!(sound(&soundness), [0, 1, 2]);
    }
}

#[test]
fn an_unsent_repair_is_due_again() {
    let mut soundness = taken();
    hear(&mut soundness, 0, Word::Absent);
    assert_eq!(soundness.begin_repairs().1, 0b001);
    soundness.withdraw_repairs(0b001);
    assert_eq!(soundness.begin_repairs().1, 0b001);
    hear(&mut soundness, 0, Word::NotSet);
    assert_eq!(soundness.begin_repairs().1, 0, "somebody else's");
}

#[test]
fn a_server_without_the_key_loses_its_vote() {
    let mut soundness = taken();
    let round = soundness.begin_round();
    hear(&mut soundness, 1, Word::Absent);
    assert!(!soundness.pass_round(round, 0b011, 2));
    let round = soundness.begin_round();
    soundness.fail_round(round);
    assert!(!soundness.pass_round(round, 0b011, 2));
}

#[test]
fn a_candidate_without_the_key_is_dropped() {
    let mut soundness = taken();
    hear(&mut soundness, 2, Word::Granted { in_time: false });
    let round = soundness.begin_round();
    hear(&mut soundness, 2, Word::Absent);
    // The server has the key again, but that was heard after the round had begun.
    hear(&mut soundness, 2, Word::Has { in_time: true });
    assert!(soundness.pass_round(round, 0b011, 2));
    assert_eq!(sound(&soundness), [0, 1]);
}

/// The grant is an answer over one manager's connection, which no thread reads until much later.
#[test]
fn a_late_grant_is_no_answer_to_a_repair() {
    let mut soundness = taken();
    let round = soundness.begin_round();
    soundness.hear(2, round, Word::Has { in_time: true });
    soundness.fail_round(round);
    let round = soundness.begin_round();
    soundness.hear(2, round, Word::Absent);
    assert!(soundness.pass_round(round, 0b011, 2));
    let (repair, servers) = soundness.begin_repairs();
    assert_eq!(servers, 0b100);
    soundness.hear(2, 0, Word::Granted { in_time: true });
    assert!(pass(&mut soundness, 0b011));
    assert_eq!(sound(&soundness), [0, 1], "it may not have the key yet");
    soundness.hear(2, repair, Word::Repaired);
    assert!(pass(&mut soundness, 0b011));
    assert_eq!(sound(&soundness), [0, 1, 2]);
}

#[test]
fn answers_from_before_a_repair_do_not_count_after_it() {
    let mut soundness = taken();
    let before = soundness.begin_round();
    soundness.fail_round(before);
    let round = soundness.begin_round();
    soundness.hear(0, round, Word::Absent);
    soundness.hear(2, round, Word::Has { in_time: true });
    assert!(soundness.pass_round(round, 0b110, 2));
    let (repair, _) = soundness.begin_repairs();
    soundness.hear(0, before, Word::Has { in_time: true });
    assert!(pass(&mut soundness, 0b110));
    assert_eq!(sound(&soundness), [1, 2], "the repair was not heard of");
    soundness.hear(0, repair, Word::Repaired);
    assert!(pass(&mut soundness, 0b110));
    for word in [Word::Absent, Word::Foreign] {
        soundness.hear(0, before, word);
        assert_eq!(sound(&soundness), [0, 1, 2]);
    }
}

#[test]
fn each_repair_has_its_own_answer() {
    let mut soundness = taken();
    let lose = |soundness: &mut Soundness| {
        let round = soundness.begin_round();
        soundness.hear(2, round, Word::Has { in_time: true });
        soundness.hear(0, round, Word::Absent);
        assert!(soundness.pass_round(round, 0b110, 2));
        soundness.begin_repairs().0
    };
    let first = lose(&mut soundness);
    let round = soundness.begin_round();
    soundness.hear(0, round, Word::Has { in_time: false });
    soundness.fail_round(round);
    let second = lose(&mut soundness);
    for word in [Word::Repaired, Word::NotSet] {
        let mut soundness = soundness.clone();
        soundness.hear(0, first, word);
        assert!(pass(&mut soundness, 0b110));
        assert_eq!(sound(&soundness), [1, 2], "the second is under way still");
    }
    assert!(pass(&mut soundness, 0b110));
    assert_eq!(sound(&soundness), [1, 2]);
    soundness.hear(0, second, Word::Repaired);
    assert!(pass(&mut soundness, 0b110));
    assert_eq!(sound(&soundness), [0, 1, 2]);
}

/// A lock that the first three of five servers granted. Nothing was heard of the others.
fn taken_of_five() -> Soundness {
    let mut soundness = Soundness::new(5);
    soundness.take(0b00111, 0b11111);
    soundness
}

fn sound_of_five(soundness: &Soundness) -> Vec<usize> {
    (0..5).filter(|&server| soundness.is_sound(server)).collect()
}

fn pass_of_five(soundness: &mut Soundness) -> bool {
    let round = soundness.begin_round();
    soundness.pass_round(round, 0b11111, 3)
}

/// All five servers have granted the lock. Two have lost it and are sent a repair.
fn repairing() -> Soundness {
    let mut soundness = Soundness::new(5);
    soundness.take(0b11111, 0b11111);
    hear(&mut soundness, 0, Word::Absent);
    hear(&mut soundness, 1, Word::Absent);
    assert_eq!(soundness.begin_repairs().1, 0b00011);
    soundness
}

#[test]
fn a_repeated_grant_does_not_bring_a_key_back() {
    let mut soundness = taken();
    hear(&mut soundness, 2, Word::Has { in_time: true });
    hear(&mut soundness, 0, Word::Absent);
    soundness.hear(0, 0, Word::Granted { in_time: true });
    assert!(pass(&mut soundness, 0b110));
    assert_eq!(sound(&soundness), [1, 2]);
}

#[test]
fn grants_count_before_the_decision() {
    let mut soundness = Soundness::new(3);
    hear(&mut soundness, 0, Word::Granted { in_time: true });
    hear(&mut soundness, 1, Word::Granted { in_time: true });
    soundness.take(0b001, 0b111);
    assert_eq!(sound(&soundness), [0, 1]);
}

#[test]
fn an_answer_counts_only_for_its_own_server() {
    for word in [Word::Repaired, Word::NotSet, Word::Has { in_time: false }] {
        let mut soundness = repairing();
        hear(&mut soundness, 0, word);
        hear(&mut soundness, 1, Word::Repaired);
        assert!(pass_of_five(&mut soundness));
        assert!(soundness.is_sound(1), "{word:?}");
        hear(&mut soundness, 2, Word::Absent);
        assert_eq!(soundness.begin_repairs().1, 0b00100, "{word:?}");
    }
}

#[test]
fn only_servers_without_the_key_are_repaired() {
    for word in [Word::Foreign, Word::Has { in_time: false }] {
        let mut soundness = taken_of_five();
        hear(&mut soundness, 0, Word::Absent);
        hear(&mut soundness, 1, Word::Absent);
        hear(&mut soundness, 0, word);
        assert_eq!(soundness.begin_repairs().1, 0b00010, "{word:?}");
    }
}

#[test]
fn a_proof_of_one_grant_keeps_other_candidates() {
    let mut soundness = taken_of_five();
    hear(&mut soundness, 3, Word::Granted { in_time: false });
    hear(&mut soundness, 4, Word::Granted { in_time: false });
    hear(&mut soundness, 3, Word::Has { in_time: true });
    assert_eq!(sound_of_five(&soundness), [0, 1, 2, 3]);
    assert!(pass_of_five(&mut soundness));
    assert_eq!(sound_of_five(&soundness), [0, 1, 2, 3, 4]);
}

#[test]
fn a_round_admits_only_earlier_candidates() {
    let mut soundness = taken_of_five();
    hear(&mut soundness, 3, Word::Granted { in_time: false });
    let round = soundness.begin_round();
    hear(&mut soundness, 4, Word::Granted { in_time: false });
    assert!(soundness.pass_round(round, 0b00111, 3));
    assert_eq!((sound_of_five(&soundness), soundness.voters()), (vec![0, 1, 2, 3], 5));
    assert!(pass_of_five(&mut soundness));
    assert_eq!((sound_of_five(&soundness), soundness.voters()), (vec![0, 1, 2, 3, 4], 5));
}

#[test]
fn repairs_of_two_servers_are_independent() {
    let mut soundness = repairing();
    let first = soundness.last_number;
    assert_eq!(soundness.last_setter(3), 0, "it was sent none");
    hear(&mut soundness, 2, Word::Absent);
    let (second, servers) = soundness.begin_repairs();
    assert_eq!(servers, 0b00100);
    assert_eq!(soundness.last_setter(0), first);
    assert_eq!(soundness.last_setter(2), second);
}

#[test]
fn a_second_repair_replaces_the_first() {
    let mut soundness = repairing();
    hear(&mut soundness, 1, Word::Has { in_time: false });
    hear(&mut soundness, 1, Word::Absent);
    let (second, servers) = soundness.begin_repairs();
    assert_eq!((servers, soundness.last_setter(1)), (0b00010, second));
}

#[test]
fn a_late_read_counts_as_a_late_grant() {
    let mut soundness = taken();
    soundness.hear(2, 0, Word::Has { in_time: false });
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1], 3));
    // A later question asks how long the server still has the key. The answer shows that it has had the key all
    // the time.
    let round = soundness.begin_round();
    soundness.hear(2, round, Word::Has { in_time: true });
    assert_eq!(sound(&soundness), [0, 1, 2]);
    // The same holds for an answer to an earlier round that was not read in that round.
    let mut soundness = taken();
    let before = soundness.begin_round();
    assert!(soundness.pass_round(before, 0b011, 2));
    soundness.hear(2, before, Word::Has { in_time: false });
    let now = soundness.begin_round();
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1], 3));
    soundness.hear(2, now, Word::Has { in_time: true });
    assert_eq!(sound(&soundness), [0, 1, 2]);
    // If a later question proves nothing, more of the same do not prove it either.
    let mut soundness = taken();
    let round = soundness.begin_round();
    soundness.hear(2, round, Word::Has { in_time: false });
    assert_eq!((sound(&soundness), soundness.voters()), (vec![0, 1], 2));
}
