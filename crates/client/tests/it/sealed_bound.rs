//! Sealed files that are bound to additional data open with the same data only, and files without them are
//! what they were.

use std::io::{self, Write};

use crate::common::messages::{open, seal};
use crate::common::{TestCluster, data, nothing};
use polyclave_api::CHUNK;
use polyclave_client::{Client, Error, HEAD, MAGIC, MAGIC_BOUND, Result};

fn seal_bound(client: &Client, additional: &[u8], data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    client.seal_bound("bound", Some(additional), &mut &data[..], &mut file, &mut nothing).expect("sealed");
    file
}

fn open_bound(client: &Client, additional: &[u8], file: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.open_bound("bound", Some(additional), &mut &file[..], &mut out, &mut nothing)?;
    Ok(out)
}

#[test]
fn a_bound_file_opens_with_its_additional_data_and_with_no_others() {
    let cluster = TestCluster::shared_with_keys(&["bound"]);
    let client = cluster.client();
    // Of more than one chunk.
    let all = data(300_000);
    let file = seal_bound(&client, b"patient 7", &all);
    assert!(file.starts_with(MAGIC_BOUND));
    assert!(open_bound(&client, b"patient 7", &file).expect("opened") == all);
    for other in [&b"patient 8"[..], b"", b"patient 7 "] {
        let error = open_bound(&client, other, &file).expect_err("refused");
        assert!(matches!(error, Error::Unauthentic(_)), "{error}");
    }
    let error = open(&client, "bound", &file).expect_err("refused");
    assert!(error.to_string().contains("sealed with additional data"), "{error}");
    let long = vec![5; 100_000];
    let file = seal_bound(&client, &long, b"short");
    assert_eq!(open_bound(&client, &long, &file).expect("opened"), b"short");
    let file = seal_bound(&client, b"", b"empty additional data are additional data");
    assert!(file.starts_with(MAGIC_BOUND) && open_bound(&client, b"", &file).is_ok());
}

#[test]
fn a_file_without_additional_data_is_of_the_first_format_and_neither_passes_for_the_other() {
    let cluster = TestCluster::shared_with_keys(&["bound"]);
    let client = cluster.client();
    let plain = seal(&client, "bound", b"plain").expect("sealed");
    assert!(plain.starts_with(MAGIC) && plain.len() == HEAD + 5 + 16);
    assert_eq!(open(&client, "bound", &plain).expect("opened"), b"plain");
    let error = open_bound(&client, b"more", &plain).expect_err("refused");
    assert!(error.to_string().contains("sealed without additional data"), "{error}");
    let disguised = [&MAGIC_BOUND[..], &plain[16..]].concat();
    assert!(matches!(open_bound(&client, b"more", &disguised), Err(Error::Unauthentic(_))));
    let bound = seal_bound(&client, b"more", b"bound");
    let disguised = [&MAGIC[..], &bound[16..]].concat();
    assert!(matches!(open(&client, "bound", &disguised), Err(Error::Unauthentic(_))));
}

/// What was written, and whether all of it was flushed.
#[derive(Default)]
struct Written {
    data: Vec<u8>,
    is_flushed: bool,
}

impl Write for Written {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.is_flushed = false;
        self.data.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_flushed = true;
        Ok(())
    }
}

#[test]
fn each_chunk_is_progress_and_the_end_is_flushed() {
    let cluster = TestCluster::shared_with_keys(&["bound"]);
    let client = cluster.client();
    let all = data(2 * CHUNK + 5);
    let chunks = [CHUNK, 2 * CHUNK, all.len()].map(|done| done as u64);
    let (mut file, mut out, mut seen) = (Written::default(), Written::default(), Vec::new());
    let sealed = client.seal("bound", &mut &all[..], &mut file, &mut |done| seen.push(done)).expect("sealed");
    assert_eq!((sealed, &seen[..], file.is_flushed), (all.len() as u64, &chunks[..], true));
    seen.clear();
    let mut sealed = &file.data[..];
    let opened = client.open_sealed("bound", &mut sealed, &mut out, &mut |done| seen.push(done));
    assert_eq!((opened.expect("opened"), &seen[..]), (all.len() as u64, &chunks[..]));
    assert!(out.is_flushed && out.data == all);
}
