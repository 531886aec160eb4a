//! What every protocol implements and every caller uses: the network, sessions, and what nodes need to serve.
//! Nothing here imports a protocol.
//!
//! | module | what |
//! |---|---|
//! | [`net`] | the channels between the parties |
//! | [`session`] | the hello round: the parties agree on what they run |
//! | [`protocol`] | a protocol with its parameters, and one party's session |
//! | [`dealt`] | masks that clients deal |
//! | [`service`], [`elements`], [`stock`] | what nodes need beyond that: stored values, clients, elements of GF(2^128), material |
//! | [`any`] | the same for a protocol that is chosen at run time |
//! | [`descriptor`] | a protocol, as users choose it |
//! | [`release`], [`tally`] | revealed values, and counts |

pub mod any;
pub mod dealt;
pub mod descriptor;
pub mod elements;
pub mod masking;
pub mod net;
pub mod protocol;
pub mod release;
pub mod service;
pub mod session;
pub mod stock;
pub mod tally;
