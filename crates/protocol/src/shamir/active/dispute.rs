//! Finds the cheater when a value that was made from dealt sharings turns out wrong before all parties: one
//! party is convicted, or two parties are named, and one of the two cheats.
//!
//! Dealt sharings went through private channels. So the other parties can only go by what dealer and receiver
//! say. For one column, which nobody will use, every party broadcasts the polynomials that it dealt and the
//! shares that it got. Then all parties see the same, and two kinds of fault:
//!
//! * A share that was broadcast before is not what its sender, by its own word, had to make of the shares it
//!   got; or a party says that it got another share from itself than it dealt. This party **is convicted**,
//!   and the others go on without it (`conviction.rs`).
//! * A dealer and a receiver **contradict each other**. One of them cheats, and nobody else can tell which. A
//!   party that contradicts more parties than may cheat is convicted. Otherwise no more material is made, and
//!   the error names the two.
//!
//! If neither is the case, all contributions are polynomials of their degrees, and all shares are what linear
//! maps and one product make of those: then nothing was wrong. Parties that follow the protocol are never
//! convicted. What they say about what they dealt and got is what they computed with. Only cheaters
//! contradict them, and no more parties cheat than may.
//!
//! This opens one column of material that is thrown away. Columns are independent of each other, and of all
//! other material.

use polyclave_field::Gf256;

use super::super::setup::point;
use super::code::{Symbol, weighted};
use super::dealt::Dealt;
use super::{Active, Arithmetic, Spoiled};
use crate::interface::net::Net;
use crate::{Error, Party, PartySet, Result};

/// What a party has to send, by the rows of its shares of every output in the column.
pub(super) type Due<'a> = dyn Fn(&[Vec<u8>]) -> Vec<u8> + 'a;

/// The result of a column's broadcast.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Convicted(PartySet),
    /// A dealer and a receiver.
    Disputed(Party, Party),
    /// Nothing is wrong with what they say, so more of them cheat than may.
    Unsettled,
}

impl Arithmetic<Active> {
    /// All parties broadcast what they dealt and got in a column. `sent` is what all have received from each
    /// maker before; it is wrong in that column.
    pub(super) fn settle(
        &mut self,
        dealt: &Dealt,
        column: usize,
        sent: &[(Party, Vec<u8>)],
        due: &Due<'_>,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.security.spoiled = Some(Spoiled::Common);
        let mine = dealt.testimony(column);
        let said = self.broadcast(&vec![mine.len(); self.structure.parties()], &mine, net)?;
        self.refuse_silence(&said)?;
        let testimony = |p: Party| said[p.index()].as_deref().unwrap_or(&[]);
        let threshold = self.structure.threshold();
        match judge(dealt, threshold, self.cheaters(), &testimony, sent, due) {
            Judgement::Convicted(parties) => self.convict(parties),
            Judgement::Disputed(dealer, receiver) => Err(Error::Disputed { dealer, receiver }),
            Judgement::Unsettled => {
                Err(Error::CheckFailed { what: "more parties lie than the others can outvote" })
            }
        }
    }
}

fn judge<'a>(
    dealt: &Dealt,
    threshold: usize,
    cheaters: usize,
    testimony: &dyn Fn(Party) -> &'a [u8],
    sent: &[(Party, Vec<u8>)],
    due: &Due<'_>,
) -> Judgement {
    let rows = dealt.order.rows();
    let split = dealt.order.coefficients(threshold);
    let got = |receiver: Party| testimony(receiver)[split..].chunks(rows);
    let gave = |dealer: Party, receiver: Party| -> Vec<u8> {
        let share = |row: usize| -> Gf256 {
            let coefficients = dealt.order.polynomial(row, threshold).into_iter().zip(0..);
            coefficients.map(|(at, power)| Gf256(testimony(dealer)[at]) * point(receiver).pow(power)).sum()
        };
        (0..rows).map(|row| share(row).0).collect()
    };
    let outputs = |party: Party| -> Vec<Vec<u8>> {
        let output = |coefficients: &Vec<Gf256>| {
            let mut output = vec![0; rows];
            weighted(Symbol::Byte, coefficients.iter().copied().zip(got(party)), &mut output);
            output
        };
        dealt.matrix.iter().map(output).collect()
    };
    let contradictions: Vec<(Party, Party)> = dealt
        .makers
        .iter()
        .flat_map(|receiver| {
            dealt.makers.iter().zip(got(receiver)).map(move |(d, share)| (d, receiver, share))
        })
        .filter(|(dealer, receiver, share)| gave(*dealer, *receiver) != *share)
        .map(|(dealer, receiver, _)| (dealer, receiver))
        .collect();
    let is_wrong = |(party, sent): &&(Party, Vec<u8>)| {
        let with = |(d, r): &&(Party, Party)| d != r && (d == party || r == party);
        let others: PartySet =
            contradictions.iter().filter(with).map(|(d, r)| if d == party { *r } else { *d }).collect();
        due(&outputs(*party)) != *sent
            || contradictions.contains(&(*party, *party))
            || others.len() > cheaters
    };
    let wrong: PartySet = sent.iter().filter(is_wrong).map(|(party, _)| *party).collect();
    match (wrong.is_empty(), contradictions.first()) {
        (false, _) => Judgement::Convicted(wrong),
        (true, Some((dealer, receiver))) => Judgement::Disputed(*dealer, *receiver),
        (true, None) => Judgement::Unsettled,
    }
}

