//! The entries of the `spdz` protocols in the catalog.

use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};

use super::config::MAX_PARTIES;
use super::garbled::of_two;
use super::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use crate::Result;
use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::descriptor::{Choice, Descriptor, Parameters, Serving, Threshold};
use crate::interface::protocol::Adversary;
use crate::interface::stock::{Levels, Transfers};
use crate::ot::{self, EXPANSION, Means};
use crate::tinyot::Kappa;

/// All tables masked.
pub static MASKED_TABLES: Descriptor = Descriptor {
    summary: "authenticated sharing; tables are looked up in masked tables",
    serving: Some(Serving {
        advice: "all nodes serve, and any cheating ends in a refusal; the nodes make material ahead, and a request that takes more than \
                 is in stock waits for it",
        stock: Levels::FEW,
        stream_bytes_a_second: Some(350),
        standby: None,
        with_transfers: None,
        config: |nodes, _| {
            let material = Preprocessing::Mascot { expansion: EXPANSION };
            Ok(AnyServiceConfig::new(quickest(LookupMethod::MaskedTables, nodes, material)?))
        },
    }),
    ..descriptor("spdz-lt", |chosen| config(LookupMethod::MaskedTables, chosen))
};

/// Inversion by bit decomposition.
pub static BIT_DECOMPOSITION: Descriptor = Descriptor {
    summary: "authenticated sharing; inversion by bit decomposition",
    ..descriptor("spdz-bd", |chosen| config(LookupMethod::BitDecomposition, chosen))
};

/// Inversion by four products.
pub static RIVAIN_PROUFF: Descriptor = Descriptor {
    summary: "authenticated sharing; inversion by the four products of Rivain and Prouff",
    ..descriptor("spdz-rp", |chosen| config(LookupMethod::RivainProuff, chosen))
};

/// Small tables by three products.
pub static PULKUS_VIVEK: Descriptor = Descriptor {
    summary: "authenticated sharing; tables of DES by the three products of Pulkus and Vivek",
    ..descriptor("spdz-pv", |chosen| config(LookupMethod::PulkusVivek, chosen))
};

/// Small tables as polynomials.
pub static UNIVARIATE: Descriptor = Descriptor {
    summary: "authenticated sharing; tables of DES as polynomials over GF(2^6), power by power",
    options: &[PREPROCESSING, ot::EXPANSION_CHOICE],
    ..descriptor("spdz-raw", |chosen| config(LookupMethod::Univariate, chosen))
};

/// Inversion by a tower of fields.
pub static TOWER: Descriptor = Descriptor {
    summary: "authenticated sharing; inversion by a tower of fields, 26 bits opened a lookup",
    options: &[PREPROCESSING, ot::EXPANSION_CHOICE, ot::TRANSFERS_CHOICE, Kappa::CHOICE],
    serving: Some(Serving {
        advice: "all nodes serve, and any cheating ends in a refusal; material for AES is made much faster than under spdz-lt, and a \
                 request that takes more than is in stock waits for it",
        // 64 KiB of AES at once; records for them take 107 MB. Circuits are for two nodes.
        stock: Levels { aes_blocks: 4096, des_blocks: 64, circuits: 32 },
        stream_bytes_a_second: Some(20_000),
        standby: None,
        with_transfers: Some(tower_of_nodes),
        config: |nodes, _| tower_of_nodes(nodes, Transfers::Quick),
    }),
    ..descriptor("spdz-tower", |chosen| config(LookupMethod::Tower, chosen))
};

fn tower_of_nodes(nodes: usize, transfers: Transfers) -> Result<AnyServiceConfig> {
    let Means { expansion, silent } = transfers.into();
    let rounds = quickest(LookupMethod::Tower, nodes, Preprocessing::Mascot { expansion })?;
    let rounds = rounds.with_silent_transfers(silent);
    if nodes == 2 { of_two(rounds) } else { Ok(AnyServiceConfig::new(rounds)) }
}

/// With masked tables from the quickest material for this number of parties.
fn quickest(
    method: LookupMethod,
    parties: usize,
    material: Preprocessing<Gf2_64>,
) -> Result<SpdzConfig<Gf2_64>> {
    let packing = if parties == 2 { Packing::Rotation } else { Packing::of::<Gf2_64>(64)? };
    SpdzConfig::new(parties, method, material, packing)
}

/// Where material comes from.
pub const PREPROCESSING: Choice = Choice {
    name: "preprocessing",
    summary: "where material comes from: mascot (oblivious transfer)",
    values: || vec!["mascot"],
    default: Some("mascot"),
};

const DEMUX_FIELD: Choice = Choice {
    name: "demux-field",
    summary: "entries of a masked table's index that are multiplied at once; MACs are in GF(2^40), GF(2^128), or else GF(2^64); \
              rotation: two parties make unit vectors by products by rotation instead, the fastest",
    values: || vec!["1", "8", "40", "64", "128", "rotation"],
    default: Some("64"),
};

const fn descriptor(name: &'static str, config: fn(&Parameters) -> Result<AnyProtocolConfig>) -> Descriptor {
    Descriptor {
        name,
        summary: "",
        adversary: Adversary::Abort,
        parties: 2..=MAX_PARTIES,
        usual_parties: 2,
        threshold: Threshold::AllButOne,
        options: &[PREPROCESSING, ot::EXPANSION_CHOICE, DEMUX_FIELD],
        takes_gates: false,
        config,
        serving: None,
    }
}

fn config(method: LookupMethod, chosen: &Parameters) -> Result<AnyProtocolConfig> {
    with_material(method, chosen, &FromTransfers { expansion: chosen.parsed("expansion")? })
}

/// Material of one kind, for every field of MACs.
pub trait Material: Sync {
    /// It over one of the fields.
    fn over<F: MacField>(&self) -> Preprocessing<F>;
}

/// From oblivious transfer.
struct FromTransfers {
    expansion: usize,
}

impl Material for FromTransfers {
    fn over<F: MacField>(&self) -> Preprocessing<F> {
        Preprocessing::Mascot { expansion: self.expansion }
    }
}

/// The protocol that looks up tables by this method, with the values that were chosen for its options, and
/// with this material.
pub fn with_material(
    method: LookupMethod,
    chosen: &Parameters,
    material: &impl Material,
) -> Result<AnyProtocolConfig> {
    match method {
        LookupMethod::Tower => {
            let config = quickest(method, chosen.parties, material.over())?;
            let silent = chosen.value(ot::TRANSFERS_CHOICE.name) == "silent";
            let config = config.with_kappa(Kappa::chosen(chosen)).with_silent_transfers(silent);
            Ok(AnyProtocolConfig::new(config))
        }
        LookupMethod::Univariate => with::<Gf2_42>(method, chosen, material, Gf2_42::BITS as usize),
        _ if chosen.value("demux-field") == "rotation" => {
            let config =
                SpdzConfig::<Gf2_64>::new(chosen.parties, method, material.over(), Packing::Rotation)?;
            Ok(AnyProtocolConfig::new(config))
        }
        _ => match chosen.parsed("demux-field")? {
            40 => with::<Gf2_40>(method, chosen, material, 40),
            128 => with::<Gf2_128>(method, chosen, material, 128),
            k => with::<Gf2_64>(method, chosen, material, k),
        },
    }
}

fn with<F: MacField>(
    method: LookupMethod,
    chosen: &Parameters,
    material: &impl Material,
    k: usize,
) -> Result<AnyProtocolConfig> {
    Ok(AnyProtocolConfig::new(SpdzConfig::<F>::new(
        chosen.parties,
        method,
        material.over(),
        Packing::of::<F>(k)?,
    )?))
}
