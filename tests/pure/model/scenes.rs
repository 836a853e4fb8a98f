//! Threads that meet, with no faults.

use super::engine::{Fake, Needs};
use super::stage::{Stage, play};
use super::world::World;

#[test]
fn two_calls_get_their_own_answers() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Answer));
        stage.me().answer(1);
        stage.me().answer(2);
        stage.close();
    });
}

#[test]
fn three_calls_get_their_own_answers() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Answer));
        stage.me().run(3, Needs::Answer);
        stage.close();
    });
}

/// The second call is answered only after the first thread has left.
#[test]
fn an_answered_driver_hands_over() {
    play(Some(3), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Answer));
        stage.me().answer(1);
        stage.await_first();
        stage.me().answer(2);
        stage.close();
    });
}

/// The first call ends only when another thread ends it, which happens after the second call has its answer.
#[test]
fn a_request_during_polling_is_sent() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Word));
        stage.me().run(2, Needs::Answer);
        stage.me().call_off(1);
        stage.close();
    });
}

#[test]
fn a_call_with_an_earlier_timeout_ends_in_time() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Word));
        stage.me().run(2, Needs::Time);
        stage.me().call_off(1);
        stage.close();
    });
}

#[test]
fn a_waiting_thread_can_be_called_off_at_any_moment() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Word));
        stage.me().call_off(2);
        stage.close();
    });
}

/// The thread that is told to drive may have ended its call before it wakes.
#[test]
fn two_waiting_threads_can_be_called_off_at_once() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Word));
        stage.enter(|it| it.run(2, Needs::Word));
        stage.me().visit(|engine| (1..3).for_each(|it| engine.call_off(it)));
        stage.close();
    });
}

#[test]
fn a_visitor_that_reads_the_answer_wakes_the_driver() {
    play(None, || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.me().answer(1);
        stage.me().visit(Fake::look);
        stage.close();
    });
}

#[test]
fn places_serve_calls_in_turn() {
    play(Some(2), || {
        let mut stage = Stage::new(World::slow());
        stage.enter(|it| [1, 2].into_iter().for_each(|name| it.run(name, Needs::Answer)));
        stage.enter(|it| [3, 4].into_iter().for_each(|name| it.run(name, Needs::Answer)));
        [1, 3, 4, 2].into_iter().for_each(|name| stage.me().answer(name));
        stage.close();
    });
}

/// A thread that wakes another one may be late, and find the next thread at the same parker.
#[test]
fn parkers_serve_threads_in_turn() {
    play(Some(2), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Sending));
        stage.enter(|it| {
            it.run(2, Needs::Sending);
            it.run(3, Needs::Sending);
            it.call_off(4);
        });
        stage.me().run(4, Needs::Word);
        stage.close();
    });
}

/// The first thread's call ends as soon as it is sent. That thread then ends the second call.
#[test]
fn a_finished_thread_is_woken_before_the_driver_polls() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| {
            it.run(1, Needs::Sending);
            it.call_off(2);
        });
        stage.me().run(2, Needs::Word);
        stage.close();
    });
}

#[test]
fn calls_of_all_kinds_can_end_together() {
    play(Some(4), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Answer));
        stage.enter(|it| it.run(2, Needs::Sending));
        stage.me().run(3, Needs::Nothing);
        stage.me().run(4, Needs::Time);
        stage.close();
    });
}

/// One thread may be told to drive, another may arrive, and a third may be called off, all at once.
#[test]
fn a_thread_told_to_drive_may_find_a_driver() {
    play(Some(3), || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Sending));
        stage.enter(|it| it.run(2, Needs::Word));
        stage.me().run(3, Needs::Answer);
        stage.me().call_off(2);
        stage.close();
    });
}

/// The driving thread waits until the other thread ends its call. The other thread's own call has ended by then.
#[test]
fn a_woken_thread_finds_its_end_beside_a_driver() {
    play(None, || {
        let mut stage = Stage::new(World::quick());
        stage.enter(|it| it.run(1, Needs::Word));
        stage.me().run(2, Needs::Sending);
        stage.me().run(3, Needs::Time);
        stage.me().call_off(1);
        stage.close();
    });
}
