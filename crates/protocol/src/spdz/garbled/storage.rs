//! A garbled circuit in a party's stock: its part of it, as bytes.
//!
//! The header; the name, the circuit, the lanes (4 bytes); for each input port whether it was given, and what
//! is kept of it; the masks of outputs; the role, and what only it has. Rows have their number of items (4
//! bytes) in front. Whether lengths fit the circuit is seen when it is used ([`Item::refuse_other`]).
//!
//! The garbler stores its Delta with each circuit: a setup that is renewed has another lower half.

use polyclave_field::Gf2_64;
use polyclave_kernels::secret::public;
use zeroize::Zeroizing;

use super::gates::Gate;
use super::item::{Given, Item, Masked, Part};
use super::wires::{Active, Mask};
use crate::authenticated::Authenticated;
use crate::few_rounds::Size;
use crate::stored::{Header, Reader};
use crate::{Party, Result};

const PROTOCOL: &str = "garbled-authenticated";
const KIND: u8 = b'z';
const VERSION: u8 = 1;
const PARTIES: u8 = 2;
/// The header, the name, the circuit, the lanes and the number of inputs.
const HEAD: usize = 5 + 32 + 32 + 4 + 4;

fn header(me: Party) -> Header {
    [KIND, VERSION, PARTIES, 1, me.0]
}

/// An item of a row, of a fixed length.
trait Stored: Sized {
    const BYTES: usize;

    fn write(&self, bytes: &mut Vec<u8>);

    /// None if it can be no item.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Stored for u64 {
    const BYTES: usize = 8;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Stored for u128 {
    const BYTES: usize = 16;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(u128::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// A bit.
impl Stored for u8 {
    const BYTES: usize = 1;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bit = *bytes.first()?;
        // Of every bit these are zeros, whatever it is: that they are is no secret.
        (public(bit & !1) == 0).then_some(bit)
    }
}

impl Stored for Mask {
    const BYTES: usize = 25;

    fn write(&self, bytes: &mut Vec<u8>) {
        self.block.write(bytes);
        self.word.write(bytes);
        self.bit.write(bytes);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (block, word, bit) = (&bytes[..16], &bytes[16..24], &bytes[24..]);
        Some(Mask { block: Stored::read(block)?, word: Stored::read(word)?, bit: Stored::read(bit)? })
    }
}

impl Stored for Active {
    const BYTES: usize = 17;

    fn write(&self, bytes: &mut Vec<u8>) {
        self.label.write(bytes);
        self.bit.write(bytes);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Active { label: Stored::read(&bytes[..16])?, bit: Stored::read(&bytes[16..])? })
    }
}

impl Stored for Gate {
    const BYTES: usize = 75;

    fn write(&self, bytes: &mut Vec<u8>) {
        self.labels.iter().for_each(|label| label.write(bytes));
        self.tags.iter().for_each(|tag| tag.write(bytes));
        self.bits.iter().for_each(|bit| bit.write(bytes));
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut gate = Gate::default();
        for (i, label) in gate.labels.iter_mut().enumerate() {
            *label = Stored::read(&bytes[16 * i..16 * (i + 1)])?;
        }
        for (i, tag) in gate.tags.iter_mut().enumerate() {
            *tag = Stored::read(&bytes[48 + 8 * i..56 + 8 * i])?;
        }
        for (i, bit) in gate.bits.iter_mut().enumerate() {
            *bit = Stored::read(&bytes[72 + i..73 + i])?;
        }
        Some(gate)
    }
}

fn write_row<T: Stored>(row: &[T], bytes: &mut Vec<u8>) {
    bytes.extend((row.len() as u32).to_le_bytes());
    row.iter().for_each(|item| item.write(bytes));
}

fn row_bytes<T: Stored>(row: &[T]) -> usize {
    4 + row.len() * T::BYTES
}

fn read_row<T: Stored + zeroize::Zeroize>(reader: &mut Reader<'_>) -> Result<Zeroizing<Vec<T>>> {
    let count = u32::from_le_bytes(reader.array()?) as usize;
    let bytes = reader.take(count.saturating_mul(T::BYTES))?;
    // Allocated at its full size: growing would leave copies behind.
    let mut row = Zeroizing::new(Vec::with_capacity(count));
    for item in bytes.chunks(T::BYTES) {
        row.push(T::read(item).ok_or_else(|| reader.damaged("a bit is neither 0 nor 1"))?);
    }
    Ok(row)
}

impl Item {
    fn saved_bytes(&self) -> usize {
        let input = |input: &Masked| match input {
            Masked::Waiting(masks) => 1 + row_bytes(masks),
            Masked::Given(Given { active, .. }) => 1 + 32 + row_bytes(active),
        };
        let part = match &self.part {
            Part::Garbler { inputs, outputs, .. } => {
                16 + inputs.iter().map(|labels| row_bytes(labels)).sum::<usize>() + row_bytes(outputs)
            }
            Part::Evaluator { gates } => row_bytes(gates),
        };
        let outputs = row_bytes(&self.outputs.values) + row_bytes(&self.outputs.macs);
        HEAD + self.inputs.iter().map(input).sum::<usize>() + outputs + 1 + part
    }

