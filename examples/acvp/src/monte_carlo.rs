//! Monte Carlo tests of AES in ECB and CBC (draft-celi-acvp-symmetric, section on MCTs; AESAVS): 100 keys,
//! and 1,000 blocks under each, every block from the one before. Then the last outputs change the key.

/// Keys of a test.
pub(crate) const KEYS: usize = 100;
/// Blocks under one key.
const BLOCKS: usize = 1000;

/// The last outputs under a key.
pub(crate) struct Last {
    /// The last but one.
    pub(crate) before: Vec<u8>,
    /// The last.
    pub(crate) output: Vec<u8>,
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
pub(crate) fn next_key(key: &mut [u8], last: &Last) {
    let outputs = [&last.before[..], &last.output].concat();
    let begin = outputs.len() - key.len();
    key.iter_mut().zip(&outputs[begin..]).for_each(|(byte, output)| *byte ^= output);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

    use super::*;

    /// Runs a whole test with another implementation, and returns its results as `key, iv, output`.
    fn results(key: &str, initial: Option<&str>, input: &str, encrypts: bool) -> Vec<[String; 3]> {
        let bytes = |text: &str| hex::decode(text).expect("hexadecimal");
        let (mut key, mut initial, mut input) = (bytes(key), initial.map(bytes), bytes(input));
        let mut results = Vec::new();
        for _ in 0..KEYS {
            let last = under_one_key(encrypts, initial.as_deref(), &input, |chained, input| {
                let mut block = Array::try_from(input).expect("a block");
                let add = |block: &mut [u8]| {
                    block.iter_mut().zip(chained.unwrap_or(&[0; 16])).for_each(|(b, c)| *b ^= c);
                };
                macro_rules! with {
                    ($cipher:ty) => {{
                        let cipher = <$cipher>::new_from_slice(&key).expect("a key");
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
            });
            let Ok(last) = last;
            let shown = initial.as_deref().unwrap_or_default();
            results.push([&key, shown, &last.output[..]].map(hex::encode_upper));
            next_key(&mut key, &last);
            (input, initial) = match initial {
                None => (last.output, None),
                Some(_) => (last.before, Some(last.output)),
            };
        }
        results
    }

    /// NIST's sample sets ACVP-AES-ECB 1.0 and ACVP-AES-CBC 1.0 (ACVP-Server v1.1.0.43), tests 2139, 2143,
    /// 2153 and 2154: the last of their results.
    #[test]
    fn the_hundredth_results_are_those_of_nist() {
        let last = |key, initial, input, encrypts| results(key, initial, input, encrypts).remove(KEYS - 1);
        let key = "F9C81A828442E55CCFA8ADA81FDA628D";
        let expected = ["7D85F7C1246BD95BA67261D1537934AE", "", "9C0841B135535583177D0ACF508A7144"];
        assert_eq!(last(key, None, "48780CAD1399AB77792B4A54532D969B", true), expected);

        let key = "CB2F265977B9BC4FE3AF8FFE82AB52B948CD94E70DC4E9B8";
        let expected =
            ["4645E23E1218205F93D36E517FDF63BA25AD294BF1CE1E0D", "", "B8012E3B6D6D40FB053A3082B407EFBD"];
        assert_eq!(last(key, None, "8AB2894D08619DC8365BDE53AE52C7D6", false), expected);

        let key = "E5DF90DD32331AED1BF07FF2C3C3BF84D44E2A708A5A56E67CB4B96D406EC500";
        let expected = [
            "955784969C3D3CD00C767BCB4866D80DCA1E2BF969712FCB803AA9A185CF52CC",
            "82575308C8872707F9302CA579C0AAD2",
            "6051B534746550CF04E6A5358D1EE638",
        ];
        let initial = Some("92B2AD6F2DF185C190F55278B8E4E090");
        assert_eq!(last(key, initial, "80DEFCFE05363CBD2338C983D802764A", true), expected);

        let key = "94B1361992AC20DF6A3EA4A89DE651FD";
        let expected = [
            "0B3182614D5ED0290091323284FBE958",
            "EB004E04171179B60F4838A2E65FA868",
            "C3DD5609B254F28B0657D4C98AFD605F",
        ];
        let initial = Some("6569A905E10F888F521288C46C5F30AB");
        assert_eq!(last(key, initial, "F45396384730EC31FC9B284321C3A189", false), expected);
    }
}
