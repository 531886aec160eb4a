//! Options that several commands share, and the way from a protocol's name to its code.

use anyhow::{Result, bail, ensure};
use clap::Args;
use polyclave_cipher::{Cells, Cipher, catalog};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::garbled::projection::{Labels, ProjectionScheme};
use polyclave_protocol::garbled::{GarbledScheme, Gates};
use polyclave_protocol::ot::EXPANSION;
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::shamir::{self, Inversion, ShamirActiveScheme, ShamirScheme, Structure, Tables};
use polyclave_protocol::spdz::{Packing, Preprocessing, SpdzScheme, Way};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{self, Macs, TinyTableScheme};

/// Which protocol, and among whom.
#[derive(Args, Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ProtocolOptions {
    /// cleartext, shamir (an honest majority, passive), shamir-active (fewer than a third cheat), or authenticated sharing against all parties but one: spdz-lt
    /// (masked tables), spdz-bd and spdz-rp (inversion by bit decomposition, by Rivain-Prouff), spdz-pv (DES by
    /// Pulkus-Vivek), spdz-raw (DES by powers), or scrambled tables between two parties: tinytable (passive),
    /// tinytable-lookup32, tinytable-lookup64, tinytable-linear64 (one of the two may cheat); tinytable-minimac is the
    /// like with material that grows with the circuit alone, a demonstration of asymptotics: its tables and commitments to them come
    /// from insecure_dealer only; or garbled circuits between two parties, passive: garbled-half (half gates),
    /// garbled-three-halves (three halves: fewer bytes, more hashes), garbled-projection (wires of several bits and projection gates)
    #[arg(long, value_name = "P", default_value = "shamir")]
    pub protocol: String,

    /// Number of parties [default: the least that the protocol allows]
    #[arg(long, value_name = "N")]
    pub parties: Option<usize>,

    /// Parties that together learn nothing [default: the most the protocol allows]
    #[arg(long, value_name = "T")]
    pub threshold: Option<usize>,

    /// How shamir and shamir-active invert in GF(2^8): standard, shortest, shortest-least-rounds, least-rounds, masking,
    /// masked-exponentiation, viff-11, viff-9, views, carried-squares, masked-powers [default: views; masked-powers for
    /// shamir-active]
    #[arg(long, value_name = "V")]
    pub inversion: Option<String>,

    /// How shamir and shamir-active look up other tables: masked (made ahead), polynomial (of tables as small as those of DES)
    #[arg(long, value_name = "W", default_value = "masked")]
    pub tables: String,

    /// Where material comes from [default: the protocol's own, made by the parties]: for shamir-active triples by prss (pseudorandom
    /// sharing) or hyper-invertible (of sharings that are dealt and verified); for spdz mascot (from oblivious transfer);
    /// for tinytable tinyot-demux or tinyot-circuit (authenticated bits from oblivious transfer, tables by unit vectors or by
    /// the table's Boolean circuit); for these two insecure_dealer (every party could be it: to measure the online phase alone)
    #[arg(long, value_name = "M")]
    pub preprocessing: Option<String>,

    /// Of oblivious transfer: with more, less is sent and more computed; 1 is the classic extension
    #[arg(long, value_name = "F", default_value = "4", value_parser = ["1", "2", "4", "8"])]
    pub expansion: String,

    /// For tinytable: a cheater learns something of a batch of triples with probability 2^-40 or 2^-64
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = ["40", "64"])]
    pub kappa: String,

    /// For garbled-projection: bytes of a label, 17 (128 bits and the colour) or 16 (120 bits and the colour, as in the poster)
    #[arg(long, value_name = "BYTES", default_value = "17", value_parser = ["17", "16"])]
    pub label_bytes: String,

    /// For spdz: entries of a masked table's index that are multiplied at once, 1, 8, 40, 64 or 128. MACs are in
    /// GF(2^40), GF(2^128), or else GF(2^64); spdz-raw has GF(2^42)
    #[arg(long, value_name = "K", default_value_t = 64)]
    pub demux_field: usize,
}

/// Work that runs the same under every protocol.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Without any protocol, in the clear.
    fn cleartext(self) -> Result<Self::Output>;

    /// Under a protocol.
    fn under<S: Scheme>(self, scheme: &S) -> Result<Self::Output>;
}

impl ProtocolOptions {
    /// A protocol among so many parties, all else as it is by default.
    pub fn named(protocol: &str, parties: usize) -> ProtocolOptions {
        ProtocolOptions {
            protocol: protocol.into(),
            parties: Some(parties),
            threshold: None,
            inversion: None,
            tables: "masked".into(),
            preprocessing: None,
            expansion: EXPANSION.to_string(),
            kappa: "64".into(),
            label_bytes: "17".into(),
            demux_field: 64,
        }
    }

