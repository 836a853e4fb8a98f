//! The calls that exist only for shared locks.

use crate::error::Error;
use crate::lease::Lease;
use crate::lease_call::{Begun, Then, required_hold_of};
use crate::lock_kind::LockKind;
use crate::operation::downgrade::Downgrade;
use crate::redlock::RedLock;
use crate::runtime::Runtime;
use crate::submitted::Tag;

impl RedLock {
    /// Turns an exclusive lock into a shared lock.
    pub fn downgrade(&self, lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.call(own.begin_downgrade(lease)?, lease))
    }

    /// Begins to turn an exclusive lock into a shared lock.
    pub fn submit_downgrade(&self, lease: Lease, tag: Tag) -> Result<(), Error> {
        let own = self.own()?;
        let begun = own.begin_downgrade(&lease)?;
        own.submit_call(begun, lease, tag);
        Ok(())
    }
}

impl Runtime {
    fn begin_downgrade(&self, lease: &Lease) -> Result<Begun, Error> {
        let hold = required_hold_of(lease)?;
        let words = match hold.target().kind {
            LockKind::Exclusive | LockKind::Shared => None,
            LockKind::Several(_) => Some("a lock of several resources cannot be shared"),
            LockKind::Permit { .. } => Some("a semaphore permit cannot be shared"),
        };
        if let Some(words) = words {
            return Err(Error::invalid(words));
        }
        let view = self.view(hold)?;
        let operation = Box::new(Downgrade::new(view.clone()));
        Ok(Begun { operation, then: Then::Extend(view) })
    }
}
