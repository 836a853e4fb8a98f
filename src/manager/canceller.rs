//! How another thread cancels a call.

use std::sync::Arc;

use crate::engine::call_handle::CallHandle;

/// Cancels the call that uses a lease.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<CallHandle>);

impl Canceller {
    pub(crate) fn of(call: &Arc<CallHandle>) -> Self {
        Self(Arc::clone(call))
    }

    pub(crate) fn call(&self) -> &Arc<CallHandle> {
        &self.0
    }
}