    /// Runs a task under the protocol of these options.
    pub fn run<T: Task>(&self, task: T) -> Result<T::Output> {
        match self.protocol.to_ascii_lowercase().as_str() {
            "cleartext" => task.cleartext(),
            "shamir" => {
                let structure = match self.threshold {
                    Some(t) => Structure::new(self.parties(), t)?,
                    None => Structure::with_largest_threshold(self.parties())?,
                };
                let inversion: Inversion = self.inversion().parse()?;
                let tables: Tables = self.tables.parse()?;
                task.under(&ShamirScheme { structure, inversion, tables })
            }
            ShamirActiveScheme::NAME => {
                let structure = match self.threshold {
                    Some(t) => Structure::new(self.parties(), t)?,
                    None => ShamirActiveScheme::with_largest_threshold(self.parties())?,
                };
                let (inversion, tables) = (self.inversion().parse()?, self.tables.parse()?);
                let scheme = ShamirActiveScheme::new(structure, inversion, tables)?;
                task.under(&scheme.with_preprocessing(self.preprocessing().parse()?))
            }
            ProjectionScheme::NAME => {
                self.refuse_unfit_for_garbling(ProjectionScheme::NAME)?;
                let labels = if self.label_bytes == "16" { Labels::Short } else { Labels::Long };
                task.under(&ProjectionScheme { labels, expansion: self.expansion.parse()? })
            }
            name => {
                let way = Way::ALL.into_iter().find(|way| way.name() == name);
                let macs = Macs::ALL.into_iter().find(|macs| macs.protocol() == name);
                let gates = Gates::ALL.into_iter().find(|gates| gates.protocol() == name);
                match (way, macs, gates) {
                    (Some(way), ..) => self.run_spdz(way, task),
                    (_, Some(macs), _) => self.run_tinytable(macs, task),
                    (.., Some(gates)) => self.run_garbled(gates, task),
                    _ => bail!("there is no protocol '{name}' in this version; choose one of {}", names()),
                }
            }
        }
    }

    fn run_spdz<T: Task>(&self, way: Way, task: T) -> Result<T::Output> {
        let parties = self.parties();
        ensure!(
            self.threshold.is_none_or(|t| t + 1 == parties),
            "{} protects against all parties but one; leave --threshold away",
            way.name()
        );
        match (way, self.demux_field) {
            (Way::Univariate, _) => task.under(&self.spdz::<Gf2_42>(way, Gf2_42::BITS as usize)?),
            (_, 40) => task.under(&self.spdz::<Gf2_40>(way, 40)?),
            (_, 128) => task.under(&self.spdz::<Gf2_128>(way, 128)?),
            (_, k) => task.under(&self.spdz::<Gf2_64>(way, k)?),
        }
    }

    fn spdz<F: MacField>(&self, way: Way, k: usize) -> Result<SpdzScheme<F>> {
        let preprocessing = match self.preprocessing() {
            "mascot" => Preprocessing::Mascot { expansion: self.expansion.parse()? },
            "insecure_dealer" => Preprocessing::InsecureDealer,
            other => {
                bail!("{} has no preprocessing '{other}'; choose mascot or insecure_dealer", way.name())
            }
        };
        Ok(SpdzScheme::new(self.parties(), way, preprocessing, Packing::of::<F>(k)?)?)
    }

    fn run_tinytable<T: Task>(&self, macs: Macs, task: T) -> Result<T::Output> {
        let name = macs.protocol();
        ensure!(
            self.parties() == 2 && self.threshold.is_none_or(|t| t == 1),
            "{name} runs between two parties; leave --parties and --threshold away"
        );
        let kappa = if self.kappa == "40" { Kappa::Bits40 } else { Kappa::Bits64 };
        let expansion = self.expansion.parse()?;
        let way = [tinytable::Way::Demux, tinytable::Way::Circuit];
        let way = way.into_iter().find(|way| way.name() == self.preprocessing());
        let preprocessing = match (way, self.preprocessing()) {
            (Some(way), _) => tinytable::Preprocessing::TinyOt { way, kappa, expansion },
            (_, "insecure_dealer") => tinytable::Preprocessing::InsecureDealer,
            (_, other) => bail!(
                "{name} has no preprocessing '{other}'; choose tinyot-demux, tinyot-circuit or insecure_dealer"
            ),
        };
        match macs {
            Macs::None => task.under(&TinyTableScheme::<Unverified<Cells>>::new(macs, preprocessing)?),
            _ => task.under(&TinyTableScheme::<Checked<Cells>>::new(macs, preprocessing)?),
        }
    }

