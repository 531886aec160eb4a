//! Fuzz targets: foreign bytes in place of a line of the audit log.

use polyclave_harness::{fuzz, within_memory};

use super::line::Line;
use super::verify::Reading;
use super::{Event, gap};

/// A line has a hash over it, so hardly any changed line is accepted.
#[test]
fn a_line_that_is_read_is_as_it_was_written_and_no_other_bytes_panic() {
    let event = |operation, detail| Event { detail, blocks: 3, ..Event::of_node(operation, "done") };
    let line =
        |event: &Event, head| Line::new(event, "2026-11-23T10:00:00Z".into(), head, head.0 / 2).to_text();
    let long = "a=1,b=2 ".repeat(200);
    let since = gap::detail(&gap::begun("2026-11-23T10:00:00Z".into()));
    let texts = [
        line(&event("start", ""), (0, [0; 32])),
        line(&event("generate", &long), (7, [5; 32])),
        line(&event(gap::OPERATION, &since), (u64::MAX - 1, [9; 32])),
    ];
    let valid = texts.map(|text| text.trim_end().as_bytes().to_vec()).to_vec();
    let words =
        ["{", "}", "\"seq\":", "\"time\":", "\"detail\":", "\"hash\":", "\\u0041", ",", "null", "1e3", " "];
    fuzz!("audit-lines", &words, valid, |bytes: &[u8]| {
        within_memory((16 << 10) + 16 * bytes.len(), || {
            if let Some(line) = Line::parse(bytes) {
                assert_eq!(line.to_text().trim_end().as_bytes(), bytes);
                let _ = gap::of(&line);
            }
        });
    });
}

/// The hash takes no key, so a log may contain anything with correct hashes. This target reaches every field.
/// Its input is a number, blocks, the kind of the line, and a length, followed by the detail.
#[test]
fn no_log_of_lines_with_the_right_hashes_panics() {
    const OPERATIONS: [&str; 6] =
        ["encrypt", super::STARTED, super::STOPPED, super::DISCARDED, super::RESTORED, gap::OPERATION];
    let line = |seq: u64, blocks: u64, of: u8, detail: &str| {
        let numbers = [seq.to_le_bytes(), blocks.to_le_bytes()].concat();
        [&numbers[..], &[of, detail.len() as u8], detail.as_bytes()].concat()
    };
    let gap = gap::detail(&gap::begun("2026-11-23T10:00:00Z".into()));
    let valid = vec![
        [line(1, 0, 1, ""), line(2, 4, 0, "cipher=aes-128"), line(3, 9, 5, &gap), line(4, 0, 2, "")].concat(),
        [line(8, 7, 3, ""), line(9, 0, 16, "")].concat(),
        [line(u64::MAX, u64::MAX, 4, ""), line(0, 0, 0, "")].concat(),
    ];
    fuzz!("audit-logs", &["since=", "served=", " ", "-1", "?"], valid, |bytes: &[u8]| {
        let (mut reading, mut rest) = (Reading::default(), bytes);
        while let Some((head, behind)) = rest.split_first_chunk::<18>() {
            let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
            let (detail, behind) = behind.split_at(behind.len().min(usize::from(head[17])));
            rest = behind;
            let operation = OPERATIONS[usize::from(head[16] & 15) % OPERATIONS.len()];
            let outcome = if head[16] & 16 == 0 { "done" } else { super::BEGUN };
            let detail = String::from_utf8_lossy(detail);
            let event = Event { detail: &detail, blocks: number(8), ..Event::of_node(operation, outcome) };
            let before = (number(0).wrapping_sub(1).min(u64::MAX - 1), reading.found.head.1);
            let line = Line::new(&event, "2026-11-23T10:00:00Z".into(), before, number(8));
            let again = Line::parse(line.to_text().trim_end().as_bytes()).expect("it is as it was written");
            assert!(again == line);
            if reading.follow(&line).is_err() {
                return;
            }
            reading.take(line);
            let _ = reading.is_beheaded();
        }
    });
}
