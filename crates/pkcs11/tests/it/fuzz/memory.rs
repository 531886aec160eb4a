//! Memory that a program gives the module. What the module writes beside it, or more than it says, fails the
//! test.

use std::ptr;

use cryptoki_sys::*;

/// What memory is filled with before a call, and bytes of it on both sides.
const CANARY: u8 = 0xa5;
const MARGIN: usize = 64;

/// A buffer between canaries.
pub struct Place {
    bytes: Vec<u8>,
    room: usize,
}

impl Place {
    pub fn new(room: usize) -> Place {
        Place { bytes: vec![CANARY; room + 2 * MARGIN], room }
    }

    /// The buffer, which no type of C has its alignment for: the module promises to write anywhere.
    pub fn at<T>(&mut self) -> *mut T {
        self.bytes[MARGIN..].as_mut_ptr().cast()
    }

    /// What was written, if it was so many bytes. Everything else is as it was.
    pub fn written(&self, count: usize) -> &[u8] {
        assert!(count <= self.room, "{count} bytes in a buffer of {}", self.room);
        let (before, rest) = self.bytes.split_at(MARGIN);
        let (written, after) = rest.split_at(count);
        assert!(before.iter().chain(after).all(|byte| *byte == CANARY), "the module wrote more than it says");
        written
    }
}

/// A buffer and its length, as functions take them that write bytes or entries of a list.
pub struct Output {
    place: Place,
    /// Bytes of an entry.
    entry: usize,
    gives_buffer: bool,
    gives_length: bool,
    /// Entries that the program says there is room for.
    said: CK_ULONG,
    length: CK_ULONG,
}

impl Output {
    /// `said` may be more than the room, if the room is enough for everything that the module may write.
    pub fn new(entry: usize, room: usize, said: CK_ULONG, gives_buffer: bool, gives_length: bool) -> Output {
        Output { place: Place::new(room * entry), entry, gives_buffer, gives_length, said, length: said }
    }

    pub fn buffer<T>(&mut self) -> *mut T {
        if self.gives_buffer { self.place.at() } else { ptr::null_mut() }
    }

    pub fn length(&mut self) -> *mut CK_ULONG {
        if self.gives_length { &mut self.length } else { ptr::null_mut() }
    }

    /// What was given, or nothing. `lists`: a function that says how many entries there are, even if they do
    /// not fit.
    pub fn check(&self, rv: CK_RV) -> Told {
        let is_over = rv == CKR_OK && self.gives_buffer && self.gives_length;
        let count = if is_over { self.length as usize } else { 0 };
        let written = self.place.written(count * self.entry).to_vec();
        match rv {
            CKR_OK if self.gives_buffer => assert!(self.length <= self.said),
            CKR_OK => assert!(self.length < 1 << 20, "{} bytes are said to come", self.length),
            CKR_BUFFER_TOO_SMALL => {
                assert!(self.length > self.said && self.gives_buffer && self.gives_length)
            }
            _ => assert_eq!(self.length, self.said, "{rv:#x}"),
        }
        let needed = [CKR_OK, CKR_BUFFER_TOO_SMALL].contains(&rv) && (rv != CKR_OK || !self.gives_buffer);
        Told { written, needed: needed.then_some(self.length as usize) }
    }
}

/// What a call told through a buffer and its length.
pub struct Told {
    pub written: Vec<u8>,
    /// How many entries there will be.
    pub needed: Option<usize>,
}
