//! The entries of `shamir` and `shamir-active` in the catalog.

use super::{Inversion, MAX_PARTIES, Preprocessing, ShamirActiveConfig, ShamirConfig, Structure, Tables};
use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::descriptor::{Choice, Descriptor, Serving, Threshold};
use crate::interface::protocol::Adversary;
use crate::interface::stock::Levels;

/// Among an honest majority that follows the protocol.
pub static PASSIVE: Descriptor = Descriptor {
    name: "shamir",
    summary: "Shamir sharing over GF(2^8) among an honest majority",
    adversary: Adversary::Passive,
    parties: 3..=MAX_PARTIES,
    usual_parties: 3,
    threshold: Threshold::Minority,
    options: &[inversion("views"), TABLES],
    takes_gates: false,
    config: |chosen| {
        Ok(AnyProtocolConfig::new(ShamirConfig {
            structure: Structure::new(chosen.parties, chosen.threshold)?,
            inversion: chosen.value("inversion").parse()?,
            tables: chosen.value("tables").parse()?,
        }))
    },
    // With the fewest rounds.
    serving: Some(Serving {
        advice: "any 2T + 1 nodes serve, fast; a node that runs altered code can get at keys",
        stock: Levels::FEW,
        stream_bytes_a_second: Some(3_000_000),
        standby: None,
        with_transfers: None,
        config: |nodes, threshold| {
            Ok(AnyServiceConfig::new(ShamirConfig {
                structure: Structure::new(nodes, threshold)?,
                inversion: Inversion::CarriedSquares,
                tables: Tables::ByLanes,
            }))
        },
    }),
};

/// Fewer than a third of the parties may cheat, and they cannot stop it.
pub static ACTIVE: Descriptor = Descriptor {
    name: ShamirActiveConfig::NAME,
    summary: "Shamir sharing over GF(2^8); fewer than a third of the parties may cheat, and cannot stop it",
    adversary: Adversary::GuaranteedOutput,
    parties: 4..=MAX_PARTIES,
    usual_parties: 4,
    threshold: Threshold::FewerThanAThird,
    options: &[
        inversion("masked-powers"),
        TABLES,
        Choice {
            name: "preprocessing",
            summary: "how triples are made: by prss (pseudorandom sharing), or hyper-invertible (of sharings that are dealt and verified)",
            values: || Preprocessing::ALL.iter().map(|preprocessing| preprocessing.name()).collect(),
            default: Some("prss"),
        },
    ],
    takes_gates: false,
    config: |chosen| {
        let structure = Structure::new(chosen.parties, chosen.threshold)?;
        let config = ShamirActiveConfig::new(
            structure,
            chosen.value("inversion").parse()?,
            chosen.value("tables").parse()?,
        )?;
        Ok(AnyProtocolConfig::new(config.with_preprocessing(chosen.value("preprocessing").parse()?)))
    },
    serving: Some(Serving {
        advice: "fewer than a third of the nodes may cheat, or be gone, and answers come all the same and are right; all nodes make \
                 material ahead, and a request is limited by what is in stock",
        // Enough for a chunk of a sealed file, and for some kilobytes under Triple DES.
        stock: Levels { aes_blocks: 20_480, des_blocks: 1024, circuits: 0 },
        stream_bytes_a_second: None,
        standby: None,
        with_transfers: None,
        config: |nodes, threshold| {
            let structure = Structure::new(nodes, threshold)?;
            Ok(AnyServiceConfig::new(ShamirActiveConfig::new(
                structure,
                Inversion::MaskedPowers,
                Tables::InStock,
            )?))
        },
    }),
};

/// How elements are inverted.
const fn inversion(default: &'static str) -> Choice {
    Choice {
        name: "inversion",
        summary: "how elements of GF(2^8) are inverted",
        values: || Inversion::ALL.iter().map(|inversion| inversion.name()).collect(),
        default: Some(default),
    }
}

const TABLES: Choice = Choice {
    name: "tables",
    summary: "how other tables are looked up: masked, made ahead, or as polynomials of tables as small as those of DES",
    values: || Tables::ALL.iter().map(|tables| tables.name()).collect(),
    default: Some("masked"),
};
