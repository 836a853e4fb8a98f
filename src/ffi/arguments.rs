//! What a C program passes.

use std::ffi::{CStr, c_char};

use crate::error::Error;

/// The bytes of a string argument.
pub(super) fn text<'a>(string: *const c_char, name: &str) -> Result<&'a [u8], Error> {
    if string.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the pointer is not NULL, and the header asks for a C string that stays as it is
    // until the call returns; the result is not kept longer than that.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// The bytes of a string argument that may be NULL.
pub(super) fn text_or_null<'a>(
    string: *const c_char,
    name: &str,
) -> Result<Option<&'a [u8]>, Error> {
    if string.is_null() { Ok(None) } else { text(string, name).map(Some) }
}

/// An argument that the call writes its answer to.
pub(super) struct Argument<T> {
    place: *mut T,
}

impl<T> Argument<T> {
    /// Checks the pointer, and gives the argument a first value.
    pub(super) fn new(place: *mut T, name: &str, first: T) -> Result<Self, Error> {
        if place.is_null() {
            return Err(Error::invalid(format!("{name} is NULL")));
        }
        let mut argument = Self { place };
        argument.set(first);
        Ok(argument)
    }

    pub(super) fn set(&mut self, value: T) {
        // SAFETY: the pointer is not NULL, and the header asks for one that may be written to
        // during the call.
        unsafe { self.place.write(value) }
    }
}
