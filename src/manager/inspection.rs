//! What the servers report about a resource, or about a semaphore, that anybody may hold.

use std::sync::Arc;

use crate::manager::runtime::Runtime;
use crate::protocol::check;
use crate::protocol::error::Error;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::operation::inspect::Inspect;
use crate::protocol::operation::inspect_permits::InspectPermits;
use crate::protocol::operation::{End, Ended, Operation};

/// What the servers report about a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// How much longer it is locked, in milliseconds. Below 0: for ever. `None`: it is not locked.
    pub left_ms: Option<i64>,
    /// How many readers hold it, if it is locked in shared mode.
    pub readers: Option<i64>,
    /// A text about the servers that could not report anything.
    pub absent: String,
}

/// What the servers report about a semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// How many permits are taken.
    pub taken: u16,
    /// How much longer the first of these is taken, in milliseconds. Below 0: for ever. `None`: no permit is taken.
    pub left_ms: Option<i64>,
    /// A text about the servers that could not report anything.
    pub absent: String,
}

impl Inspection {
    /// Asks the servers about a resource. `counts` says whether to report the number of readers, too, if there are any.
    pub(crate) fn ask(runtime: &Runtime, resource: &[u8], counts: bool) -> Result<Self, Error> {
        check::resource(resource)?;
        let inspect = Inspect::new(resource);
        match run(runtime, if counts { inspect.with_count() } else { inspect })? {
            Ended::Inspected { locked_until, readers, absent } => {
                let left_ms = locked_until.map(|until| left_ms(runtime, until));
                let readers = readers.filter(|_| locked_until.is_some());
                Ok(Self { left_ms, readers, absent })
            }
            _ => Ok(Self::default()),
        }
    }
}

impl Permits {
    /// Asks the servers how many of the `of` permits are taken, and how much longer the first of them is.
    pub(crate) fn ask(runtime: &Runtime, resource: &[u8], of: u16) -> Result<Self, Error> {
        check::resource(resource)?;
        let kind = LockKind::Permit { of };
        check::kind(&kind, resource, false)?;
        let target = Target { resource: Arc::from(resource), kind };
        match run(runtime, InspectPermits::new(target))? {
            Ended::Counted { taken, first_end, absent } => {
                let left_ms = first_end.map(|until| left_ms(runtime, until));
                Ok(Self { taken, left_ms, absent })
            }
            _ => Ok(Self::default()),
        }
    }
}

fn run(runtime: &Runtime, operation: impl Operation + 'static) -> End {
    // This also asks for servers that the quorum does not need: a release that another client waits for may still have
    // to reach such a server.
    runtime.ask_for_passwords();
    runtime.check_process()?;
    runtime.run(Box::new(operation), None)
}

/// Below 0: for ever.
fn left_ms(runtime: &Runtime, until: Moment) -> i64 {
    if until == Moment::NEVER { -1 } else { until.ms_since(runtime.now()) }
}
