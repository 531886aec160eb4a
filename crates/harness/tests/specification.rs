//! The specification (`docs/specification`): its tables of messages, of constants and of context strings are
//! those of the sources.

use std::collections::{BTreeMap, BTreeSet};

use polyclave_api as api;
use polyclave_field::subfields::{MU, NU, OMEGA, ZETA};
use polyclave_harness::{book, sources};

/// The pages that have tables of messages, and the sources of their types.
const MESSAGES: [(&str, &[&str]); 4] = [
    ("specification/requests.md", OF_CLIENTS),
    ("specification/replies.md", OF_CLIENTS),
    ("specification/keys.md", OF_CLIENTS),
    ("specification/node-streams.md", &["node/src/peers", "store/src"]),
];
const OF_CLIENTS: &[&str] = &["api/src", "payments/src"];

/// Constants that no crate shows: name, value, and where they are declared.
const DECLARED: [(&str, &str, &str, &str); 82] = [
    ("MAX of names", "64", "config/src", "const MAX: usize = 64;"),
    ("MAX_CERTIFICATES", "4", "config/src", "const MAX_CERTIFICATES: usize = 4;"),
    ("MAX_WORKERS", "64", "config/src", "const MAX_WORKERS: usize = 64;"),
    ("GREETING", "78", "transport/src", "const GREETING: usize = 10 + 4 + 32 + 32;"),
    ("MAGIC of greetings", "polyclav", "transport/src", "const MAGIC: [u8; 8] = *b\"polyclav\";"),
    ("CLIENTS_NEWEST", "12", "protocol/src", "const CLIENTS_NEWEST: u8 = 12;"),
    ("SEED_BYTES", "32", "protocol/src", "const SEED_BYTES: usize = 32;"),
    ("ELEMENT_BYTES", "16", "protocol/src", "const ELEMENT_BYTES: usize = 16;"),
    ("DIGEST_BYTES", "32", "protocol/src", "const DIGEST_BYTES: usize = 32;"),
    (
        "ROOT",
        "56e809e4d195c929ec6e47b1264e1bf5",
        "field/src",
        "const ROOT: Gf128 = Gf128(0x56e8_09e4_d195_c929_ec6e_47b1_264e_1bf5);",
    ),
    ("MAX_OPEN", "4", "node/src", "const MAX_OPEN: usize = 4;"),
    ("MAGIC of files", "polyclave-seal-1", "client/src", "const MAGIC: &[u8; 16] = b\"polyclave-seal-1\";"),
    (
        "MAGIC_BOUND",
        "polyclave-seal-2",
        "client/src",
        "const MAGIC_BOUND: &[u8; 16] = b\"polyclave-seal-2\";",
    ),
    ("HEAD", "64", "client/src", "const HEAD: usize = 16 + 16 + 32;"),
    ("frame", "1048576", "transport/src", "Limits { max_frame: 1 << 20, ..Limits::default() }"),
    (
        "MAGIC of envelopes",
        "polyclave-envl-1",
        "client/src",
        "const MAGIC: &[u8; 16] = b\"polyclave-envl-1\";",
    ),
    ("FIXED", "99", "client/src", "const FIXED: usize = 16 + 16 + 32 + 32 + 1 + 2;"),
    ("MAX_OWNER", "255", "client/src", "const MAX_OWNER: usize = 255;"),
    ("RHO", "32", "client/src", "const RHO: usize = 32;"),
    ("CHUNK of envelopes", "1048576", "client/src", "const CHUNK: usize = 1 << 20;"),
    ("MAX_FILE", "68719476736", "client/src", "const MAX_FILE: u64 = 64 << 30;"),
    ("ROUNDS", "10", "cipher/src", "const ROUNDS: u8 = 10;"),
    ("MAX_RADIX", "36", "cipher/src", "const MAX_RADIX: u32 = 36;"),
    ("MAX_TWEAK", "64", "cipher/src", "const MAX_TWEAK: usize = 64;"),
    ("MIN_DOMAIN", "1000000", "cipher/src", "const MIN_DOMAIN: u128 = 1_000_000;"),
    (
        "NODES",
        "5",
        "protocol/src",
        "Versions { of: \"the wire between nodes\", brought: &[(5, \"0.3.0\")], read: Read::LastTwo };",
    ),
    ("frame between nodes", "16777216", "transport/src", "max_frame: 16 << 20,"),
    ("STRANGERS", "256", "transport/src", "const STRANGERS: usize = 256;"),
    ("KINDS", "8", "node/src", "const KINDS: usize = 8;"),
    ("BEAT_EVERY", "500", "node/src", "const BEAT_EVERY: Duration = Duration::from_millis(500);"),
    ("SILENCE", "8", "node/src", "const SILENCE: Duration = Duration::from_secs(8);"),
    ("MEETING", "5", "node/src", "const MEETING: Duration = Duration::from_secs(5);"),
    ("MAKING", "120", "node/src", "const MAKING: Duration = Duration::from_secs(120);"),
    ("NONCE_BYTES", "32", "protocol/src/interface", "const NONCE_BYTES: usize = 32;"),
    ("OPENS", "0", "protocol/src/interface", "const OPENS: u8 = 0;"),
    ("DIFFERS", "1", "protocol/src/interface", "const DIFFERS: u8 = 1;"),
    ("KEY_BYTES", "32", "protocol/src/replicated", "const KEY_BYTES: usize = 32;"),
    ("MAX_PARTIES", "9", "protocol/src/shamir", "const MAX_PARTIES: usize = 9;"),
    ("NOTHING", "0", "node/src/material", "const NOTHING: u8 = 0;"),
    ("STORED", "1", "node/src/material", "const STORED: u8 = 1;"),
    ("AGREED", "2", "node/src/material", "const AGREED: u8 = 2;"),
    ("ANNOUNCEMENT", "33", "node/src/requests", "const ANNOUNCEMENT: usize = 33;"),
    ("PING", "1", "node/src/requests", "const PING: u8 = 1;"),
    ("REQUEST", "2", "node/src/requests", "const REQUEST: u8 = 2;"),
    ("REQUEST_WITH_CIRCUITS", "3", "node/src/requests", "const REQUEST_WITH_CIRCUITS: u8 = 3;"),
    ("REQUEST_AT_ONCE", "4", "node/src/requests", "const REQUEST_AT_ONCE: u8 = 4;"),
    ("ACCEPTED", "1", "node/src/requests", "const ACCEPTED: u8 = 1;"),
    ("REFUSED", "2", "node/src/requests", "const REFUSED: u8 = 2;"),
    ("HELLO", "5", "node/src/requests", "const HELLO: Duration = Duration::from_secs(5);"),
    ("COMPUTE", "45", "node/src/requests", "const COMPUTE: Duration = Duration::from_secs(45);"),
    ("ARRIVAL", "2", "node/src/requests", "const ARRIVAL: Duration = Duration::from_secs(2);"),
    ("GROUP", "128", "protocol/src", "const GROUP: usize = 128;"),
    ("check_value_bytes", "5", "cipher/src", "if cipher.block_bytes >= 16 { 5 } else { 3 }"),
    ("MAX of products", "1048576", "protocol/src/replicated", "const MAX: usize = 1 << 20;"),
    ("MAX_ELEMENTS", "8192", "protocol/src/replicated", "const MAX_ELEMENTS: usize = 1 << 13;"),
    ("ROWS", "8", "protocol/src/replicated", "const ROWS: usize = 8;"),
    ("TILE_BYTES", "64", "kernels/src", "const TILE_BYTES: usize = 64;"),
    ("SLOTS", "16", "protocol/src/replicated", "const SLOTS: usize = 16;"),
    ("PARTS", "16", "kernels/src", "const PARTS: usize = 16;"),
    ("PLACES", "81", "kernels/src", "const PLACES: usize = 81;"),
    ("WIDTH", "64", "protocol/src/replicated", "const WIDTH: usize = 64;"),
    ("ROOT of GF(2^64)", "033ce8beddc8a656", "field/src", "const ROOT: u128 = 0x033c_e8be_ddc8_a656;"),
    ("AHEAD", "1", "protocol/src/shamir", "const AHEAD: u32 = 1;"),
    ("ONLINE", "8", "protocol/src/shamir", "const ONLINE: u32 = 8;"),
    ("SILENCE of requests", "5", "node/src/strategy", "const SILENCE: Duration = Duration::from_secs(5);"),
    (
        "MIN_BYTES_PER_SECOND",
        "16384",
        "protocol/src/interface",
        "const MIN_BYTES_PER_SECOND: u64 = 16 << 10;",
    ),
    ("EXPONENTS", "23", "protocol/src/shamir", "const EXPONENTS: [u8; 23] = ["),
    ("AES_LOOKUPS", "160", "protocol/src/shamir", "const AES_LOOKUPS: usize = 160;"),
    ("TAG_PRODUCTS", "64", "protocol/src/shamir", "const TAG_PRODUCTS: usize = 64;"),
    ("TILE", "2048", "protocol/src/shamir", "const TILE: usize = 2048;"),
    ("MAX_RANGES", "4096", "node/src/material/stock", "const MAX_RANGES: usize = 4096;"),
    ("RANGE", "32", "node/src/material/stock", "const RANGE: usize = 16 + 8 + 8;"),
    ("SPARE_RANGES", "16", "node/src/material/stock", "const SPARE_RANGES: usize = 16;"),
    ("BLOCKS_AT_ONCE", "8", "node/src/material/stock", "const BLOCKS_AT_ONCE: usize = 8;"),
    ("PART_AT_ONCE", "8", "node/src/material/stock", "const PART_AT_ONCE: usize = 8;"),
    ("BYTES_AT_ONCE", "16777216", "node/src/material/stock", "const BYTES_AT_ONCE: usize = 16 << 20;"),
    ("MAX_BYTES of an inventory", "4194304", "node/src/material/stock", "const MAX_BYTES: usize = 4 << 20;"),
    ("PATIENCE of a claim", "3", "node/src/material/stock", "const PATIENCE: Patience = Patience::of(3);"),
    ("LINES", "12", "protocol/src/replicated/four", "const LINES: usize = PARTIES * (PARTIES - 1);"),
    ("TAIL_BYTES", "17", "protocol/src/replicated/four", "const TAIL_BYTES: usize = TAG_BYTES + 1;"),
    ("STEPS", "64", "protocol/src/replicated/four", "const STEPS: u64 = 64;"),
    ("CLAIM_BYTES", "10", "protocol/src/replicated/four", "const CLAIM_BYTES: usize = 4 + 1 + 1 + PARTIES;"),
];

