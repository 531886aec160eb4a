//! Tests of the protocols as their users see them, in one binary: it is linked once.

// What several of them share.
mod cheat;
mod clear;
mod clients;
mod computing;
mod lookups;
mod scrambled;
mod sessions;
mod shamir_cheats;
mod shamir_nodes;

mod demux;
mod fuzz;
mod ghash;
mod mascot;
mod mascot_faults;
mod ot;
mod ot_checked;
mod ot_faults;
mod replicated;
mod replicated_active;
mod replicated_active_faults;
mod replicated_faults;
mod replicated_serving;
mod scheduling;
mod shamir;
mod shamir_active;
mod shamir_active_dealt;
mod shamir_active_faults;
mod shamir_client;
mod shamir_faults;
mod shamir_serving;
mod spdz;
mod spdz_cheaters;
mod spdz_client;
mod spdz_faults;
mod spdz_serving;
mod spdz_stock;
mod spdz_tower;
mod spdz_views;
mod tinyot;
mod tinyot_faults;
mod tinytable;
mod tinytable_cheaters;
mod tinytable_faults;
mod tinytable_serving;
