//! A lock that is held at several levels: it takes as many unlocks to release it. The lease keeps the count.

use crate::error::Error;
use crate::lease::Lease;
use crate::lease_call::required_hold_of;
use crate::operation::check_valid;
use crate::system::clock;

/// How many levels a lease may have in addition to the outermost level.
const INNER_LEVELS_MAX: u32 = i32::MAX as u32 - 1;

impl Lease {
    /// Adds a level, so that one more unlock is needed. No server is asked.
    pub fn retain(&mut self) -> Result<(), Error> {
        check_valid(required_hold_of(self)?, clock::now())?;
        if self.inner_levels >= INNER_LEVELS_MAX {
            return Err(Error::invalid("the lock has too many levels"));
        }
        self.inner_levels += 1;
        self.absent.clear();
        Ok(())
    }

    /// How many unlocks release the lock of this lease; 0 if it has none.
    pub fn levels(&self) -> u32 {
        match &self.hold {
            Some(hold) if hold.is_ours() => self.inner_levels + 1,
            _ => 0,
        }
    }

    /// For calls that would take the lock away from the outer levels.
    pub(crate) fn check_one_level(&self) -> Result<(), Error> {
        if self.inner_levels == 0 {
            return Ok(());
        }
        let levels = self.levels();
        let words = format!("the lock is held at {levels} levels: unlock the inner levels first");
        Err(Error::invalid(words))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::Status;
    use crate::held_lock::{HeldLock, Phase};
    use crate::token::Token;

    fn lease(ttl_ms: i64) -> Lease {
        let token = Token::from_random([7; 20]);
        let hold = Arc::new(HeldLock::of_one_server(b"r", token, (clock::now(), ttl_ms)));
        let mut lease = Lease::new();
        lease.begin(b"r");
        lease.keep(hold, "words of the call before".to_owned(), clock::now());
        lease
    }

    #[test]
    fn each_level_is_counted() {
        let mut lease = lease(600_000);
        assert_eq!(lease.levels(), 1);
        for level in 2..=5 {
            assert_eq!(lease.retain(), Ok(()));
            assert_eq!(lease.levels(), level);
        }
        assert!(lease.absent().is_empty(), "words of a call before");
    }

    #[test]
    fn a_lost_or_empty_lease_has_no_levels() {
        let mut empty = Lease::new();
        assert_eq!(empty.levels(), 0);
        assert_eq!(empty.retain().map_err(|it| it.status()), Err(Status::Lost));
        let mut expired = lease(0);
        let mut lost = lease(600_000);
        lost.hold.as_ref().expect("a lock").pass_to(Phase::Lost);
        for lease in [&mut expired, &mut lost] {
            assert_eq!(lease.retain().map_err(|it| it.status()), Err(Status::Lost));
            // It still takes the same number of unlocks.
            assert_eq!(lease.levels(), 1);
        }
    }

    #[test]
    fn the_number_of_levels_is_bounded() {
        let mut lease = lease(600_000);
        lease.inner_levels = INNER_LEVELS_MAX;
        assert_eq!(i32::try_from(lease.levels()), Ok(i32::MAX));
        assert_eq!(lease.retain().map_err(|it| it.status()), Err(Status::InvalidArgument));
        assert_eq!(i32::try_from(lease.levels()), Ok(i32::MAX));
    }

    #[test]
    fn a_reused_lease_has_one_level() {
        let mut lease = lease(600_000);
        lease.retain().unwrap();
        let hold = lease.hold.clone().unwrap();
        lease.begin(b"r");
        lease.keep(hold, String::new(), clock::now());
        assert_eq!(lease.levels(), 1);
    }
}
