//! The built library, loaded as a program loads it, over real nodes in this process.
#![allow(unsafe_code, reason = "programs of PKCS#11 call C functions")]

mod answers;
mod common;
mod forks;
mod fuzz;
mod hmac;
mod hostile;
mod keys;
mod known_answers;
mod lengths;
mod life;
mod logs;
mod messages;
mod nonces;
mod objects;
mod programs;
mod remains;
mod states;
mod symbols;
mod troubles;
mod unload;
