//! Has the linker export the replaced functions, because some libraries look them up by name when they run.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-rdynamic");
}
