//! The entries of the TinyTable protocols in the catalog.

use polyclave_cipher::Cells;

use super::{Macs, Preprocessing, PreprocessingMethod, ServedConfig, TinyTableConfig};
use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::descriptor::{Choice, Descriptor, Parameters, Serving, Threshold};
use crate::interface::protocol::Adversary;
use crate::interface::release::{Checked, Unverified};
use crate::interface::stock::Levels;
use crate::ot::{self, EXPANSION};
use crate::tinyot::Kappa;
use crate::{Error, Result, spdz};

/// Nothing is verified.
pub static WITHOUT_MACS: Descriptor = Descriptor {
    summary: "scrambled tables between two parties, without MACs",
    adversary: Adversary::Passive,
    ..descriptor("tinytable", |chosen| {
        let config =
            TinyTableConfig::<Unverified<Cells>>::new(Macs::None, preprocessing(Macs::None, chosen)?)?;
        Ok(AnyProtocolConfig::new(config))
    })
};

/// Lookups with MACs of 32 bits.
pub static LOOKUP_32: Descriptor = Descriptor {
    summary: "scrambled tables between two parties; each lookup has a MAC of 32 bits",
    ..descriptor("tinytable-lookup32", |chosen| checked(Macs::Lookup32, chosen))
};

/// Lookups with MACs of 64 bits.
pub static LOOKUP_64: Descriptor = Descriptor {
    summary: "scrambled tables between two parties; each lookup has a MAC of 64 bits",
    ..descriptor("tinytable-lookup64", |chosen| checked(Macs::Lookup64, chosen))
};

/// One linear MAC of 64 bits.
pub static LINEAR_64: Descriptor = Descriptor {
    summary: "scrambled tables between two parties, with linear MACs of 64 bits: the quickest online",
    serving: Some(Serving {
        advice: "both nodes serve, and any cheating ends in a refusal; the nodes make material ahead, faster than under spdz-lt, and \
                 requests take longer",
        stock: Levels::FEW,
        stream_bytes_a_second: None,
        standby: None,
        with_transfers: None,
        config: |_, _| {
            Ok(AnyServiceConfig::new(ServedConfig::new(spdz::Preprocessing::Mascot {
                expansion: EXPANSION,
            })?))
        },
    }),
    ..descriptor("tinytable-linear64", |chosen| checked(Macs::Linear64, chosen))
};

/// Where tables come from.
pub const PREPROCESSING: Choice = Choice {
    name: "preprocessing",
    summary: "where tables come from: authenticated bits from oblivious transfer, by unit vectors (tinyot-demux) or by the table's Boolean \
              circuit (tinyot-circuit)",
    values: || vec!["tinyot-demux", "tinyot-circuit"],
    default: Some("tinyot-demux"),
};

const fn descriptor(name: &'static str, config: fn(&Parameters) -> Result<AnyProtocolConfig>) -> Descriptor {
    Descriptor {
        name,
        summary: "",
        adversary: Adversary::Abort,
        parties: 2..=2,
        usual_parties: 2,
        threshold: Threshold::AllButOne,
        options: &[PREPROCESSING, ot::EXPANSION_CHOICE, Kappa::CHOICE],
        takes_gates: false,
        config,
        serving: None,
    }
}

fn checked(macs: Macs, chosen: &Parameters) -> Result<AnyProtocolConfig> {
    Ok(AnyProtocolConfig::new(TinyTableConfig::<Checked<Cells>>::new(macs, preprocessing(macs, chosen)?)?))
}

fn preprocessing(macs: Macs, chosen: &Parameters) -> Result<Preprocessing> {
    let method = match chosen.value("preprocessing") {
        "tinyot-demux" => PreprocessingMethod::Demux,
        "tinyot-circuit" => PreprocessingMethod::Circuit,
        other => return Err(Error::Misuse(format!("{} has no preprocessing '{other}'", macs.protocol()))),
    };
    let kappa = Kappa::chosen(chosen);
    Ok(Preprocessing::TinyOt { method, kappa, expansion: chosen.parsed("expansion")? })
}
