//! The arguments that a C program passes.

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use crate::protocol::error::Error;

/// The bytes of a string argument.
pub(super) fn text<'a>(string: *const c_char, name: &str) -> Result<&'a [u8], Error> {
    if string.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the pointer is not NULL, and the header requires a C string that does not change until the call
    // returns. The result is not kept longer than that.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// The bytes of a string argument that may be NULL.
pub(super) fn text_or_null<'a>(
    string: *const c_char,
    name: &str,
) -> Result<Option<&'a [u8]>, Error> {
    if string.is_null() { Ok(None) } else { text(string, name).map(Some) }
}

/// The bytes of an argument that comes with its size.
pub(super) fn bytes<'a>(start: *const c_char, size: usize, name: &str) -> Result<&'a [u8], Error> {
    if start.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // No object is larger than this, and no slice may be larger.
    let size = size.min(isize::MAX.cast_unsigned());
    // SAFETY: the pointer is not NULL, and the header requires `size` bytes that do not change until the call
    // returns. The result is not kept longer than that.
    Ok(unsafe { slice::from_raw_parts(start.cast::<u8>(), size) })
}

/// An array of `count` string arguments. None of them may be NULL.
pub(super) fn texts<'a>(
    start: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a [u8]>, Error> {
    let string = |place: usize| {
        // SAFETY: the header requires an array of `count` pointers that do not change until the call returns.
        let string = unsafe { start.add(place).read() };
        text(string, &format!("{name}[{place}]"))
    };
    (0..count).map(string).collect()
}

/// A C struct that begins with its size. It may be of an older version and end earlier, or of a later version
/// and end later. The part that this version does not know must be zero.
///
/// # Safety
///
/// `T` consists of plain numbers and pointers, and its first field is a usize for its size.
pub(super) unsafe trait Versioned: Copy {
    /// The size in 0.3.0: where the last field of that version ends. A later field does not change it, so that programs
    /// that were built before still work.
    const LEAST: usize;
    /// The name of the macro that initializes it.
    const INIT: &'static str;
}

/// The size that is stored in the struct behind the pointer.
fn size_of_struct<T: Versioned>(given: *const T, name: &str) -> Result<usize, Error> {
    if given.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the pointer is not NULL, and the header requires a struct that begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if !(T::LEAST..=64 * 1024).contains(&size) {
        let words = format!("{name}->size is {size}: initialize the struct with {}", T::INIT);
        return Err(Error::invalid(words));
    }
    Ok(size)
}

/// The struct behind the pointer. Fields that the struct of an older program lacks are as in `otherwise`.
pub(super) fn versioned<T: Versioned>(
    given: *const T,
    otherwise: T,
    name: &str,
) -> Result<T, Error> {
    let size = size_of_struct(given, name)?;
    let known = size.min(size_of::<T>());
    // SAFETY: the header requires a readable struct of the size that is stored in it.
    let later = unsafe { slice::from_raw_parts(given.cast::<u8>().add(known), size - known) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(Error::invalid(format!(
            "{name} sets a field that this version of the library does not know"
        )));
    }
    let mut copy = otherwise;
    // SAFETY: `known` bytes are readable, as above, and the copy has room for them. Every value of these
    // bytes is valid for numbers and pointers, which the trait requires.
    unsafe {
        let target = ptr::from_mut(&mut copy).cast::<u8>();
        ptr::copy_nonoverlapping(given.cast::<u8>(), target, known);
    }
    Ok(copy)
}

/// Writes as much of a struct as the program has room for.
pub(super) fn write_versioned<T: Versioned>(place: *mut T, value: &T, size: usize) {
    let known = size.min(size_of::<T>());
    // SAFETY: the pointer was read from before, so it is valid. The header requires a writable struct of that
    // size.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), place.cast::<u8>(), known);
    }
}

/// An array of such structs, which the call fills. The first struct says how large each of them is.
pub(super) struct Array<T> {
    start: *mut T,
    size: usize,
    room: usize,
    /// The number of structs, including those for which there is no room.
    count: usize,
    told: Argument<usize>,
}

impl<T: Versioned> Array<T> {
    /// Checks the pointers. The array may be NULL if it has no room.
    pub(super) fn new(
        start: *mut T,
        count: *mut usize,
        (name, count_name): (&str, &str),
    ) -> Result<Self, Error> {
        if count.is_null() {
            return Err(Error::invalid(format!("{count_name} is NULL")));
        }
        // SAFETY: the pointer is not NULL, and the header requires one that is readable.
        let room = unsafe { count.read() };
        let size = match room {
            0 => T::LEAST,
            _ => size_of_struct(start.cast_const(), name)?,
        };
        let told = Argument { place: count };
        Ok(Self { start, size, room, count: 0, told })
    }

