//! The part of a manager that belongs to one process.
//!
//! A forked child leaves its parent's state unchanged, but closes its copies of the sockets, and makes a
//! state of its own. A thread of the parent may have been changing the parent's state during the fork, so
//! the child takes none of its mutexes.

use std::mem;
use std::sync::Arc;

use once_cell::race::OnceBox;

use crate::manager::log::Log;
use crate::manager::runtime::Runtime;
use crate::manager::settings::Settings;
use crate::protocol::error::Error;
use crate::protocol::servers::roster::Roster;
use crate::system::process::{Generation, this_process};
use crate::system::socket::InheritedDescriptor;

/// The states of a manager, by process: the state of the first process that used it, then those of its
/// children. Each is made by the first call that needs it. No mutex guards the list, because a child might
/// find that mutex locked.
#[derive(Default)]
pub(crate) struct ProcessStates(OnceBox<ProcessState>);

/// The state of one process.
struct ProcessState {
    process: Generation,
    /// The descriptors, for a forked child.
    inherited: Vec<InheritedDescriptor>,
    /// Empty only while it is dropped.
    runtime: Option<Arc<Runtime>>,
    of_child: ProcessStates,
}

impl ProcessStates {
    /// Whether no process has used the manager yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// The state of this process, if there is one.
    pub(crate) fn known(&self) -> Option<&Arc<Runtime>> {
        let mut state = self.0.get()?;
        while !state.is_ours() {
            state = state.of_child.0.get()?;
        }
        Some(state.runtime())
    }

    /// The state of this process. If there is none yet, makes it with these servers, or with those of the
    /// previous process.
    pub(crate) fn own(
        &self,
        roster: impl FnOnce() -> Result<Roster, Error>,
        settings: &Arc<Settings>,
        log: &Arc<Log>,
    ) -> Result<&Arc<Runtime>, Error> {
        let mut state = self.0.get_or_try_init(|| ProcessState::new(roster()?, settings, log))?;
        while !state.is_ours() {
            state.close_inherited();
            let new = || ProcessState::new(state.runtime().roster().clone(), settings, log);
            state = state.of_child.0.get_or_try_init(new)?;
        }
        Ok(state.runtime())
    }

    /// In a forked child, closes its copies of the sockets of its parent and of earlier ancestors.
    pub(crate) fn close_inherited(&self) {
        let mut next = self.0.get();
        while let Some(state) = next {
            if !state.is_ours() {
                state.close_inherited();
            }
            next = state.of_child.0.get();
        }
    }
}

impl ProcessState {
    fn new(roster: Roster, settings: &Arc<Settings>, log: &Arc<Log>) -> Result<Box<Self>, Error> {
        let (runtime, inherited) = Runtime::new(roster, settings, log)?;
        let (runtime, of_child) = (Some(Arc::new(runtime)), ProcessStates::default());
        Ok(Box::new(Self { process: this_process(), inherited, runtime, of_child }))
    }

    /// Whether this state belongs to the current process.
    fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    fn runtime(&self) -> &Arc<Runtime> {
        let runtime = self.runtime.as_ref();
        runtime.unwrap_or_else(|| unreachable!("it is empty only while it is dropped"))
    }

    /// Takes no mutex.
    fn close_inherited(&self) {
        self.inherited.iter().for_each(InheritedDescriptor::close_inherited);
    }
}

impl Drop for ProcessState {
    /// In a child, the sockets are closed by number, and their owners must not close them a second time. Data that
    /// a thread of the parent was changing during the fork stays half changed for ever, so it is left alone.
    fn drop(&mut self) {
        if self.is_ours() {
            // A standby thread still holds the runtime, and does the rest.
            self.runtime().abandon();
            return;
        }
        self.close_inherited();
        if let Some(runtime) = self.runtime.as_mut().and_then(Arc::get_mut)
            && runtime.is_at_rest()
        {
            runtime.forget_descriptors();
        } else {
            mem::forget(self.runtime.take());
        }
    }
}