    fn run_garbled<T: Task>(&self, gates: Gates, task: T) -> Result<T::Output> {
        self.refuse_unfit_for_garbling(gates.protocol())?;
        task.under(&GarbledScheme { gates, expansion: self.expansion.parse()? })
    }

    fn refuse_unfit_for_garbling(&self, name: &str) -> Result<()> {
        ensure!(
            self.parties() == 2 && self.threshold.is_none_or(|t| t == 1),
            "{name} runs between two parties; leave --parties and --threshold away"
        );
        ensure!(self.preprocessing.is_none(), "{name} has no material; leave --preprocessing away");
        Ok(())
    }

    /// Where material comes from: as chosen, or the protocol's own.
    pub fn preprocessing(&self) -> &str {
        let own = match self.is_spdz() {
            true => "mascot",
            false if self.is_shamir_active() => shamir::Preprocessing::default().name(),
            false => "tinyot-demux",
        };
        self.preprocessing.as_deref().unwrap_or(own)
    }

    /// Number of parties.
    pub fn parties(&self) -> usize {
        let of_two = self.is_spdz() || self.is_tinytable() || self.is_garbled();
        self.parties.unwrap_or(match of_two {
            true => 2,
            false if self.is_shamir_active() => 4,
            false => 3,
        })
    }

    /// How elements are inverted: as chosen, or as is quickest.
    pub fn inversion(&self) -> &str {
        let own = if self.is_shamir_active() { Inversion::MaskedPowers } else { Inversion::Views };
        self.inversion.as_deref().unwrap_or(own.name())
    }

    /// Whether the protocol is the one of Shamir sharing in which parties may cheat.
    pub fn is_shamir_active(&self) -> bool {
        self.protocol.eq_ignore_ascii_case(ShamirActiveScheme::NAME)
    }

    /// Whether the protocol is one of garbled circuits.
    pub fn is_garbled(&self) -> bool {
        self.is_projection()
            || Gates::ALL.iter().any(|gates| gates.protocol().eq_ignore_ascii_case(&self.protocol))
    }

    /// Whether it is the one with wires of several bits.
    pub fn is_projection(&self) -> bool {
        self.protocol.eq_ignore_ascii_case(ProjectionScheme::NAME)
    }

    /// Whether the protocol is one of scrambled tables.
    pub fn is_tinytable(&self) -> bool {
        Macs::ALL.iter().any(|macs| macs.protocol().eq_ignore_ascii_case(&self.protocol))
    }

    /// Whether the protocol is one of authenticated sharing.
    pub fn is_spdz(&self) -> bool {
        Way::ALL.iter().any(|way| way.name().eq_ignore_ascii_case(&self.protocol))
    }
}

/// All protocols, to be listed.
fn names() -> String {
    let (spdz, tinytable) = (Way::ALL.map(Way::name), Macs::ALL.map(Macs::protocol));
    let of_two = tinytable.into_iter().chain(Gates::ALL.map(Gates::protocol)).chain([ProjectionScheme::NAME]);
    ["cleartext", "shamir", ShamirActiveScheme::NAME]
        .into_iter()
        .chain(spdz)
        .chain(of_two)
        .collect::<Vec<_>>()
        .join(", ")
}

impl ProtocolOptions {
    /// Refuses options under which parties could not start, before any is started.
    pub fn check_parties(&self) -> Result<()> {
        struct HasParties;
        impl Task for HasParties {
            type Output = ();
            fn cleartext(self) -> Result<()> {
                bail!("cleartext has no parties; choose another protocol")
            }
            fn under<S: Scheme>(self, _: &S) -> Result<()> {
                Ok(())
            }
        }
        self.run(HasParties)
    }
}

/// The cipher of a name, or an error that lists the names.
pub fn cipher(name: &str) -> Result<Cipher> {
    match catalog::find(name) {
        Some(cipher) => Ok(cipher),
        None => {
            let names: Vec<String> = catalog::all().into_iter().map(|c| c.name).collect();
            bail!("there is no cipher '{name}'; choose one of {}", names.join(", "))
        }
    }
}

/// Bytes from hexadecimal, with an error that says what was wrong.
pub fn hexadecimal(what: &str, text: &str) -> Result<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if let Some((at, c)) = digits.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit()) {
        bail!("{what} has '{c}' at position {}, which is no hex digit", at + 1);
    }
    let count = digits.len();
    ensure!(count.is_multiple_of(2), "{what} has {count} hex digits; two are needed for every byte");
    Ok(hex::decode(digits)?)
}