    /// Bytes of a stored circuit of one lane, none of whose inputs was given.
    pub(super) fn bytes_of(size: &Size, garbles: bool) -> usize {
        let inputs: usize = size.inputs.iter().map(|bits| 1 + 4 + bits * Mask::BYTES).sum();
        let labels = |bits: usize| 4 + bits * u128::BYTES;
        let part = match garbles {
            true => 16 + size.inputs.iter().map(|bits| labels(*bits)).sum::<usize>() + labels(size.outputs),
            false => 4 + size.ands * Gate::BYTES,
        };
        HEAD + inputs + 2 * (4 + size.outputs * u64::BYTES) + 1 + part
    }

    /// To be stored. The item is gone: what is stored is its only form.
    pub(super) fn save(self, me: Party) -> Zeroizing<Vec<u8>> {
        // Allocated at its full size: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.saved_bytes()));
        bytes.extend(header(me));
        bytes.extend(self.name);
        bytes.extend(self.circuit);
        bytes.extend((self.lanes as u32).to_le_bytes());
        bytes.extend((self.inputs.len() as u32).to_le_bytes());
        for input in &self.inputs {
            match input {
                Masked::Waiting(masks) => {
                    bytes.push(0);
                    write_row(masks, &mut bytes);
                }
                Masked::Given(Given { digest, active }) => {
                    bytes.push(1);
                    bytes.extend(digest);
                    write_row(active, &mut bytes);
                }
            }
        }
        write_row(&self.outputs.values, &mut bytes);
        write_row(&self.outputs.macs, &mut bytes);
        match &self.part {
            Part::Garbler { delta, inputs, outputs } => {
                bytes.push(0);
                delta.write(&mut bytes);
                inputs.iter().for_each(|labels| write_row(labels, &mut bytes));
                write_row(outputs, &mut bytes);
            }
            Part::Evaluator { gates } => {
                bytes.push(1);
                write_row(gates, &mut bytes);
            }
        }
        bytes
    }

    /// Reads what this party has stored.
    pub(super) fn restore(bytes: &[u8], me: Party) -> Result<Item> {
        let mut reader = Reader::new(bytes, PROTOCOL, header(me))?;
        let (name, circuit) = (reader.array()?, reader.array()?);
        let [lanes, ports] = [reader.array()?, reader.array()?].map(u32::from_le_bytes);
        let mut inputs = Vec::new();
        for _ in 0..ports {
            inputs.push(match reader.array()? {
                [0] => Masked::Waiting(read_row(&mut reader)?),
                [1] => Masked::Given(Given { digest: reader.array()?, active: read_row(&mut reader)? }),
                _ => return Err(reader.damaged("an input is neither given nor not")),
            });
        }
        let outputs =
            Authenticated::<Gf2_64> { values: read_row(&mut reader)?, macs: read_row(&mut reader)? };
        let part = match reader.array()? {
            [0] => {
                let delta = Zeroizing::new(u128::from_le_bytes(reader.array()?));
                let labels = (0..ports).map(|_| read_row(&mut reader)).collect::<Result<_>>()?;
                Part::Garbler { delta, inputs: labels, outputs: read_row(&mut reader)? }
            }
            [1] => Part::Evaluator { gates: read_row(&mut reader)? },
            _ => return Err(reader.damaged("they are of no role")),
        };
        reader.finish()?;
        Ok(Item { name, circuit, lanes: lanes as usize, inputs, outputs, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Party = Party(1);

    fn saved() -> Vec<Zeroizing<Vec<u8>>> {
        let parts = [
            Part::Garbler {
                delta: Zeroizing::new(7),
                inputs: vec![Zeroizing::new(vec![1, 2]), Zeroizing::new(vec![3])],
                outputs: Zeroizing::new(vec![4]),
            },
            Part::Evaluator { gates: Zeroizing::new(vec![Gate::default(); 2]) },
        ];
        let item = |part| {
            let mask = Mask { block: 1 << 100, word: 1 << 50, bit: 1 };
            let mut outputs = Authenticated::zero(1);
            outputs.macs[0] = 9;
            let active = Zeroizing::new(vec![Active { label: 1 << 90, bit: 1 }]);
            Item {
                name: [8; 32],
                circuit: [2; 32],
                lanes: 1,
                inputs: vec![
                    Masked::Waiting(Zeroizing::new(vec![mask; 2])),
                    Masked::Given(Given { digest: [4; 32], active }),
                ],
                outputs,
                part,
            }
        };
        parts.map(|part| item(part).save(ME)).into_iter().collect()
    }

    #[test]
    fn items_of_both_roles_come_back_whole_and_to_their_party_alone() {
        for bytes in saved() {
            assert_eq!(bytes.len(), bytes.capacity(), "nothing was left behind by growing");
            let item = Item::restore(&bytes, ME).expect("it was saved here");
            assert_eq!(item.save(ME), bytes);
            assert!(Item::restore(&bytes, Party(0)).is_err());
            assert!((0..bytes.len()).all(|len| Item::restore(&bytes[..len], ME).is_err()));
            assert!(Item::restore(&[&bytes[..], &[0]].concat(), ME).is_err());
        }
    }

    mod fuzz {
        use polyclave_harness::{fuzz, within_memory};

        use super::*;

        #[test]
        fn no_stored_bytes_panic_or_claim_more_than_came_and_what_is_read_comes_back() {
            let valid = saved().iter().map(|bytes| bytes.to_vec()).collect();
            fuzz!("stored-garbled-authenticated", &[], valid, |bytes: &[u8]| {
                within_memory(4096 + 64 * bytes.len(), || {
                    if let Ok(item) = Item::restore(bytes, ME) {
                        assert_eq!(&**item.save(ME), bytes);
                    }
                });
            });
        }
    }
}
