//! The files that a person keeps: who is where, who may do what.
