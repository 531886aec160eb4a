//! Components and their keys. Component i of every value is known to all parties but P_i, and so is a key
//! K_i. What the three who know K_i draw from it is the same at all of them, and uniform to P_i.

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::super::Setup;
use super::super::ring::seed;
use super::{COMPONENTS, PARTIES};
use crate::interface::session::Stream;
use crate::pool::{Pool, Shares};
use crate::{Party, PartySet, shamir};

/// What a key is used for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Masks of products.
    Product = 0,
    /// Random values, and masks of inputs.
    Random = 1,
    /// A component that three parties add to what they have computed without the fourth.
    Lift = 2,
    /// Digests of joint messages.
    Transcript = 3,
    /// Tags of joint messages.
    Tag = 6,
    /// The polynomials of what goes to clients, of the key that all four have.
    Client = 4,
    /// Keys of the pairs when three go on.
    Pairs = 5,
}

/// Something for each component that a party has, in the order of [`held`].
pub(super) type Components<T> = [T; COMPONENTS];

/// One party's generators, in one session and stream.
pub(super) struct Keys {
    pub(super) me: Party,
    product: Components<AesPrg>,
    random: Components<AesPrg>,
    lift: Components<AesPrg>,
    client: AesPrg,
    pub(super) pool: Pool,
}

/// The components that a party has.
pub(super) fn held(me: Party) -> Components<Party> {
    let mut others = me.peers(PARTIES);
    std::array::from_fn(|_| others.next().expect("there are three others"))
}

/// Which of a party's components is this one; `None` for the one that it lacks.
pub(super) fn place(me: Party, component: Party) -> Option<usize> {
    held(me).iter().position(|held| *held == component)
}

/// The parties that have a component.
pub(super) fn holders(component: Party) -> PartySet {
    PartySet::all(PARTIES).without([component].into_iter().collect())
}

impl Keys {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Keys {
        Keys {
            me: setup.keys.me(),
            product: generators(setup, stream, Purpose::Product),
            random: generators(setup, stream, Purpose::Random),
            lift: generators(setup, stream, Purpose::Lift),
            client: AesPrg::new(&seed(&derived(&setup.common, stream, Purpose::Client)), 0),
            pool: Pool::default(),
        }
    }

    /// A buffer of zeros.
    pub(super) fn zeros(&self, len: usize) -> Shares {
        let mut zeros = self.pool.take(len);
        zeros.fill(0);
        zeros
    }

    /// Overwrites a mask by the next bytes of a key's generator for products.
    pub(super) fn fill_product_mask(&mut self, key: usize, mask: &mut [u8]) {
        self.product[key].fill(mask);
    }

    /// A random value that no party knows: a pseudorandom component of each key. Local.
    pub(super) fn random(&mut self, len: usize) -> Components<Zeroizing<Vec<u8>>> {
        self.random.each_mut().map(|generator| {
            let mut component = Zeroizing::new(vec![0; len]);
            generator.fill(&mut component);
            component
        })
    }

    /// The next bytes of the component that three add. They know its key and the party left out does not.
    pub(super) fn lift(&mut self, key: usize, len: usize) -> Zeroizing<Vec<u8>> {
        let mut component = Zeroizing::new(vec![0; len]);
        self.lift[key].fill(&mut component);
        component
    }

    /// The next bytes that all four parties know and no client.
    pub(super) fn for_client(&mut self, len: usize) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; len]);
        self.client.fill(&mut bytes);
        bytes
    }
}

/// Keys for a purpose of this stream, one for each component that the party has.
pub(super) fn keys(setup: &Setup, stream: &Stream, purpose: Purpose) -> Components<Zeroizing<[u8; 32]>> {
    held(setup.keys.me()).map(|component| {
        derived(setup.keys.key_of(holders(component)).expect("its holders have its key"), stream, purpose)
    })
}

pub(super) fn generators(setup: &Setup, stream: &Stream, purpose: Purpose) -> Components<AesPrg> {
    keys(setup, stream, purpose).map(|key| AesPrg::new(&seed(&key), 0))
}

/// The setup of three parties that go on without the fourth, by the numbers that they have among themselves.
/// The key of a pair comes from the one that the pair, the party left out, and not the third has.
pub(super) fn setup_of_three(setup: &Setup, stream: &Stream, three: &Components<Party>) -> Setup {
    let me = place_among(three, setup.keys.me());
    let key_with = |peer: Party| {
        let third = three.iter().zip(0..).find(|(_, at)| ![me, peer].contains(&Party(*at)));
        let (third, _) = third.expect("one of three is neither of two");
        let of = place(setup.keys.me(), *third).expect("it is another party");
        keys(setup, stream, Purpose::Pairs)[of].clone()
    };
    Setup {
        keys: shamir::Setup::of_pairs(me, key_with),
        common: Box::new(derived(&setup.common, stream, Purpose::Pairs)),
        retirement: Default::default(),
    }
}

/// A party's number among three.
///
/// # Panics
/// If it is none of them.
pub(super) fn place_among(three: &Components<Party>, party: Party) -> Party {
    let at = three.iter().zip(0..).find(|(other, _)| **other == party);
    Party(at.expect("the party is one of the three").1)
}

fn derived(from: &[u8; 32], stream: &Stream, purpose: Purpose) -> Zeroizing<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_keyed(from);
    hasher.update(b"polyclave replicated four 1").update(&[purpose as u8]).update(&stream.label());
    Zeroizing::new(*hasher.finalize().as_bytes())
}
