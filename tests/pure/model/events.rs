//! Calls that no thread waits for. Each end is delivered once, to one of the threads that ask for events.

use super::engine::Needs;
use super::stage::{Stage, play};
use super::world::World;

/// The names of two waits for events.
const FIRST_WAIT: usize = 50;
const SECOND_WAIT: usize = 51;

#[test]
fn a_thread_drives_until_its_event() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| assert_eq!(it.listen(FIRST_WAIT, Needs::Word), Some(1)));
        stage.me().submit(1, Needs::Answer);
        stage.close_with(1);
    });
}

#[test]
fn an_event_beside_a_driver_wakes_its_waiter() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| assert_eq!(it.listen(FIRST_WAIT, Needs::Word), Some(2)));
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.me().submit(2, Needs::Answer);
        stage.me().answer(2);
        // The first thread gets its event although the other thread goes on driving.
        stage.await_first();
        stage.me().answer(1);
        stage.close_with(1);
    });
}

#[test]
fn two_events_reach_two_waiters() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| assert!(it.listen(FIRST_WAIT, Needs::Word).is_some()));
        stage.enter(|it| assert!(it.listen(SECOND_WAIT, Needs::Word).is_some()));
        stage.me().submit(1, Needs::Answer);
        stage.me().submit(2, Needs::Answer);
        stage.close_with(2);
    });
}

#[test]
fn a_ready_event_is_taken_at_once() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.me().submit(1, Needs::Nothing);
        stage.enter(|it| assert_eq!(it.listen(FIRST_WAIT, Needs::Word), Some(1)));
        stage.close_with(1);
    });
}

#[test]
fn a_wait_for_an_event_times_out() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| assert_eq!(it.listen(FIRST_WAIT, Needs::Time), None));
        stage.me().run(1, Needs::Answer);
        stage.close();
    });
}

/// A thread that looks without waiting may find another thread driving, or may drive while other threads come.
#[test]
fn a_look_for_an_event_leaves_a_driver() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| assert_eq!(it.look(), None));
        stage.me().answer(1);
        stage.close();
    });
}

#[test]
fn repeated_looks_find_the_end_of_a_submitted_call() {
    play(Some(2), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.me().submit(2, Needs::Answer);
        let told = (0..2).find_map(|_| stage.me().look());
        stage.finish();
        let told = told.or_else(|| stage.me().look());
        assert_eq!(told, Some(2));
        stage.close_with(1);
    });
}

#[test]
fn a_look_for_an_event_does_a_chore_and_continues() {
    play(None, || {
        let stage = Stage::new(World::quick());
        stage.me().submit(1, Needs::Chore);
        assert_eq!(stage.me().look(), Some(1));
        stage.me().submit(2, Needs::Chore);
        assert_eq!(stage.me().look_until_a_chore(), None);
        assert_eq!(stage.me().look(), Some(2));
        stage.close_with(2);
    });
}

#[test]
fn any_thread_does_a_chore_and_its_call_continues() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Chore));
        stage.enter(|it| it.run(2, Needs::Answer));
        stage.me().run(3, Needs::Chore);
        stage.close();
    });
}

/// The driving thread may have to do another call's chore while its own call ends.
#[test]
fn a_thread_drives_nothing_during_a_chore() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Chore));
        stage.me().answer(1);
        stage.close();
    });
}

/// A request is sent even if no thread waits for its answer.
#[test]
fn a_standby_thread_drives_unattended_calls() {
    play(None, || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| assert_eq!(it.stand_by(FIRST_WAIT, false), None));
        stage.me().submit(1, Needs::Answer);
        stage.me().answer(1);
        stage.me().call_off(FIRST_WAIT);
        stage.finish();
        assert_eq!(stage.me().look(), Some(1));
        stage.close_with(1);
    });
}

#[test]
fn a_standby_thread_can_take_events() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| assert_eq!(it.stand_by(FIRST_WAIT, true), Some(1)));
        stage.me().submit(1, Needs::Answer);
        stage.close_with(1);
    });
}

/// The thread that has its answer leaves. Only the thread that stands by is left to go on.
#[test]
fn a_standby_thread_continues_after_the_driver() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| assert_eq!(it.stand_by(FIRST_WAIT, false), None));
        stage.me().submit(2, Needs::Answer);
        stage.me().answer(1);
        stage.await_first();
        stage.me().answer(2);
        stage.me().call_off(FIRST_WAIT);
        stage.finish();
        assert_eq!(stage.me().look(), Some(2));
        stage.close_with(1);
    });
}

/// The standby thread has driven for a call that has ended by now, and another thread sleeps because of that.
#[test]
fn an_ending_standby_thread_leaves_a_driver() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| assert_eq!(it.stand_by(FIRST_WAIT, false), None));
        stage.me().submit(2, Needs::Answer);
        stage.me().answer(2);
        stage.me().answer(1);
        stage.await_first();
        stage.me().call_off(FIRST_WAIT);
        stage.finish();
        assert_eq!(stage.me().look(), Some(2));
        stage.close_with(1);
    });
}

#[test]
fn a_standby_thread_does_not_block_calls() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| assert_eq!(it.stand_by(FIRST_WAIT, false), None));
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.me().run(2, Needs::Answer);
        stage.me().call_off(FIRST_WAIT);
        stage.close();
    });
}