/// A table of a page: the heading before it, and its rows, the first one included.
struct Table {
    heading: String,
    rows: Vec<Vec<String>>,
}

fn tables(page: &str) -> Vec<Table> {
    let (mut heading, mut tables, mut inside) = (String::new(), Vec::<Table>::new(), false);
    for line in book::read(page).lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        let is_row = line.starts_with('|');
        if is_row && !inside {
            tables.push(Table { heading: heading.clone(), rows: Vec::new() });
        }
        inside = is_row;
        if is_row
            && !line.starts_with("|---")
            && let Some(table) = tables.last_mut()
        {
            let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).expect("a whole row");
            table.rows.push(inner.split('|').map(|cell| cell.trim().to_owned()).collect());
        }
    }
    tables
}

/// The tables below a heading, of all pages of the specification.
fn under(heading: &str) -> Vec<Vec<String>> {
    let pages = book::pages().into_iter().map(|page| page.path);
    let pages = pages.filter(|path| path.starts_with("specification/"));
    let tables = pages.flat_map(|page| tables(&page)).filter(|table| table.heading == heading);
    tables.flat_map(|table| table.rows.into_iter().skip(1)).collect()
}

/// What is set as code in a cell.
fn code(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A type of the specification, as the sources write it.
fn rust(kind: &str) -> String {
    match kind.split_once(' ') {
        Some(("option", of)) => format!("Option<{}>", rust(of)),
        Some(("list", of)) => format!("Vec<{}>", rust(of)),
        _ => match kind {
            "bytes" => "Vec<u8>".into(),
            "string" => "String".into(),
            "nodes" => "PartySet".into(),
            "node" => "Party".into(),
            "(string, string)" => "(String, String)".into(),
            _ => match kind.strip_prefix('[') {
                Some(bytes) => format!("[u8; {bytes}"),
                None => kind.into(),
            },
        },
    }
}

/// A type of the sources without what is not on the wire.
fn plain(kind: &str) -> String {
    let inner = kind.strip_prefix("Box<").and_then(|of| of.strip_suffix('>')).unwrap_or(kind);
    let inner = inner.replace("SeedCommitment", "[u8; 32]").replace("ENCAPSULATED", "32");
    inner.replace("DecimalizationTable", "String").replace("FeatureSet", "u64")
}

/// The variants of an enum, each with the names and types of its fields; a field without a name has none.
fn variants(item: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut variants: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in item.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if depth == 4 && text.starts_with(|c: char| c.is_ascii_uppercase()) {
            let name = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            let of = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix("),"));
            let of = of.map(|of| (String::new(), plain(of.rsplit("] ").next().unwrap_or_default())));
            let inline = text.split_once(" { ").and_then(|(_, rest)| rest.strip_suffix(" },"));
            let fields = inline.into_iter().flat_map(|fields| fields.split(", "));
            let fields = fields.filter_map(|field| field.split_once(": "));
            let fields = fields.map(|(name, kind)| (name.to_owned(), plain(kind)));
            variants.push((name.to_owned(), of.into_iter().chain(fields).collect()));
        } else if depth == 8
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && let Some((name, kind)) = text.split_once(": ")
            && let Some((_, fields)) = variants.last_mut()
        {
            fields.push((name.to_owned(), plain(kind.trim_end_matches(','))));
        }
    }
    variants
}

