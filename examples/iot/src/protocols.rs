//! From a protocol's name to its code: the one place that knows which protocol runs.

use anyhow::{Result, bail, ensure};
use polyclave_cipher::Cells;
use polyclave_field::Gf2_64;
use polyclave_protocol::garbled::projection::{Labels, ProjectionScheme};
use polyclave_protocol::garbled::{GarbledScheme, Gates};
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::spdz::{self, SpdzScheme};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{self, Macs, TinyTableScheme};

/// The protocols between two servers, by name.
pub const PROTOCOLS: [&str; 6] = [
    "tinytable-linear64",
    "spdz-lt",
    "tinytable",
    "garbled-half",
    "garbled-three-halves",
    "garbled-projection",
];

/// Of oblivious transfer: less is sent with more, and more computed.
const EXPANSION: usize = 4;

/// Work that is the same under every protocol.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn under<S: Scheme>(self, scheme: &S) -> Result<Self::Output>;
}

/// Does it under the protocol of this name. The servers make their material themselves, unless `insecure_dealer`, which
/// each of them could be, stands in.
pub fn run<T: Task>(protocol: &str, insecure_dealer: bool, task: T) -> Result<T::Output> {
    match protocol {
        "tinytable-linear64" => task.under(&tinytable::<Checked<Cells>>(Macs::Linear64, insecure_dealer)?),
        "tinytable" => task.under(&tinytable::<Unverified<Cells>>(Macs::None, insecure_dealer)?),
        "spdz-lt" => {
            let material = match insecure_dealer {
                true => spdz::Preprocessing::InsecureDealer,
                false => spdz::Preprocessing::Mascot { expansion: EXPANSION },
            };
            // Triples of single bits: all tables are those of ANDs.
            let packing = spdz::Packing::of::<Gf2_64>(1)?;
            task.under(&SpdzScheme::<Gf2_64>::new(2, spdz::Way::MaskedTables, material, packing)?)
        }
        "garbled-half" => {
            refuse_dealer(protocol, insecure_dealer)?;
            task.under(&GarbledScheme { gates: Gates::Half, expansion: EXPANSION })
        }
        "garbled-three-halves" => {
            refuse_dealer(protocol, insecure_dealer)?;
            task.under(&GarbledScheme { gates: Gates::ThreeHalves, expansion: EXPANSION })
        }
        "garbled-projection" => {
            refuse_dealer(protocol, insecure_dealer)?;
            task.under(&ProjectionScheme { labels: Labels::Long, expansion: EXPANSION })
        }
        _ => bail!("there is no protocol '{protocol}' here; choose one of {}", PROTOCOLS.join(", ")),
    }
}

fn refuse_dealer(protocol: &str, insecure_dealer: bool) -> Result<()> {
    ensure!(
        !insecure_dealer,
        "{protocol} has no material that a dealer could make; leave --preprocessing away"
    );
    Ok(())
}

fn tinytable<R: tinytable::Worth>(macs: Macs, insecure_dealer: bool) -> Result<TinyTableScheme<R>> {
    let material = match insecure_dealer {
        true => tinytable::Preprocessing::InsecureDealer,
        false => tinytable::Preprocessing::TinyOt {
            way: tinytable::Way::Demux,
            kappa: Kappa::Bits64,
            expansion: EXPANSION,
        },
    };
    Ok(TinyTableScheme::new(macs, material)?)
}
