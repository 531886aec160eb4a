//! The library stays in the memory of a program that unloads it: the runtime of Rust must not lose its code, for example when a thread of
//! the program ends later that once called the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
