//! A garbled circuit in a party's stock: its part of it, as bytes.
//!
//! The header; the name of the lot, its lanes (8 bytes each), the circuit; the role; keys; then rows with
//! their lengths (4 bytes each); and for each input port whether it was given, and what is kept of it.
//! Whether lengths fit the circuit is seen when it is used ([`Item::refuse_other`]).

use zeroize::Zeroizing;

use super::item::{Given, Item, Name, Part};
use super::roles::Role;
use super::seed::Seed;
use crate::replicated::PARTIES;
use crate::stored::{Header, Reader};
use crate::{Party, Result};

const PROTOCOL: &str = "garbled-three";
const KIND: u8 = b'y';
const VERSION: u8 = 1;

fn header(me: Party) -> Header {
    [KIND, VERSION, PARTIES as u8, 1, me.0]
}

impl Item {
    /// Bytes of an item that is stored, none of whose inputs was given: of the rows of this role, and for so
    /// many inputs.
    pub(super) fn saved_bytes(role: Role, rows: [usize; 3], inputs: usize) -> usize {
        let keys = [32, 48, 16][role as usize];
        5 + 32 + 16 + 32 + 1 + keys + rows.iter().map(|row| 4 + row).sum::<usize>() + 4 + inputs
    }

    /// To be stored. The item is gone: what is stored is its only form.
    pub(super) fn save(self, me: Party) -> Zeroizing<Vec<u8>> {
        let rows = self.part.rows();
        let given = self.given.iter().flatten().map(|given| 32 + 4 + given.labels.len());
        let len = Item::saved_bytes(self.part.role(), rows.map(<[u8]>::len), self.given.len())
            + given.sum::<usize>();
        // Allocated at its full size: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend(header(me));
        bytes.extend(self.name.lot);
        bytes.extend(self.name.lanes.start.to_le_bytes());
        bytes.extend(self.name.lanes.end.to_le_bytes());
        bytes.extend(self.circuit);
        bytes.push(self.part.role() as u8);
        match &self.part {
            Part::First { seed, .. } => bytes.extend_from_slice(&*seed.to_bytes()),
            Part::Second { seed, masks, .. } => {
                bytes.extend_from_slice(&*seed.to_bytes());
                bytes.extend_from_slice(&**masks);
            }
            Part::Evaluator { masks, .. } => bytes.extend_from_slice(&**masks),
        }
        for row in rows {
            bytes.extend((row.len() as u32).to_le_bytes());
            bytes.extend_from_slice(row);
        }
        bytes.extend((self.given.len() as u32).to_le_bytes());
        for given in &self.given {
            bytes.push(u8::from(given.is_some()));
            if let Some(Given { digest, labels }) = given {
                bytes.extend_from_slice(digest);
                bytes.extend((labels.len() as u32).to_le_bytes());
                bytes.extend_from_slice(labels);
            }
        }
        bytes
    }

    /// Reads what this party has stored.
    pub(super) fn restore(bytes: &[u8], me: Party) -> Result<Item> {
        let mut reader = Reader::new(bytes, PROTOCOL, header(me))?;
        let lot = reader.array()?;
        let [start, end] = [reader.array()?, reader.array()?].map(u64::from_le_bytes);
        // More lanes than that have no tables.
        if start >= end || end > 1 << 32 {
            return Err(reader.damaged("they are of no lanes"));
        }
        let circuit = reader.array()?;
        let [role] = reader.array()?;
        let seed = match role {
            0 | 1 => Some(Seed::from_bytes(&Zeroizing::new(reader.array()?))),
            2 => None,
            _ => return Err(reader.damaged("they are of no role")),
        };
        let masks = if role == 0 { None } else { Some(Zeroizing::new(reader.array()?)) };
        let [first, decoding, labels] = [row(&mut reader)?, row(&mut reader)?, row(&mut reader)?];
        let part = match (seed, masks) {
            (Some(seed), masks) if decoding.is_empty() && labels.is_empty() => {
                let outputs = Zeroizing::new(first.to_vec());
                match masks {
                    None => Part::First { seed, outputs },
                    Some(masks) => Part::Second { seed, outputs, masks },
                }
            }
            (None, Some(masks)) => Part::Evaluator {
                tables: first.to_vec(),
                decoding: decoding.to_vec(),
                masks,
                mask_labels: Zeroizing::new(labels.to_vec()),
            },
            _ => return Err(reader.damaged("they have parts of another role")),
        };
        let ports = u32::from_le_bytes(reader.array()?);
        let mut given = Vec::new();
        for _ in 0..ports {
            given.push(match reader.array()? {
                [0] => None,
                [1] => {
                    let digest = reader.array()?;
                    Some(Given { digest, labels: Zeroizing::new(row(&mut reader)?.to_vec()) })
                }
                _ => return Err(reader.damaged("an input is neither given nor not")),
            });
        }
        reader.finish()?;
        Ok(Item { name: Name { lot, lanes: start..end }, circuit, part, given })
    }
}

fn row<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = u32::from_le_bytes(reader.array()?);
    reader.take(len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Party = Party(1);

    fn parts() -> [Part; 3] {
        let (seed, masks) = (Seed::from_bytes(&[5; 32]), Zeroizing::new([6; 16]));
        [
            Part::First { seed: seed.clone(), outputs: Zeroizing::new(vec![7; 32]) },
            Part::Second { seed, outputs: Zeroizing::new(vec![7; 32]), masks: masks.clone() },
            Part::Evaluator {
                tables: vec![1; 64],
                decoding: vec![2; 2],
                masks,
                mask_labels: Zeroizing::new(vec![3; 32]),
            },
        ]
    }

    fn saved() -> Vec<Zeroizing<Vec<u8>>> {
        let given = Given { digest: [4; 32], labels: Zeroizing::new(vec![9; 48]) };
        let item = |part| Item {
            name: Name { lot: [8; 32], lanes: 3..5 },
            circuit: [2; 32],
            part,
            given: vec![None, Some(given.clone())],
        };
        parts().map(|part| item(part).save(ME)).into_iter().collect()
    }

    #[test]
    fn items_of_all_roles_come_back_whole_and_to_their_party_alone() {
        for (bytes, part) in saved().into_iter().zip(parts()) {
            assert_eq!(bytes.len(), bytes.capacity(), "nothing was left behind by growing");
            let item = Item::restore(&bytes, ME).expect("it was saved here");
            assert_eq!((item.lanes(), item.part.role()), (2, part.role()));
            assert_eq!(item.part.rows(), part.rows());
            assert!(item.given[0].is_none() && item.given[1].as_ref().is_some_and(|g| g.labels().len() == 3));
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
            fuzz!("stored-garbled-three", &[], valid, |bytes: &[u8]| {
                within_memory(4096 + 64 * bytes.len(), || {
                    if let Ok(item) = Item::restore(bytes, ME) {
                        assert_eq!(&**item.save(ME), bytes);
                    }
                });
            });
        }
    }
}
