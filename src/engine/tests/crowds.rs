//! Crowds: whatever operations do to each other, the engine comes back to its sockets and to what is due.

use super::waiting::{Does, goes_on};
use super::*;
use crate::protocol::operation::Urgency;
use crate::protocol::token::Token;

/// Adds itself to the numbers when it goes on, and then does this.
struct Member<F> {
    number: usize,
    urgency: Urgency,
    went_on: Went,
    then: F,
}

/// The numbers of those that went on, in order.
type Went = Arc<Mutex<Vec<usize>>>;

impl<F: FnMut(&mut dyn Actions) + Send> Operation for Member<F> {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if event == Event::Started {
            if self.urgency == Urgency::Keeps {
                actions.keep(Token::from_random([7; 20]));
            }
            return actions.wait_until(Moment::NEVER);
        }
        self.went_on.lock().unwrap().push(self.number);
        (self.then)(actions);
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}

fn waits_again(actions: &mut dyn Actions) {
    actions.wait_until(Moment::NEVER);
}

/// Adds this number of waiters. Returns their tickets.
fn crowd(
    engine: &mut Engine,
    numbers: std::ops::Range<usize>,
    urgency: Urgency,
    went_on: &Went,
) -> Vec<OpId> {
    let add = |number| {
        let went_on = Arc::clone(went_on);
        engine.run(number, Box::new(Member { number, urgency, went_on, then: waits_again }), None);
        ticket(engine, number)
    };
    numbers.map(add).collect()
}

fn call(engine: &mut Engine, tickets: &[OpId]) {
    let call = |&ticket: &_| engine.state.call(ticket, Event::TimeOut, Reason::IsCalled);
    tickets.iter().for_each(call);
}

/// One turn of the engine.
fn turn(engine: &mut Engine) {
    engine.begin_turn();
    engine.settle(NOW);
}

fn numbers(went_on: &Went) -> Vec<usize> {
    mem::take(&mut went_on.lock().unwrap())
}

#[test]
fn a_called_crowd_continues_in_turns_and_in_order() {
    const CROWD: usize = 2 * STEPS_MAX + 1;
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    let all = crowd(&mut engine, 0..CROWD, Urgency::Wants, &went_on);
    assert_eq!(engine.state.next_due(), Moment::NEVER);
    engine.take_change();
    engine.watched_until = Moment::NEVER;
    call(&mut engine, &all);
    for nth in 0..2 {
        turn(&mut engine);
        assert!(numbers(&went_on).into_iter().eq(nth * STEPS_MAX..(nth + 1) * STEPS_MAX));
        // Whoever polls or sleeps must go on at once.
        assert!(engine.needs_driver() && engine.is_due_earlier() && engine.take_change());
        assert_eq!(engine.state.next_due(), Moment::from_nanos(0));
    }
    turn(&mut engine);
    assert_eq!(numbers(&went_on), [CROWD - 1]);
    assert_eq!(engine.state.next_due(), Moment::NEVER);
}

#[test]
fn two_operations_in_a_loop_do_not_starve_others() {
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    let other = Arc::new(Mutex::new([None; 2]));
    for number in 0..2 {
        let (went_on, other) = (Arc::clone(&went_on), Arc::clone(&other));
        let then = move |actions: &mut dyn Actions| {
            other.lock().unwrap()[1 - number].iter().for_each(|&it| actions.end_wait(it));
            actions.wait_until(Moment::NEVER);
        };
        let member = Member { number, urgency: Urgency::Wants, went_on, then };
        engine.run(number, Box::new(member), None);
    }
    let both = [ticket(&engine, 0), ticket(&engine, 1)];
    *other.lock().unwrap() = both.map(Some);
    call(&mut engine, &both[..1]);
    for _ in 0..3 {
        turn(&mut engine);
        assert_eq!(numbers(&went_on).len(), STEPS_MAX);
    }
    // The whole engine comes back, too, and with it each call of the program.
    let (before, mut watch) = (clock::now(), engine.watch(false));
    Engine::poll(&mut watch);
    engine.resume(watch);
    // Not `advance`: it would connect, and some worlds of the tests have no such server.
    engine.submit(goes_on(Moment::NEVER), Box::new(()), None);
    assert!(engine.next_due() <= before);
}

