//! Lives of clusters under seeds: `polyclave-simulation --seeds 0..50`.

#[cfg(target_os = "linux")]
mod command;

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<std::process::ExitCode> {
    command::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("lives are simulated on Linux only: the simulator replaces functions of its C library");
}
