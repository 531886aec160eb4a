//! Runs that count operations: two parties on threads of this process, with tables from a dealer.

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{AnyMap, Cells, cleartext, compile};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::Tally;
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{Macs, Preprocessing, PreprocessingMethod, TinyTableConfig, Worth};
use polyclave_protocol::{Error, Party, Result as Outcome};
use polyclave_protocol_lab::dealers::InsecureDealing;

use super::{Row, Version};
use crate::reproduce::measure::{evaluations_under, in_series, random_inputs};

const PARTIES: usize = 2;

/// The cost of one evaluation, the same for both parties.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Bytes of tables that a party held for each block, before it read any.
    pub table_bytes: f64,
    /// Tables read for each block.
    pub tables: f64,
    /// Rounds of lookups, and of checks before and after the result was opened.
    pub rounds: f64,
}

/// Encrypts random blocks and counts. As in the paper, one party gives the message and the other the expanded
/// key, and both learn the ciphertext.
pub fn evaluation(row: Row, version: Version) -> Result<Taken> {
    match row.macs {
        Macs::None => evaluate_as::<Unverified<Cells>>(row.macs, version),
        _ => evaluate_as::<Checked<Cells>>(row.macs, version),
    }
}

fn evaluate_as<R: Worth>(macs: Macs, version: Version) -> Result<Taken> {
    let config = TinyTableConfig::<R>::new(macs, Preprocessing::Dealt(&InsecureDealing))?;
    let (circuit, lanes) = (version.circuit()?, version.lanes());
    let inputs = random_inputs(&circuit, lanes)?;
    let party = |net: &mut dyn Net| -> Outcome<(Tally, usize, Cells)> {
        let terms = config.handshake(HandshakeParameters::new(PARTIES)).with("circuit", &circuit.digest());
        let stream = hello(&terms, net)?.stream();
        let mut protocol = config.join(&config.setup(net)?, stream, net.members())?;
        let compiled = compile(&circuit, &protocol);
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let table_bytes = batch.table_bytes();
        let me = net.me();
        let given = |(owner, cells)| if owner == me { Input::Mine(cells) } else { Input::From(owner) };
        let given: Vec<_> = Party::all(PARTIES).zip(&inputs).map(given).collect();
        let outputs = evaluate(&mut protocol, &compiled, lanes, &given, batch, net)?;
        let output = release(&mut protocol, &outputs[0], Owner::All, net)?;
        let output = output.ok_or_else(|| Error::misuse("an output for all did not come"))?;
        Ok((protocol.tally(), table_bytes, output.accept()))
    };
    let counted = run_parties(PARTIES, party).into_iter().collect::<Outcome<Vec<_>>>()?;
    let (tally, table_bytes, output) = counted.first().context("there are no parties")?;
    ensure!(counted.iter().all(|other| *other == counted[0]), "the parties count differently");
    let right = cleartext::run(&compile(&circuit, &AnyMap), lanes, &inputs)?;
    ensure!(right[0] == *output, "{} gives another output than in the clear", config.name());
    Ok(Taken {
        table_bytes: *table_bytes as f64 / lanes as f64,
        tables: tally.online.openings as f64 / lanes as f64,
        rounds: tally.online.rounds as f64,
    })
}

/// Products of bits that the parties needed to make one table of the S-box.
pub fn products_of_s_box(way: PreprocessingMethod) -> Result<f64> {
    let preprocessing = Preprocessing::TinyOt { method: way, kappa: Kappa::Bits40, expansion: 1 };
    let config = TinyTableConfig::<Unverified<Cells>>::new(Macs::None, preprocessing)?;
    let one = in_series(&polyclave_cipher::aes::s_box(), 1);
    Ok(evaluations_under(&AnyProtocolConfig::new(config), &one, 1, 1)?.triples())
}