#[test]
fn the_tables_of_messages_are_the_types_of_the_sources() {
    let mut compared = BTreeSet::new();
    let of_page = |(page, folders): (&str, &'static [&str])| {
        tables(page).into_iter().map(move |table| (table, folders))
    };
    for (Table { heading, rows }, folders) in MESSAGES.into_iter().flat_map(of_page) {
        let all: Vec<String> = folders.iter().flat_map(|folder| sources::of(folder)).collect();
        match rows[0][0].as_str() {
            "field" => {
                let of_table: Vec<(String, String)> = rows[1..]
                    .iter()
                    .map(|row| (code(&row[0]).concat(), rust(&code(&row[1]).concat())))
                    .collect();
                let fields = sources::fields(&all, &heading).into_iter();
                let of_struct: Vec<(String, String)> =
                    fields.map(|field| (field.name, plain(&field.kind))).collect();
                assert_eq!(of_table, of_struct, "{heading}");
            }
            "tag" => {
                let field = |field: String| match field.split_once(": ") {
                    Some((name, kind)) => (name.to_owned(), rust(kind)),
                    None => (String::new(), rust(&field)),
                };
                let of_table: Vec<(String, Vec<(String, String)>)> = rows[1..]
                    .iter()
                    .map(|row| (code(&row[1]).concat(), code(&row[2]).into_iter().map(field).collect()))
                    .collect();
                let enums = ["pub enum", "pub(crate) enum"].map(|start| format!("{start} {heading} {{"));
                let is_there = |start: &&String| all.iter().any(|text| text.contains(&format!("\n{start}")));
                let start = enums.iter().find(is_there).unwrap_or_else(|| panic!("no enum {heading}"));
                let of_enum = variants(&sources::item(&all, start));
                assert_eq!(of_table, of_enum, "{heading}");
                let tags: Vec<String> = rows[1..].iter().map(|row| row[0].clone()).collect();
                let in_order: Vec<String> = (0..of_enum.len()).map(|tag| tag.to_string()).collect();
                assert_eq!(tags, in_order, "{heading}");
            }
            _ => continue,
        }
        assert!(compared.insert(heading.clone()), "{heading} is there twice");
    }
    assert!(compared.len() > 60, "{compared:?}");
}

