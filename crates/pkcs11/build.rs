//! The library stays in the memory of a program that unloads it: the runtime of Rust, and a thread that still sends a connection's last
//! bytes, must not lose their code.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
