//! The file of a protocol: a line for each message.

use super::client::Client;
use super::recorder::Sent;
use super::{CIPHER, CLUSTER, MEMORY, Record, TIME, seed};

/// The text of the file.
pub(super) fn file(protocol: &str, records: &[Record], requests: &[(&str, Vec<u8>)]) -> String {
    let mut sent: Vec<&Sent> = records.iter().flat_map(|record| &record.sent).collect();
    sent.sort_by_key(|message| (message.place, message.from));
    let head = [
        ("protocol", text(protocol)),
        ("nodes", records.len().to_string()),
        ("cipher", text(CIPHER)),
        ("digest of the cluster file", hex(&CLUSTER)),
        ("memory of a request", MEMORY.to_string()),
        ("time", TIME.to_string()),
    ];
    let mut lines: Vec<String> =
        head.iter().map(|(name, value)| format!(" {}: {value},", text(name))).collect();
    let of = ["client".to_owned()].into_iter().chain((0..records.len()).map(|node| format!("node {node}")));
    let seeds =
        of.map(|of| format!("{}: {}", text(&of), text(&String::from_utf8_lossy(&seed(protocol, &of)))));
    lines.push(format!(" \"seeds\": {{{}}},", seeds.collect::<Vec<_>>().join(", ")));
    let first = &records[0];
    let all = [
        ("client", &Client::shown()[..]),
        ("requests", requests),
        ("circuits", &first.circuits[..]),
        ("found", &first.found[..]),
    ];
    lines.extend(all.map(|(name, values)| {
        let values = values.iter().map(|(name, value)| format!("  {}: {}", text(name), hex(value)));
        format!(" {}: {{\n{}\n }},", text(name), values.collect::<Vec<_>>().join(",\n"))
    }));
    let steps: Vec<String> = sent.chunk_by(|a, b| a.place[0] == b.place[0]).map(step).collect();
    format!("{{\n{}\n \"steps\": [\n{}\n ]\n}}\n", lines.join("\n"), steps.join(",\n"))
}

/// The messages of a step.
fn step(sent: &[&Sent]) -> String {
    let messages: Vec<String> = sent.iter().map(|message| format!("  {}", line(message))).collect();
    let [phase, step] = sent.first().map(|first| [first.phase, first.step]).unwrap_or_default().map(text);
    format!(" {{\"phase\": {phase}, \"step\": {step}, \"messages\": [\n{}]}}", messages.join(",\n"))
}

fn line(Sent { place, from, to, bytes, .. }: &Sent) -> String {
    let to: Vec<String> = to.iter().map(|peer| peer.0.to_string()).collect();
    let to = if to.is_empty() { text("client") } else { format!("[{}]", to.join(", ")) };
    format!("{{\"exchange\": {}, \"from\": {}, \"to\": {to}, \"bytes\": {}}}", place[1], from.0, hex(bytes))
}

/// Names and seeds have nothing that would have to be escaped.
fn text(words: &str) -> String {
    format!("\"{words}\"")
}

fn hex(bytes: &[u8]) -> String {
    text(&hex::encode(bytes))
}
