//! Writes the folder `circuits` anew: `cargo run --release -p polyclave-cipher --example bristol_circuits`.
//! With an argument, a folder elsewhere. Tells the size, ANDs and depth of each circuit, and how long it
//! took.

use std::path::PathBuf;
use std::time::Instant;

use polyclave_cipher::bristol::{self, BitOrder};
use polyclave_cipher::{AnyMap, boolean, compile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shipped = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../circuits"));
    let folder = std::env::args_os().nth(1).map_or(shipped, PathBuf::from);
    for (name, make) in boolean::circuits() {
        let start = Instant::now();
        let circuit = make();
        let made = start.elapsed();
        let compiled = compile(&circuit, &AnyMap);
        let ready = start.elapsed();
        let text = bristol::write(&circuit, BitOrder::Numbers)?;
        std::fs::write(folder.join(format!("{name}.txt")), &text)?;
        let (ands, depth, bytes, slots) =
            (circuit.lookups(), circuit.layers(), text.len(), compiled.lane_slots());
        println!("{name}: {ands} ANDs, depth {depth}, {bytes} bytes, {slots} slots a lane");
        println!("    made in {made:?}, compiled in {:?}", ready - made);
    }
    Ok(())
}
