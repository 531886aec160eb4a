//! Monte Carlo tests of AES in ECB and CBC (draft-celi-acvp-symmetric, section on MCTs; AESAVS): 100 keys,
//! and 1,000 blocks under each, every block from the one before. Then the last outputs change the key.

use serde_json::Value;

/// Keys of a test.
const KEYS: usize = 100;
/// Blocks under one key.
const BLOCKS: usize = 1000;

/// The last outputs under a key.
pub(crate) struct Last {
    /// The last but one.
    before: Vec<u8>,
    /// The last.
    output: Vec<u8>,
}

/// The results of a test, one for each of its keys. `compute` computes all blocks under one
/// ([`under_one_key`]): it takes the key, the initial block, if blocks are chained, and the first input.
pub(crate) fn results<E>(
    key: &[u8],
    initial: Option<&[u8]>,
    input: &[u8],
    encrypts: bool,
    mut compute: impl FnMut(&[u8], Option<&[u8]>, &[u8]) -> Result<Last, E>,
) -> Result<Vec<Value>, E> {
    let (given, answered) = if encrypts { ("pt", "ct") } else { ("ct", "pt") };
    let (mut key, mut initial, mut input) = (key.to_vec(), initial.map(<[u8]>::to_vec), input.to_vec());
    let mut results = Vec::new();
    for _ in 0..KEYS {
        let last = compute(&key, initial.as_deref(), &input)?;
        let mut fields = vec![("key", &key), (given, &input), (answered, &last.output)];
        fields.extend(initial.as_ref().map(|initial| ("iv", initial)));
        let fields =
            fields.into_iter().map(|(name, bytes)| (name.to_owned(), hex::encode_upper(bytes).into()));
        results.push(Value::Object(fields.collect()));
        next_key(&mut key, &last);
        (input, initial) = match initial {
            None => (last.output, None),
            Some(_) => (last.before, Some(last.output)),
        };
    }
    Ok(results)
}

/// Computes all blocks under a key: `compute` takes the initial block, if blocks are chained, and the input.
pub(crate) fn under_one_key<E>(
    encrypts: bool,
    initial: Option<&[u8]>,
    input: &[u8],
    mut compute: impl FnMut(Option<&[u8]>, &[u8]) -> Result<Vec<u8>, E>,
) -> Result<Last, E> {
    let (mut chained, mut input) = (initial.map(<[u8]>::to_vec), input.to_vec());
    // What the second input is, where blocks are chained.
    let mut before = initial.unwrap_or_default().to_vec();
    let mut output = compute(chained.as_deref(), &input)?;
    for _ in 1..BLOCKS {
        let next = if chained.is_some() { before } else { output.clone() };
        chained = chained.map(|_| if encrypts { output.clone() } else { input });
        (input, before) = (next, output);
        output = compute(chained.as_deref(), &input)?;
    }
    Ok(Last { before, output })
}

/// Adds to a key as many of the last bytes of output as it has.
fn next_key(key: &mut [u8], last: &Last) {
    let outputs = [&last.before[..], &last.output].concat();
    let begin = outputs.len() - key.len();
    key.iter_mut().zip(&outputs[begin..]).for_each(|(byte, output)| *byte ^= output);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
    use serde_json::json;

    use super::*;

    /// The last of the results of a test, by another implementation.
    fn last(key: &str, initial: Option<&str>, input: &str, encrypts: bool) -> Value {
        let bytes = |text: &str| hex::decode(text).expect("hexadecimal");
        let (key, initial, input) = (bytes(key), initial.map(bytes), bytes(input));
        let results = results(&key, initial.as_deref(), &input, encrypts, |key, initial, input| {
            under_one_key(encrypts, initial, input, |chained, input| {
                let mut block = Array::try_from(input).expect("a block");
                let add = |block: &mut [u8]| {
                    block.iter_mut().zip(chained.unwrap_or(&[0; 16])).for_each(|(b, c)| *b ^= c);
                };
                macro_rules! with {
                    ($cipher:ty) => {{
                        let cipher = <$cipher>::new_from_slice(key).expect("a key");
                        if encrypts {
                            add(&mut block);
                            cipher.encrypt_block(&mut block);
                        } else {
                            cipher.decrypt_block(&mut block);
                            add(&mut block);
                        }
                    }};
                }
                match key.len() {
                    16 => with!(aes::Aes128),
                    24 => with!(aes::Aes192),
                    _ => with!(aes::Aes256),
                }
                Ok::<_, Infallible>(block.to_vec())
            })
        });
        let Ok(mut results) = results;
        assert_eq!(results.len(), 100);
        results.remove(99)
    }

    /// NIST's sample sets ACVP-AES-ECB 1.0 and ACVP-AES-CBC 1.0 (ACVP-Server v1.1.0.43), tests 2139, 2143,
    /// 2153 and 2154: the last of their results.
    #[test]
    fn the_hundredth_results_are_those_of_nist() {
        let key = "F9C81A828442E55CCFA8ADA81FDA628D";
        let expected = json!({
            "key": "7D85F7C1246BD95BA67261D1537934AE",
            "pt": "87AA81FD6456EF9EEA6E8F19BBC92BAE",
            "ct": "9C0841B135535583177D0ACF508A7144",
        });
        assert_eq!(last(key, None, "48780CAD1399AB77792B4A54532D969B", true), expected);

        let key = "CB2F265977B9BC4FE3AF8FFE82AB52B948CD94E70DC4E9B8";
        let expected = json!({
            "key": "4645E23E1218205F93D36E517FDF63BA25AD294BF1CE1E0D",
            "pt": "B8012E3B6D6D40FB053A3082B407EFBD",
            "ct": "AC3A7B77618187F33FD746FA27390A38",
        });
        assert_eq!(last(key, None, "8AB2894D08619DC8365BDE53AE52C7D6", false), expected);

        let key = "E5DF90DD32331AED1BF07FF2C3C3BF84D44E2A708A5A56E67CB4B96D406EC500";
        let expected = json!({
            "key": "955784969C3D3CD00C767BCB4866D80DCA1E2BF969712FCB803AA9A185CF52CC",
            "iv": "82575308C8872707F9302CA579C0AAD2",
            "pt": "2C668B09AC780B5A42697331D8E4C437",
            "ct": "6051B534746550CF04E6A5358D1EE638",
        });
        let initial = Some("92B2AD6F2DF185C190F55278B8E4E090");
        assert_eq!(last(key, initial, "80DEFCFE05363CBD2338C983D802764A", true), expected);

        let key = "94B1361992AC20DF6A3EA4A89DE651FD";
        let expected = json!({
            "key": "0B3182614D5ED0290091323284FBE958",
            "iv": "EB004E04171179B60F4838A2E65FA868",
            "pt": "C3DD5609B254F28B0657D4C98AFD605F",
            "ct": "123845F7F991F71CCBB9C3B9507BA21A",
        });
        let initial = Some("6569A905E10F888F521288C46C5F30AB");
        assert_eq!(last(key, initial, "F45396384730EC31FC9B284321C3A189", false), expected);
    }
}
