//! The world that the engine talks to. It answers requests, and has a bell that wakes the driver.

use loom::sync::{Condvar, Mutex, MutexGuard};

/// Names a call and its request. The answer has the same name.
pub(super) type Name = usize;

pub(super) struct World {
    state: Mutex<State>,
    /// Signals the polling driver.
    news: Condvar,
    /// Signals the threads that answer.
    sent: Condvar,
    answers_at_once: bool,
}

#[derive(Default)]
struct State {
    requests: Vec<Name>,
    answers: Vec<Name>,
    has_rung: bool,
}

impl World {
    /// A world in which a thread has to call [`Self::answer`].
    pub(super) fn slow() -> Self {
        Self::new(false)
    }

    /// A world in which the answers arrive as soon as the requests are sent.
    pub(super) fn quick() -> Self {
        Self::new(true)
    }

    fn new(answers_at_once: bool) -> Self {
        let (state, news, sent) = Default::default();
        Self { state, news, sent, answers_at_once }
    }

    pub(super) fn send(&self, requests: &mut Vec<Name>) {
        if requests.is_empty() {
            return;
        }
        let mut state = self.state();
        if self.answers_at_once {
            state.answers.append(requests);
            self.news.notify_one();
        } else {
            state.requests.append(requests);
            self.sent.notify_one();
        }
    }

    /// Waits for this request and answers it.
    pub(super) fn answer(&self, name: Name) {
        let mut state = self.state();
        loop {
            if let Some(index) = state.requests.iter().position(|&it| it == name) {
                state.requests.swap_remove(index);
                state.answers.push(name);
                return self.news.notify_one();
            }
            state = self.sent.wait(state).unwrap();
        }
    }

    /// Takes the answers that have arrived.
    pub(super) fn receive(&self) -> Vec<Name> {
        std::mem::take(&mut self.state().answers)
    }

    /// Waits for answers or for the bell. Does not wait if something is due. Returns whether the bell has rung.
    pub(super) fn wait(&self, something_is_due: bool, answers: &mut Vec<Name>) -> bool {
        let mut state = self.state();
        while !something_is_due && state.answers.is_empty() && !state.has_rung {
            state = self.news.wait(state).unwrap();
        }
        answers.append(&mut state.answers);
        state.has_rung
    }

    pub(super) fn wake(&self) {
        self.state().has_rung = true;
        self.news.notify_one();
    }

    pub(super) fn silence(&self) {
        self.state().has_rung = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