#[test]
fn the_tables_of_constants_are_those_of_the_sources() {
    let shown = [
        ("VERSION", u64::from(api::VERSION)),
        ("CHUNK", api::CHUNK as u64),
        ("MESSAGE", api::MESSAGE as u64),
        ("OPENED", api::OPENED as u64),
        ("MASKED", api::MASKED as u64),
        ("CHAINED", api::CHAINED as u64),
        ("MAX_MESSAGE", api::MAX_MESSAGE as u64),
        ("KEYS", api::KEYS as u64),
        ("MAX_ADDITIONAL_DATA", api::MAX_ADDITIONAL_DATA as u64),
        ("MAX_RANDOM", api::MAX_RANDOM as u64),
        ("MAX_NONCE", api::MAX_NONCE as u64),
        ("MAX_CHAINED", api::MAX_CHAINED as u64),
        ("MAX_CODES", api::MAX_CODES as u64),
        ("MAX_ATTRIBUTES", api::MAX_ATTRIBUTES as u64),
        ("MAX_LABEL", api::MAX_LABEL as u64),
        ("MAX_SESSION", u64::from(api::MAX_SESSION)),
        ("MAX_VALUES", api::MAX_VALUES as u64),
        ("MAX_STRINGS", api::MAX_STRINGS as u64),
        ("MAX_HEADER", api::MAX_HEADER as u64),
        ("FILE_KEY", api::FILE_KEY as u64),
        ("MAX_BLOCKS", api::MAX_BLOCKS),
        ("MAX_SMALL_BLOCKS", api::MAX_SMALL_BLOCKS),
        ("MAX_XAES_BLOCKS", api::MAX_XAES_BLOCKS),
    ];
    let mut known: BTreeMap<String, String> =
        shown.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let of_the_tower = [("OMEGA", OMEGA), ("ZETA", ZETA), ("MU", MU), ("NU", NU)];
    known.extend(of_the_tower.map(|(name, value)| (name.to_owned(), format!("{value:02x}"))));
    for (name, value, folder, declaration) in DECLARED {
        let is_there = sources::of(folder).iter().any(|text| text.contains(declaration));
        assert!(
            is_there,
            "{folder} does not have `{declaration}` any more: see where the specification has it"
        );
        known.insert(name.to_owned(), value.to_owned());
    }
    let rows = under("Constants");
    for row in &rows {
        let name = code(&row[0]).concat();
        assert_eq!(known.get(&name), Some(&row[1]), "{name}");
    }
    let named: BTreeSet<String> = rows.iter().map(|row| code(&row[0]).concat()).collect();
    let declared: BTreeSet<String> = known.into_keys().collect();
    assert_eq!(named, declared);
}

#[test]
fn the_context_strings_are_in_the_sources() {
    let folders = ["cipher/src", "client/src", "config/src", "node/src", "protocol/src", "transport/src"];
    let all: Vec<String> = folders.into_iter().flat_map(sources::of).collect();
    let strings: Vec<String> = under("Context strings").iter().flat_map(|row| code(&row[0])).collect();
    assert!(strings.len() > 8, "{strings:?}");
    let is_there = |written: &str| all.iter().any(|text| text.contains(&format!("\"{written}\"")));
    // The common key has the name of its commitments behind the name of the project.
    let is_composed = is_there("polyclave 2026 {name}");
    for string in strings {
        let name = string.strip_prefix("polyclave 2026 ").filter(|_| is_composed);
        let names = ["common key of replicated sharing", "common key of replicated sharing among four"];
        let is_named = name.is_some_and(|name| names.contains(&name) && is_there(name));
        assert!(is_there(&string) || is_named, "no source has \"{string}\"");
    }
}
