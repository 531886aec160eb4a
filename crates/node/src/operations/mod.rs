//! What a node does for each operation, in the file of its family: it judges the operation alone
//! ([`Operation::plan`]), and runs what it has planned with the other nodes ([`Planned`]).
//!
//! A new operation is a type in `api/src/operations/` and a file, or a place in a file, here.

mod check;
mod combining;
mod components;
mod derive;
mod encrypt;
mod import;
mod keep;
mod key_life;
mod key_make;
mod new_key;
mod observe;
mod pay;
mod refusals;
mod sealed;
mod use_key;
mod versions;
mod wrap;

use polyclave_api as api;

use crate::requests::plan::Operation;

/// What a node does for an operation.
pub(crate) fn of(operation: &api::Operation) -> &dyn Operation {
    match operation {
        api::Operation::Status => &api::operations::Status,
        api::Operation::Report => &api::operations::Report,
        api::Operation::List(operation) => operation,
        api::Operation::Show(operation) => operation,
        api::Operation::Random(operation) => operation,
        api::Operation::Generate(operation) => operation,
        api::Operation::Rotate(operation) => operation,
        api::Operation::Copy(operation) => operation,
        api::Operation::Import(operation) => operation,
        api::Operation::ImportComponent(operation) => operation,
        api::Operation::ImportSealed(operation) => operation.as_ref(),
        api::Operation::Combine(operation) => operation,
        api::Operation::Delete(operation) => operation,
        api::Operation::Retire(operation) => operation,
        api::Operation::Configure(operation) => operation,
        api::Operation::Describe(operation) => operation,
        api::Operation::Use(operation) => operation,
        api::Operation::Derive(operation) => operation,
        api::Operation::Kdf(operation) => operation,
        api::Operation::Wrap(operation) => operation,
        api::Operation::WrapBlock(operation) => operation,
        api::Operation::Unwrap(operation) => operation,
        api::Operation::UnwrapBlock(operation) => operation,
        api::Operation::Rewrap(operation) => operation,
        api::Operation::Check(operation) => operation,
        api::Operation::Pay(operation) => operation,
    }
}
