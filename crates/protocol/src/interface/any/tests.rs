//! Every protocol gives the same results and counts through handles as with its own types.

use polyclave_cipher::catalog;
use polyclave_field::Gf2_64;

use super::AnyProtocolConfig;
use crate::interface::protocol::ProtocolConfig;
use crate::interface::service::ServiceConfig;
use crate::ot::EXPANSION;
use crate::shamir::{Inversion, ShamirConfig, Structure, Tables};
use crate::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use crate::testkit::conformance::check_circuit;

fn both<S>(typed: impl Fn() -> S)
where
    S: ProtocolConfig<Setup: 'static, Session: super::Erasable> + Send + 'static,
{
    let cipher = catalog::find("aes-128").expect("it is in the catalog");
    let circuit = cipher.circuit(polyclave_cipher::Direction::Encrypt).expect("it encrypts");
    let own = check_circuit(&typed(), &circuit, 3, 1);
    let erased = check_circuit(&AnyProtocolConfig::new(typed()), &circuit, 3, 1);
    assert_eq!((own.tallies, own.cost), (erased.tallies, erased.cost));
}

#[test]
fn a_handle_computes_and_counts_as_the_protocol_does() {
    both(|| ShamirConfig {
        structure: Structure::new(3, 1).expect("three parties"),
        inversion: Inversion::Views,
        tables: Tables::Masked,
    });
    both(|| {
        let packing = Packing::of::<Gf2_64>(64).expect("64 bits");
        SpdzConfig::<Gf2_64>::new(
            2,
            LookupMethod::MaskedTables,
            Preprocessing::Mascot { expansion: EXPANSION },
            packing,
        )
        .expect("two parties")
    });
}

#[test]
#[should_panic(expected = "a value of another protocol")]
fn a_setup_of_another_protocol_is_refused() {
    let shamir = crate::catalog::service("shamir", 3, 1).expect("it serves");
    let spdz = crate::catalog::service("spdz-lt", 2, 1).expect("it serves");
    let setups = crate::mesh::run_parties(2, |net| spdz.setup(net));
    let setup = setups.into_iter().next().expect("two parties").expect("they agree");
    shamir.save_setup(&setup);
}
