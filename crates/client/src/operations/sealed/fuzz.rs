//! Fuzz targets: foreign bytes in place of a sealed file.

use polyclave_harness::{fuzz, within_memory};

use super::*;

/// The steps that open a file contain all of it, in order, and mark the last chunk.
#[test]
fn no_sealed_file_panics_and_the_steps_that_open_it_are_all_of_it() {
    let sealed = |chunks: &[usize]| {
        let ids = [5; HEAD - MAGIC.len()];
        let chunks = chunks.iter().flat_map(|len| [&vec![6; *len][..], &[7; TAG]].concat());
        [&MAGIC[..], &ids, &chunks.collect::<Vec<u8>>()].concat()
    };
    let valid = vec![sealed(&[]), sealed(&[0]), sealed(&[1]), sealed(&[100])];
    fuzz!(
        "sealed-files",
        &["polyclave-seal-1", "polyclave-seal-2", "polyclave-seal-3"],
        valid,
        |bytes: &[u8]| {
            within_memory(4 * (CHUNK + TAG) + 4 * bytes.len(), || {
                let mut input = bytes;
                let Ok(Head { is_bound, id, file }) = read_head(&mut input) else { return };
                let magic = if is_bound { MAGIC_BOUND } else { MAGIC };
                let mut again = [&magic[..], &id, &file].concat();
                let mut pieces = Pieces::new(Source::Memory(input), 64 + TAG).expect("memory can be read");
                let mut ended = false;
                while let Some(piece) = pieces.next().expect("memory can be read") {
                    assert!(!ended, "something comes after the end");
                    let Ok((Step::Open { ciphertext, tag, last }, same)) = step(&piece) else { return };
                    assert_eq!(ciphertext.len(), same);
                    again.extend([&ciphertext[..], &tag].concat());
                    ended = last;
                }
                assert!(ended && again == bytes);
            });
        }
    );
}

#[test]
fn what_opens_a_sealed_file_begins_with_its_head() {
    let whole = [&MAGIC[..], &[9; HEAD - MAGIC.len()]].concat();
    assert!(read_head(&mut &whole[..]).is_ok());
    assert!((0..HEAD).all(|len| read_head(&mut &whole[..len]).is_err()));
    let mut other = whole.clone();
    other[15] ^= 1;
    assert!(read_head(&mut &other[..]).is_err(), "a file of another kind");
    let bound = [&MAGIC_BOUND[..], &whole[16..]].concat();
    for (file, is_bound) in [(&whole, false), (&bound, true)] {
        assert!(head_of(file, is_bound).is_ok() && head_of(file, !is_bound).is_err(), "bound: {is_bound}");
    }
}
