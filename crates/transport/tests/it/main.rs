//! Nodes, parties and clients over TLS on this host, one module for each claim.

mod common;

mod authorities;
mod certificates;
mod clients;
mod exchange;
mod faults;
mod gather;
mod mesh;
mod strangers;
