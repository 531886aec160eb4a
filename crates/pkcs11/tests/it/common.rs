//! A cluster, copies of the library, and its functions with the types of Rust.

mod children;
mod cluster;
mod module;
mod parameters;
mod session;
mod waiting;

pub use children::*;
pub use cluster::*;
pub use module::*;
pub use parameters::*;
pub(crate) use session::call;
pub use session::*;
pub use waiting::*;
