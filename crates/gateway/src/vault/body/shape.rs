//! How deep a body of JSON is and how many values it has, counted as its bytes arrive. A body that is deeper,
//! or has more values, than any request of the API is refused at once: its rest is not waited for, not kept,
//! and not read as JSON.
//!
//! Whether it is JSON at all is not decided here. In a text that is not JSON the counts mean nothing, and
//! reading it fails.

use crate::failure::Failure;
use crate::vault::fields::MAX_ITEMS;

/// Objects and arrays within each other. A batch has three.
const MAX_DEPTH: usize = 300;
/// Values of all objects and arrays together: twenty for each item of a batch.
const MAX_VALUES: usize = 20 * MAX_ITEMS;
/// Bytes of a text that are looked at together.
const TOGETHER: usize = 64;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Shape {
    deep: usize,
    values: usize,
    objects: usize,
    is_in_text: bool,
    /// Whether the byte before was a backslash that begins an escape.
    is_escape: bool,
}

impl Shape {
    /// Counts what the next bytes have.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = rest;
            if self.is_in_text {
                match byte {
                    _ if std::mem::take(&mut self.is_escape) => {}
                    b'"' => self.is_in_text = false,
                    b'\\' => self.is_escape = true,
                    _ => bytes = without_plain(bytes),
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_text = true,
                b'{' | b'[' => {
                    self.deep += 1;
                    self.values += 1;
                    self.objects += usize::from(byte == b'{');
                }
                b'}' | b']' => self.deep = self.deep.saturating_sub(1),
                b',' => self.values += 1,
                _ => {}
            }
            if self.deep > MAX_DEPTH {
                return Err(Failure::Bad(format!(
                    "the body has more than {MAX_DEPTH} objects and arrays within each other"
                )));
            }
            if self.values > MAX_VALUES {
                return Err(Failure::Bad(format!(
                    "the body has more than {MAX_VALUES} values; send a batch in parts"
                )));
            }
        }
        Ok(())
    }

    /// How many objects have begun.
    pub(super) fn objects(&self) -> usize {
        self.objects
    }
}

/// The bytes of a text without leading bytes that neither end it nor begin an escape.
fn without_plain(mut bytes: &[u8]) -> &[u8] {
    while let Some((some, rest)) = bytes.split_first_chunk::<TOGETHER>() {
        if some.iter().fold(false, |found, byte| found | (*byte == b'"') | (*byte == b'\\')) {
            break;
        }
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body has that arrives in pieces of so many bytes: its depth at the end, values, objects.
    fn of(body: &str, piece: usize) -> Result<(usize, usize, usize), Failure> {
        let mut shape = Shape::default();
        body.as_bytes().chunks(piece).try_for_each(|bytes| shape.take(bytes))?;
        Ok((shape.deep, shape.values, shape.objects))
    }

    #[test]
    fn what_stands_in_texts_is_not_counted_however_the_bytes_arrive() {
        let long = "x".repeat(500);
        for (body, expected) in [
            (r#"{"a": [1, 2, {"b": "}"}]}"#.to_owned(), (0, 5, 2)),
            (r#"{"a": "[[[[{{{{,,,,\"[[[", "b": "\\", "c": ["#.to_owned(), (2, 4, 1)),
            (format!(r#"{{"a": "{long}\"{long}{{[,", "b": "{long}\\", "c": [{{"#), (3, 5, 2)),
        ] {
            for piece in [1, 2, 3, 7, 64, 65, 1 << 20] {
                assert_eq!(of(&body, piece), Ok(expected), "{body} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_body_is_refused_with_the_byte_that_makes_it_too_deep_or_too_large() {
        let mut shape = Shape::default();
        assert_eq!(shape.take("[".repeat(MAX_DEPTH).as_bytes()), Ok(()));
        assert!(
            matches!(shape.take(b"["), Err(Failure::Bad(message)) if message.contains("within each other"))
        );
        let mut shape = Shape::default();
        assert_eq!(shape.take("[]".repeat(MAX_VALUES).as_bytes()), Ok(()));
        assert!(matches!(shape.take(b","), Err(Failure::Bad(message)) if message.contains("values")));
    }

    #[test]
    fn the_largest_batch_fits_with_all_fields_of_each_item() {
        let fields: Vec<String> = (0..10).map(|n| format!("\"f{n}\":\"\"")).collect();
        let item = format!("{{{}}}", fields.join(","));
        let body = format!("{{\"batch_input\":[{}{item}]}}", format!("{item},").repeat(MAX_ITEMS - 1));
        let (deep, _, objects) = of(&body, 64 << 10).expect("it fits");
        assert_eq!((deep, objects), (0, MAX_ITEMS + 1));
    }
}
