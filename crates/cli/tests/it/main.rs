//! The program `polyclave` as a person runs it.

mod active_service;
mod approvals;
mod authenticated_modes;
mod changes;
mod common;
mod demo;
mod envelope;
mod gateway;
mod key_components;
mod key_wrap;
mod kill_all;
mod kill_makings;
mod kills;
mod many_keys;
mod operating;
mod policy;
mod refresh;
mod reshare;
mod reshare_kills;
mod sealed_keys;
mod sealed_secret;
mod service;
mod shipped;
mod tokenize;
mod trust;
mod verified_service;
