//! Arguments of C calls: usually valid ones, but also any others.

use std::ffi::{CString, c_char};

use crate::choices::Choices;
use crate::handles::pointer;
use crate::urls::SECRET;

/// Resources to lock at once, if any, and the count that is passed with them.
pub(crate) struct Resources {
    /// Some may be NULL.
    pub(crate) names: Vec<Option<CString>>,
    pub(crate) count: usize,
    /// Whether the single resource is also set.
    pub(crate) has_one_too: bool,
}

impl Resources {
    pub(crate) fn pointers(&self) -> Vec<*const c_char> {
        self.names.iter().map(|it| pointer(it.as_ref())).collect()
    }

    /// Whether there are this many, none of them NULL, and no two the same.
    pub(crate) fn are_different(&self, count: usize) -> bool {
        let is_given = self.names.len() >= count && !self.has_one_too;
        let names = &self.names[..count.min(self.names.len())];
        is_given && names.iter().all(Option::is_some) && (count < 2 || names[0] != names[1])
    }
}

impl Choices<'_> {
    /// The name of a lock, or NULL.
    pub(crate) fn resource(&mut self) -> Option<CString> {
        let bytes = match self.byte() {
            0..=63 => b"r".to_vec(),
            64..=127 => b"q".to_vec(),
            128 => return None,
            129 => Vec::new(),
            130 => vec![b'x'; 65_536],
            131 => vec![b'x'; 65_537],
            _ => self.text_bytes(),
        };
        Some(CString::new(bytes).expect("no NUL"))
    }

    /// Usually none; or this one and another; or an invalid list of names.
    pub(crate) fn resources(&mut self, first: Option<&CString>) -> Resources {
        let of = |second: Option<&CString>, count, has_one_too| Resources {
            names: vec![first.cloned(), second.cloned()],
            count,
            has_one_too,
        };
        match self.byte() {
            few @ 0..200 => {
                let count = usize::from(few % 4 == 3);
                Resources { names: Vec::new(), count, has_one_too: false }
            }
            200..240 => {
                let second = self.pick(&[c"q", c"r", c"s"]).to_owned();
                of(Some(&second), 2, false)
            }
            240..244 => of(None, 1, false),
            244..247 => of(None, 2, false),
            247 => of(None, 0, false),
            // Too many: they are not read.
            248 => of(None, 129, false),
            249 => of(first, 2, false),
            _ => of(Some(&c"q".to_owned()), 2, true),
        }
    }

    /// Any bytes except NUL. The byte 1 stands for a password.
    pub(crate) fn text_bytes(&mut self) -> Vec<u8> {
        let bytes = self.bytes().iter().filter(|&&it| it != 0);
        bytes
            .flat_map(|it| if *it == 1 { SECRET.as_bytes() } else { std::slice::from_ref(it) })
            .copied()
            .collect()
    }

    pub(crate) fn ttl_ms(&mut self) -> i64 {
        match self.byte() {
            0..=127 => 10_000,
            128..=200 => 1_000,
            _ => self.long(),
        }
    }

    pub(crate) fn int(&mut self) -> i32 {
        let small = i32::from(self.byte());
        match small {
            250 => i32::MAX,
            251 => i32::MIN,
            252.. => self.long() as i32,
            _ => small - 3,
        }
    }

    pub(crate) fn long(&mut self) -> i64 {
        let small = i64::from(self.byte());
        match small {
            240 => i64::MAX,
            241 => i64::MIN,
            242 => 315_360_000_000,
            243 => 315_360_000_001,
            244 => 86_400_000,
            245.. => self.eight(),
            0..=120 => small - 3,
            _ => small * 100,
        }
    }
}