#[cfg(test)]
mod tests {
    use polyclave_kernels::gf256::multiply;

    use super::super::dealt::Order;
    use super::super::hyper_invertible::matrix;
    use super::*;

    const ORDER: Order = Order { singles: 2, doubles: 1, columns: 1 };
    /// Where in a testimony what was got begins.
    const GOT: usize = 8;

    /// What a party has broadcast of a product.
    type Sent = (Party, Vec<u8>);

    /// What four honest parties say of a column that they dealt, and their shares of a product of the first
    /// kept output.
    fn honest() -> (Dealt, [Vec<u8>; 4], Vec<Sent>) {
        let own = |p: Party| {
            (0..GOT).map(|k| (41 * k + 97 * p.index() + 3 * k * p.index()) as u8).collect::<Vec<u8>>()
        };
        let share = |dealer: Party, receiver: Party, row: usize| -> u8 {
            let terms = ORDER.polynomial(row, 1).into_iter().zip(0..);
            terms.map(|(at, k)| Gf256(own(dealer)[at]) * point(receiver).pow(k)).sum::<Gf256>().0
        };
        let all = || Party::all(4);
        let got = |p: Party| all().flat_map(move |d| (0..4).map(move |row| share(d, p, row)));
        let said: Vec<Vec<u8>> = all().map(|p| own(p).into_iter().chain(got(p)).collect()).collect();
        let received: Vec<Vec<u8>> =
            all().map(|d| (0..4).map(|row| share(d, Party(0), row)).collect()).collect();
        let dealt = Dealt::of_one_column(ORDER, matrix(4), own(Party(0)), received);
        let output = |p: Party| -> Vec<u8> {
            let mut output = vec![0; 4];
            let got: Vec<u8> = got(p).collect();
            weighted(Symbol::Byte, matrix(4)[2].iter().copied().zip(got.chunks(4)), &mut output);
            output
        };
        let sent = all().map(|p| (p, product(&output(p)))).collect();
        (dealt, said.try_into().expect("four parties"), sent)
    }

    fn product(output: &[u8]) -> Vec<u8> {
        let mut product = vec![0];
        multiply(&mut product, &output[..1], &output[1..2]);
        vec![product[0] ^ output[3]]
    }

    fn judged(change: impl Fn(&mut [Vec<u8>; 4], &mut [Sent])) -> Judgement {
        let (dealt, mut said, mut sent) = honest();
        assert_eq!(dealt.testimony(0), said[0]);
        change(&mut said, &mut sent);
        judge(&dealt, 1, 1, &|p| &said[p.index()][..], &sent, &|outputs| product(&outputs[2]))
    }

    #[test]
    fn who_sends_another_share_than_it_should_is_convicted() {
        assert_eq!(judged(|_, _| {}), Judgement::Unsettled, "nothing is wrong");
        for p in Party::all(4) {
            let convicted = Judgement::Convicted([p].into_iter().collect());
            assert_eq!(judged(|_, sent| sent[p.index()].1[0] ^= 5), convicted);
        }
    }

    #[test]
    fn who_lies_about_what_it_got_from_another_is_in_dispute_with_it() {
        for (receiver, dealer) in [(1, 0), (3, 2), (0, 3)] {
            let lies = |said: &mut [Vec<u8>; 4], sent: &mut [Sent]| {
                let got = &mut said[receiver as usize][GOT + 4 * dealer as usize..];
                got[0] ^= 0x40;
                // A share that fits the lie.
                let got: Vec<u8> = said[receiver as usize][GOT..].to_vec();
                let mut output = vec![0; 4];
                weighted(Symbol::Byte, matrix(4)[2].iter().copied().zip(got.chunks(4)), &mut output);
                sent[receiver as usize].1 = product(&output);
            };
            assert_eq!(judged(lies), Judgement::Disputed(Party(dealer), Party(receiver)));
        }
    }

    #[test]
    fn who_contradicts_more_than_may_cheat_or_itself_is_convicted() {
        for p in Party::all(4) {
            // Another polynomial than it dealt, of a row that the product does not depend on.
            let lies = |said: &mut [Vec<u8>; 4], _: &mut [Sent]| said[p.index()][5] ^= 9;
            assert_eq!(judged(lies), Judgement::Convicted([p].into_iter().collect()));
        }
    }
}
