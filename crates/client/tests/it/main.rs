//! Real nodes and clients in one process, one module for each claim. Tests that measure or limit the whole
//! process are programs of their own: `crowds`, `load`, `work`.

#[path = "../common/mod.rs"]
mod common;

mod active;
mod active_faults;
mod amounts;
mod approvals;
mod authenticated_modes;
mod authorities;
mod budgets;
mod check;
mod chosen_blocks;
mod ciphers;
mod components;
mod dealt_masks;
mod derive_apart;
mod derive_hmac;
mod envelope;
mod equivocation;
mod few_rounds;
mod four;
mod gcm_siv;
mod hmac;
mod kdf;
mod key_blocks;
mod key_copy;
mod key_derive;
mod key_wrap;
mod left_out;
mod listing;
mod making;
mod misbehaviour;
mod modes;
mod new_protocol;
mod nodes;
mod on_behalf;
mod payments;
mod policy;
mod random;
mod refusals;
mod replicated;
mod reshare;
mod rewrap;
mod rollback;
mod sealed_bound;
mod sealed_keys;
mod session_keys;
mod standby;
mod tampering;
mod tokenize;
mod traces;
mod versions;
mod whole_life;
mod words;
mod xaes;
