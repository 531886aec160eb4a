//! A gateway and its nodes in one process, asked as programs ask it: over HTTP, TLS and gRPC.

mod aws;
mod codes;
mod common;
mod derived;
mod floods;
mod go_programs;
mod golden_files;
mod grpc_core;
mod hostile;
mod kmip;
mod kms;
mod logins;
mod page;
mod programs;
mod sys;
mod tls;
mod tokens;
mod traces;
mod transform;
mod transit;
mod upsert;
mod xks;
