//! What this crate adds to the catalog: its protocols, and a dealer's material for those of
//! `polyclave-protocol` that can have it.

use std::sync::LazyLock;

use polyclave_cipher::Cells;
use polyclave_protocol::Result;
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::descriptor::{Choice, Descriptor, Threshold};
use polyclave_protocol::protocol::Adversary;
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::spdz::{self, LookupMethod, with_material};
use polyclave_protocol::tinytable::{self, Macs, Preprocessing, TinyTableConfig, Worth};

use crate::dealers::{InsecureDealing, NAME};
use crate::{additive, garbled, lut};

/// From now on the protocols of this crate can be chosen in this process, and `insecure_dealer` as
/// preprocessing of others.
pub fn add_to_catalog() {
    catalog::add(DEALT.iter());
    catalog::add([
        &MINIMAC,
        &lut::OP,
        &lut::SP,
        &garbled::HALF,
        &garbled::THREE_HALVES,
        &garbled::PROJECTION,
    ]);
}

/// From now on the toy protocol can be chosen in this process. It protects nothing, and nodes can serve with
/// it.
pub fn add_toy() {
    catalog::add_unlisted(&additive::DESCRIPTOR);
}

/// Commitments in place of MACs.
static MINIMAC: Descriptor = Descriptor {
    name: "tinytable-minimac",
    summary: "scrambled tables between two parties, with material that grows with the circuit alone: a demonstration of asymptotics",
    adversary: Adversary::Abort,
    parties: 2..=2,
    usual_parties: 2,
    threshold: Threshold::AllButOne,
    options: &[Choice { values: || vec![NAME], default: None, ..tinytable::PREPROCESSING }],
    takes_gates: false,
    config: |_| tables::<Checked<Cells>>(Macs::Minimac),
    serving: None,
};

/// Protocols of the other crate whose preprocessing can be a dealer, too.
static DEALT: LazyLock<Vec<Descriptor>> = LazyLock::new(|| {
    macro_rules! with_dealer {
        ($original:path, $summary:literal, |$chosen:ident| $dealt:expr) => {
            Descriptor {
                options: with_name($original.options, $summary),
                config: |$chosen| {
                    if $chosen.value("preprocessing") == NAME { $dealt } else { ($original.config)($chosen) }
                },
                ..$original.clone()
            }
        };
    }
    macro_rules! spdz {
        ($original:path, $method:ident) => {
            with_dealer!(
                $original,
                "where material comes from: mascot (oblivious transfer), or insecure_dealer, which every party could be: to \
                 measure the online phase alone",
                |chosen| with_material(LookupMethod::$method, chosen, &InsecureDealing)
            )
        };
    }
    macro_rules! tinytable {
        ($original:path, $macs:ident, $outputs:ty) => {
            with_dealer!(
                $original,
                "where tables come from: authenticated bits from oblivious transfer, by unit vectors (tinyot-demux) or by the table's \
                 Boolean circuit (tinyot-circuit), or insecure_dealer, which either party could be: to measure the online phase alone",
                |_chosen| tables::<$outputs>(Macs::$macs)
            )
        };
    }
    vec![
        spdz!(spdz::MASKED_TABLES, MaskedTables),
        spdz!(spdz::BIT_DECOMPOSITION, BitDecomposition),
        spdz!(spdz::RIVAIN_PROUFF, RivainProuff),
        spdz!(spdz::PULKUS_VIVEK, PulkusVivek),
        spdz!(spdz::UNIVARIATE, Univariate),
        spdz!(spdz::TOWER, Tower),
        tinytable!(tinytable::WITHOUT_MACS, None, Unverified<Cells>),
        tinytable!(tinytable::LOOKUP_32, Lookup32, Checked<Cells>),
        tinytable!(tinytable::LOOKUP_64, Lookup64, Checked<Cells>),
        tinytable!(tinytable::LINEAR_64, Linear64, Checked<Cells>),
    ]
});

/// The options of a protocol, with the dealer as one more preprocessing.
fn with_name(options: &'static [Choice], summary: &'static str) -> &'static [Choice] {
    let values = |values: fn() -> Vec<&'static str>| -> fn() -> Vec<&'static str> {
        match values().contains(&"mascot") {
            true => || vec!["mascot", NAME],
            false => || vec!["tinyot-demux", "tinyot-circuit", NAME],
        }
    };
    let dealt = |option: &Choice| match option.name {
        "preprocessing" => Choice { summary, values: values(option.values), ..*option },
        _ => *option,
    };
    options.iter().map(dealt).collect::<Vec<_>>().leak()
}

fn tables<R: Worth>(macs: Macs) -> Result<AnyProtocolConfig> {
    Ok(AnyProtocolConfig::new(TinyTableConfig::<R>::new(macs, Preprocessing::Dealt(&InsecureDealing))?))
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::protocol::ProtocolConfig;

    use super::*;

    #[test]
    fn what_is_added_is_listed_once_behind_the_others_or_in_their_place() {
        let names = || catalog::all().into_iter().map(|protocol| protocol.name).collect::<Vec<_>>();
        let before = names();
        add_to_catalog();
        add_to_catalog();
        add_toy();
        let after = names();
        assert!(after.starts_with(&before), "{after:?}");
        assert_eq!(after.iter().filter(|name| **name == "op-lut").count(), 1);
        assert!(!after.contains(&"additive") && catalog::find("additive").is_some());
    }

    #[test]
    fn a_dealer_is_one_more_preprocessing_and_never_the_default() {
        add_to_catalog();
        for own in DEALT.iter() {
            let protocol = catalog::find(own.name).expect("it is listed");
            let config =
                |chosen: &[(&str, &str)]| protocol.config(None, None, chosen).expect("it can be made");
            assert!(config(&[("preprocessing", NAME)]).needs_dealer(), "{}", own.name);
            assert!(!config(&[]).needs_dealer(), "{}", own.name);
        }
    }
}
