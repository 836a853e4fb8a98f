//! What a C program passes.

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

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

/// The bytes of an argument that names how many there are.
pub(super) fn bytes<'a>(start: *const c_char, size: usize, name: &str) -> Result<&'a [u8], Error> {
    if start.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // No object is larger, and no slice may be.
    let size = size.min(isize::MAX.cast_unsigned());
    // SAFETY: the pointer is not NULL, and the header asks for so many bytes that stay as they are until the
    // call returns; the result is not kept longer than that.
    Ok(unsafe { slice::from_raw_parts(start.cast::<u8>(), size) })
}

/// An array of so many string arguments, none of them NULL.
pub(super) fn texts<'a>(
    start: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a [u8]>, Error> {
    let string = |place: usize| {
        // SAFETY: the header asks for so many pointers, one behind the other, that stay as they are until the
        // call returns.
        let string = unsafe { start.add(place).read() };
        text(string, &format!("{name} {} of {count}", place + 1))
    };
    (0..count).map(string).collect()
}

/// A struct of C that begins with its size and may be one of an older version, which ends earlier, or of a later
/// one, which ends later: what this version does not know of has to be zero.
///
/// # Safety
///
/// `T` is made of plain numbers and pointers, and its first field is a usize for its size.
pub(super) unsafe trait Versioned: Copy {
    /// How large the first version was.
    const LEAST: usize;
    /// What begins it.
    const INIT: &'static str;
}

/// The size that the struct behind the pointer says it has.
fn size_of_struct<T: Versioned>(given: *const T, name: &str) -> Result<usize, Error> {
    if given.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the pointer is not NULL, and the header asks for a struct that begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if !(T::LEAST..=64 * 1024).contains(&size) {
        let words = format!("{name}->size is {size}: begin with {}", T::INIT);
        return Err(Error::invalid(words));
    }
    Ok(size)
}

/// The struct behind the pointer. What an older program does not have of it is as in `otherwise`.
pub(super) fn versioned<T: Versioned>(
    given: *const T,
    otherwise: T,
    name: &str,
) -> Result<T, Error> {
    let size = size_of_struct(given, name)?;
    let known = size.min(size_of::<T>());
    // SAFETY: the header asks for a struct of the size that it says, which may be read.
    let later = unsafe { slice::from_raw_parts(given.cast::<u8>().add(known), size - known) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(Error::invalid(format!("{name} has a field that this version does not know")));
    }
    let mut copy = otherwise;
    // SAFETY: so many bytes may be read, as above, and there is room for them. Every value of them is one of
    // numbers and pointers, as the trait asks.
    unsafe {
        let target = ptr::from_mut(&mut copy).cast::<u8>();
        ptr::copy_nonoverlapping(given.cast::<u8>(), target, known);
    }
    Ok(copy)
}

/// Writes as much of a struct as the program has room for.
pub(super) fn write_versioned<T: Versioned>(place: *mut T, value: &T, size: usize) {
    let known = size.min(size_of::<T>());
    // SAFETY: the pointer was read from before, so it is good, and the header asks for a struct of that size,
    // which may be written to.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), place.cast::<u8>(), known);
    }
}

/// An array of such structs that the call fills: the first one says how large each is.
pub(super) struct Array<T> {
    start: *mut T,
    size: usize,
    room: usize,
    /// How many there are, with those that there is no room for.
    count: usize,
    told: Argument<usize>,
}

impl<T: Versioned> Array<T> {
    /// Checks the pointers. There may be no array if there is no room in it.
    pub(super) fn new(
        start: *mut T,
        count: *mut usize,
        (name, count_name): (&str, &str),
    ) -> Result<Self, Error> {
        if count.is_null() {
            return Err(Error::invalid(format!("{count_name} is NULL")));
        }
        // SAFETY: the pointer is not NULL, and the header asks for one that may be read from.
        let room = unsafe { count.read() };
        let size = match room {
            0 => T::LEAST,
            _ => size_of_struct(start.cast_const(), name)?,
        };
        let told = Argument { place: count };
        Ok(Self { start, size, room, count: 0, told })
    }

    /// The next struct, made for the size that it has in the program.
    pub(super) fn push(&mut self, make: impl FnOnce(usize) -> T) {
        if self.count < self.room {
            // SAFETY: the header asks for so many structs of that size, one behind the other.
            let place = unsafe { self.start.cast::<u8>().add(self.count * self.size) };
            let known = self.size.min(size_of::<T>());
            // SAFETY: as above: it may be written to. What this version does not know of becomes zero.
            unsafe { place.add(known).write_bytes(0, self.size - known) };
            write_versioned(place.cast::<T>(), &make(self.size), self.size);
        }
        self.count += 1;
    }

    /// Tells how many there are.
    pub(super) fn finish(mut self) {
        self.told.set(self.count);
    }
}

/// Copies as much of some words as there is room for, and a NUL. Returns how many bytes they have.
pub(super) fn copy_words(words: &CStr, place: *mut c_char, size: usize) -> usize {
    let bytes = words.to_bytes();
    if !place.is_null() && size > 0 {
        // Not in the middle of a letter.
        let is_start = |&end: &usize| bytes.get(end).is_none_or(|byte| byte & 0xC0 != 0x80);
        let end = (0..=bytes.len().min(size - 1)).rev().find(is_start).unwrap_or(0);
        // SAFETY: `place` is not NULL, and the header asks for so much room that may be written to. No more is
        // touched than what is written, which is within that.
        let room = unsafe { slice::from_raw_parts_mut(place.cast::<u8>(), end + 1) };
        room[..end].copy_from_slice(&bytes[..end]);
        room[end] = 0;
    }
    bytes.len()
}

/// Room for a text that has to fit in as a whole.
pub(super) struct Room {
    place: *mut c_char,
    size: usize,
}

impl Room {
    pub(super) fn new(place: *mut c_char, size: usize, name: &str) -> Result<Self, Error> {
        match place.is_null() {
            true => Err(Error::invalid(format!("{name} is NULL"))),
            false => Ok(Self { place, size }),
        }
    }

    /// How many bytes there are, with one for a NUL.
    pub(super) fn bytes(&self) -> usize {
        self.size
    }

    /// Writes the text and a NUL, if it fits in.
    pub(super) fn write(&mut self, text: &str) {
        if text.len() < self.size {
            // SAFETY: the pointer is not NULL, and the header asks for so much room that may be written to during
            // the call.
            let room =
                unsafe { slice::from_raw_parts_mut(self.place.cast::<u8>(), text.len() + 1) };
            room[..text.len()].copy_from_slice(text.as_bytes());
            room[text.len()] = 0;
        }
    }
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

/// As much of the words as there is room for, and a NUL.
pub(super) fn words<const ROOM: usize>(words: &str) -> [c_char; ROOM] {
    let mut room = [0; ROOM];
    let end = (0..ROOM).rev().find(|&end| words.is_char_boundary(end)).unwrap_or(0);
    for (place, &byte) in room.iter_mut().zip(&words.as_bytes()[..end]) {
        *place = c_char::from_ne_bytes([byte]);
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_do_not_fit_are_cut_between_letters() {
        let bytes = |room: [c_char; 6]| room.map(|it| it.to_ne_bytes()[0]);
        assert_eq!(&bytes(words("ab")), b"ab\0\0\0\0");
        assert_eq!(&bytes(words("abcdef")), b"abcde\0");
        assert_eq!(&bytes(words("abcd\u{e9}")), b"abcd\0\0");
    }
}
