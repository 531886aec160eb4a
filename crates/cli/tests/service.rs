//! The service as a person runs it.
