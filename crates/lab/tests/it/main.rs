//! The program `polyclave-lab` as a person runs it.

mod bench;
mod cheating;
mod circuits;
mod eval;
mod hosts;
mod minimac;
mod parties;
mod reproduce;
mod reproduce_damgard_2016;
mod reproduce_keller;
mod reproduce_pohle_2022;
mod shipped;
