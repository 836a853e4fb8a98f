//! The fencing token of a lock: the greatest number that was drawn by a server that granted the lock. It counts
//! once a quorum has it, because the next client that is granted the lock then hears from at least one server
//! of that quorum.

/// The numbers that servers drew for one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    greatest: i64,
    /// How many servers drew it.
    servers: u32,
}

impl Draw {
    /// Notes the number, more than 0, that a server drew when it granted the lock.
    pub fn note(&mut self, number: i64) {
        if number > self.greatest {
            *self = Self { greatest: number, servers: 0 };
        }
        self.servers += u32::from(number == self.greatest);
    }

    /// The fencing token; 0 if none was drawn.
    pub fn token(self) -> i64 {
        self.greatest
    }

    /// Whether the token must be raised on other servers, so that this many servers have it.
    pub fn is_to_raise(self, quorum: u32) -> bool {
        self.greatest > 0 && self.servers < quorum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(numbers: &[i64]) -> (i64, bool) {
        let mut draw = Draw::default();
        numbers.iter().for_each(|&number| draw.note(number));
        (draw.token(), draw.is_to_raise(2))
    }

    #[test]
    fn the_token_is_the_greatest_number_on_a_quorum() {
        assert_eq!(drawn(&[]), (0, false));
        assert_eq!(drawn(&[7, 7]), (7, false));
        assert_eq!(drawn(&[7, 8]), (8, true));
        assert_eq!(drawn(&[8, 7]), (8, true));
        assert_eq!(drawn(&[7, 8, 8]), (8, false));
        assert_eq!(drawn(&[7, 7, 8]), (8, true));
    }
}