    /// Adds the next struct. `make` gets the size that the struct has in the program.
    pub(super) fn push(&mut self, make: impl FnOnce(usize) -> T) {
        if self.count < self.room {
            // SAFETY: the header requires an array of `room` structs of that size.
            let place = unsafe { self.start.cast::<u8>().add(self.count * self.size) };
            let known = self.size.min(size_of::<T>());
            // SAFETY: as above, and the place is writable. The part that this version does not know becomes
            // zero.
            unsafe { place.add(known).write_bytes(0, self.size - known) };
            write_versioned(place.cast::<T>(), &make(self.size), self.size);
        }
        self.count += 1;
    }

    /// Writes the number of structs.
    pub(super) fn finish(mut self) {
        self.told.set(self.count);
    }
}

/// Copies as many bytes of `words` as there is room for, and a NUL. Returns the number of bytes of `words`.
pub(super) fn copy_words(words: &CStr, place: *mut c_char, size: usize) -> usize {
    let bytes = words.to_bytes();
    if !place.is_null() && size > 0 {
        // Does not cut in the middle of a character.
        let is_start = |&end: &usize| bytes.get(end).is_none_or(|byte| byte & 0xC0 != 0x80);
        let end = (0..=bytes.len().min(size - 1)).rev().find(is_start).unwrap_or(0);
        // SAFETY: `place` is not NULL, and the header requires `size` writable bytes. The slice covers only
        // the bytes that are written, which are within that size.
        let room = unsafe { slice::from_raw_parts_mut(place.cast::<u8>(), end + 1) };
        room[..end].copy_from_slice(&bytes[..end]);
        room[end] = 0;
    }
    bytes.len()
}

/// A buffer for a text that must fit as a whole.
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

    /// The size of the buffer, including the NUL.
    pub(super) fn bytes(&self) -> usize {
        self.size
    }

    /// Writes the text and a NUL, if they fit.
    pub(super) fn write(&mut self, text: &str) {
        if text.len() < self.size {
            // SAFETY: the pointer is not NULL, and the header requires a buffer of this size that is writable
            // during the call.
            let room =
                unsafe { slice::from_raw_parts_mut(self.place.cast::<u8>(), text.len() + 1) };
            room[..text.len()].copy_from_slice(text.as_bytes());
            room[text.len()] = 0;
        }
    }
}

/// An argument that the call writes its result to.
pub(super) struct Argument<T> {
    place: *mut T,
}

impl<T> Argument<T> {
    /// Checks the pointer and writes a first value.
    pub(super) fn new(place: *mut T, name: &str, first: T) -> Result<Self, Error> {
        if place.is_null() {
            return Err(Error::invalid(format!("{name} is NULL")));
        }
        let mut argument = Self { place };
        argument.set(first);
        Ok(argument)
    }

    pub(super) fn set(&mut self, value: T) {
        // SAFETY: the pointer is not NULL, and the header requires one that is writable during the call.
        unsafe { self.place.write(value) }
    }
}

/// As many bytes of the text as there is room for, and a NUL.
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

    /// These are the sizes that programs built with 0.3.0 say. They never change, whatever fields are added.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_structs_of_the_first_version_are_taken() {
        use crate::ffi::acquire::RedLockAcquireOptions;
        use crate::ffi::event::RedLockEvent;
        use crate::ffi::inspect::RedLockInfo;
        use crate::ffi::servers::RedLockServerInfo;
        use crate::ffi::stats::RedLockStats;
        fn fits<T: Versioned>(first: usize) -> bool {
            T::LEAST <= first && first <= size_of::<T>()
        }
        assert!(fits::<RedLockAcquireOptions>(72));
        assert!(fits::<RedLockEvent>(40));
        assert!(fits::<RedLockInfo>(1_064));
        assert!(fits::<RedLockServerInfo>(960));
        assert!(fits::<RedLockStats>(1_384));
    }

    #[test]
    fn text_is_cut_between_characters() {
        let bytes = |room: [c_char; 6]| room.map(|it| it.to_ne_bytes()[0]);
        assert_eq!(&bytes(words("ab")), b"ab\0\0\0\0");
        assert_eq!(&bytes(words("abcdef")), b"abcde\0");
        assert_eq!(&bytes(words("abcd\u{e9}")), b"abcd\0\0");
    }
}