#[test]
fn many_calls_continue_an_operation_once() {
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    let [one] = crowd(&mut engine, 0..1, Urgency::Wants, &went_on)[..] else { panic!() };
    call(&mut engine, &[one; 1_000]);
    engine.state.call(one, Event::TimeOut, Reason::IsDue);
    turn(&mut engine);
    assert_eq!(numbers(&went_on), [0]);
    // After that, a call is news.
    call(&mut engine, &[one]);
    turn(&mut engine);
    assert_eq!(numbers(&went_on), [0]);
}

/// Its answers come anyway, and it looks at everything then.
#[test]
fn a_call_does_not_disturb_an_asking_operation() {
    let mut engine = engine_of_three();
    let (asking, events) = ask(&mut engine, 0, 1);
    call(&mut engine, &[asking]);
    turn(&mut engine);
    assert_eq!(*events.lock().unwrap(), [Event::Started]);
    assert_eq!(engine.state.next_due(), Moment::NEVER);
}

#[test]
fn called_operations_ask_in_order_of_urgency() {
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    let mut all = crowd(&mut engine, 0..40, Urgency::Wants, &went_on);
    all.extend(crowd(&mut engine, 40..42, Urgency::Holds, &went_on));
    all.extend(crowd(&mut engine, 42..44, Urgency::Keeps, &went_on));
    engine.state.open = 512;
    call(&mut engine, &all);
    turn(&mut engine);
    assert!(numbers(&went_on).is_empty() && engine.state.next_due() == Moment::NEVER);
    engine.state.open = 511;
    turn(&mut engine);
    let went_on = numbers(&went_on);
    assert_eq!((&went_on[..5], went_on.len()), (&[42, 43, 40, 0, 41][..], 44));
}

#[test]
fn a_new_operation_overtakes_called_ones_only() {
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    let all = crowd(&mut engine, 0..10, Urgency::Wants, &went_on);
    call(&mut engine, &all);
    let begun = Arc::new(Mutex::new(Vec::new()));
    let begins = |number: usize| {
        let begun = Arc::clone(&begun);
        Box::new(Does(move |_, actions: &mut dyn Actions| {
            begun.lock().unwrap().push(number);
            actions.end(Ok(Ended::Left));
        }))
    };
    engine.state.open = 512;
    engine.run(90, begins(90), None);
    engine.state.open = 511;
    engine.steps_left = 0;
    engine.settle(NOW);
    assert!(begun.lock().unwrap().is_empty(), "the turn is over");
    // It settles what is left, in the order of coming.
    engine.run(91, begins(91), None);
    assert_eq!(*begun.lock().unwrap(), [90, 91]);
    assert_eq!(numbers(&went_on).len(), 10);
    call(&mut engine, &all);
    engine.steps_left = 0;
    let next = ticket_of_new(&mut engine, begins(92));
    engine.begin(next);
    assert_eq!(*begun.lock().unwrap(), [90, 91, 92]);
    assert!(numbers(&went_on).is_empty());
}

fn ticket_of_new(engine: &mut Engine, operation: Box<dyn Operation>) -> OpId {
    engine.state.add(operation, Caller::Thread(95), None)
}

#[test]
fn excess_due_operations_stay_due() {
    const CROWD: usize = 4_200;
    let (mut engine, went_on) = (engine_of_three(), Went::default());
    for ticket in crowd(&mut engine, 0..CROWD, Urgency::Wants, &went_on) {
        engine.state.set_until(ticket.place(), NOW);
    }
    engine.steps_left = 0;
    engine.expire(NOW);
    assert!(numbers(&went_on).is_empty());
    engine.state.is_unsettled = false;
    assert_eq!(engine.state.next_due(), NOW, "others are still due");
    while went_on.lock().unwrap().len() < CROWD {
        turn(&mut engine);
        engine.expire(NOW);
    }
    assert!(numbers(&went_on).into_iter().eq(0..CROWD));
}
