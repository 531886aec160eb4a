//! The library stays in the memory of a program that unloads it (`-z nodelete`). All of its own threads have
//! ended with `C_Finalize`. But the runtime of Rust makes a key of thread-local storage, with a destructor,
//! the first time that a thread is started or named, and never deletes it. Without its code, a thread of the
//! program that has called the library crashes when it ends, and a program that loads it again and again has
//! no such keys left after a thousand times (seen with Rust 1.95 and glibc).
//!
//! Its lists of functions name its own functions (`-Bsymbolic`): all modules of PKCS#11 export the same
//! names, and a program may have loaded another one before.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete,-Bsymbolic");
    }
}
