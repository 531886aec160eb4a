//! One call: a function of the lists, with arguments that an input's bytes decide. What each function is
//! given is in a file of its subject.

use std::ptr;

use cryptoki_sys::*;

use super::arguments::{Choice, Memory};
use super::memory::{Output, Place, Told};
use super::{Kind, World};

/// What one sequence of calls knows.
pub struct Sequence<'w> {
    pub world: &'w World,
    /// Handles of sessions: those of nobody, and those that the sequence opened.
    pub sessions: Vec<CK_SESSION_HANDLE>,
    /// Objects that the sequence made.
    pub made: Vec<CK_OBJECT_HANDLE>,
    /// Which kind of function was called last.
    group: usize,
    /// What the last call gave, and how many bytes it said there would be.
    last: Told,
}

/// More bytes than any function gives for what is given to it here.
const ENOUGH: usize = 2048;

/// A call: the function's name, its kind, and what it answered.
type Called = (&'static str, Kind, CK_RV);

/// Calls a function and says its name.
macro_rules! called {
    ($self:expr, $kind:ident, $function:ident($($argument:expr),* $(,)?)) => {
        (stringify!($function), Kind::$kind, call!($self.world.module, $function($($argument),*)))
    };
}

mod data;
mod keys;
mod library;
mod messages;
mod objects;
mod rest;
mod sessions;

impl<'w> Sequence<'w> {
    pub fn new(world: &'w World) -> Sequence<'w> {
        let last = Told { written: Vec::new(), needed: None };
        Sequence { world, sessions: vec![0, CK_ULONG::MAX], made: Vec::new(), group: 0, last }
    }

    fn session(&self, choice: &mut Choice) -> CK_SESSION_HANDLE {
        match choice.below(16) {
            0 => choice.of(&self.sessions),
            1 => choice.below(256) as CK_SESSION_HANDLE,
            _ => self.sessions.last().copied().unwrap_or(0),
        }
    }

    /// Mostly a key that stays, sometimes one that the sequence made, sometimes none.
    fn key(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        let keys = self.world.keys();
        match choice.below(16) {
            0 => choice.of(&[0, CK_ULONG::MAX, 1 << 40]),
            1 => choice.below(256) as CK_OBJECT_HANDLE,
            2..8 if !self.made.is_empty() => choice.of(&self.made),
            _ => choice.of(&keys),
        }
    }

    /// Mostly the key of AES for data and codes.
    fn data_key(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        if choice.below(3) == 0 { self.key(choice) } else { self.world.keys()[0] }
    }

    /// Mostly the key that wraps, unwraps and derives.
    fn kek(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        if choice.below(4) == 0 { self.key(choice) } else { self.world.keys()[1] }
    }

    /// What may be changed or deleted: seldom a key that stays, since then it has to be made again.
    fn victim(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        match self.made.is_empty() {
            _ if choice.rarely(128) => self.key(choice),
            true => choice.of(&[0, CK_ULONG::MAX]),
            false => choice.of(&self.made),
        }
    }

    fn output(&self, choice: &mut Choice, entry: usize) -> Output {
        let (gives_buffer, gives_length) = (choice.below(8) != 7, !choice.rarely(32));
        if choice.rarely(24) {
            let said = choice.of(&[CK_ULONG::MAX, 1 << 63, 1 << 32]);
            return Output::new(entry, ENOUGH, said, gives_buffer, gives_length);
        }
        let room = match self.last.needed {
            Some(needed) if choice.below(2) == 0 => (needed + choice.below(3)).saturating_sub(1),
            _ => choice.of(&[64, 128, 16, 32, 0, 1, 7, 8, 12, 15, 17, 28, 31, 33, 40, 80, 256, ENOUGH]),
        };
        Output::new(entry, room, room as CK_ULONG, gives_buffer, gives_length)
    }

    /// Calls what writes bytes, or entries of a list.
    fn giving(
        &mut self,
        choice: &mut Choice,
        entry: usize,
        function: impl FnOnce(&Self, &mut Output, &mut Choice) -> Called,
    ) -> Called {
        let mut output = self.output(choice, entry);
        let (name, kind, rv) = function(self, &mut output, choice);
        self.last = output.check(rv);
        (name, kind, rv)
    }

    /// Calls what writes a structure.
    fn filling<T>(
        &mut self,
        choice: &mut Choice,
        function: impl FnOnce(&Self, *mut T, &mut Choice) -> Called,
    ) -> Called {
        let mut place = Place::new(size_of::<T>());
        let at = if choice.rarely(16) { ptr::null_mut() } else { place.at() };
        let called = function(self, at, choice);
        place.written(if called.2 == CKR_OK { size_of::<T>() } else { 0 });
        called
    }

    /// Calls what makes an object, or opens a session.
    fn naming(
        &mut self,
        choice: &mut Choice,
        function: impl FnOnce(&Self, *mut CK_ULONG, &mut Choice) -> Called,
    ) -> (Called, Option<CK_ULONG>) {
        let mut place = Place::new(size_of::<CK_ULONG>());
        let at: *mut CK_ULONG = if choice.rarely(24) { ptr::null_mut() } else { place.at() };
        if !at.is_null() {
            unsafe { at.write_unaligned(0) };
        }
        let called = function(self, at, choice);
        let written = place.written(size_of::<CK_ULONG>());
        let handle = written.try_into().map_or(0, CK_ULONG::from_ne_bytes);
        if !at.is_null() {
            assert_eq!(handle != 0, called.2 == CKR_OK, "{}: {:#x}", called.0, called.2);
        }
        (called, (called.2 == CKR_OK).then_some(handle))
    }

    /// Calls one function.
    pub fn step(&mut self, choice: &mut Choice) -> Called {
        if choice.below(4) == 0 {
            self.group = choice.below(12);
        }
        let mut memory = Memory::default();
        match self.group {
            0 => self.of_library(choice),
            1 => self.of_session(choice, &mut memory),
            2 | 3 => self.of_cipher(choice, &mut memory, true),
            4 | 5 => self.of_cipher(choice, &mut memory, false),
            6 => self.of_code(choice, &mut memory),
            7 => self.of_digest(choice, &mut memory),
            8 => self.of_objects(choice, &mut memory),
            9 => self.of_keys(choice, &mut memory),
            10 => self.of_messages(choice, &mut memory),
            _ => self.of_rest(choice, &mut memory),
        }
    }
}
