//! The items of a structure, of which each is read once. An item that is not expected is refused: it might
//! change what is asked for.

use super::refused::{Reason, Result};
use super::ttlv::{Item, Value};

/// The items of a structure that are not read yet.
pub(super) struct Fields<'m>(pub(super) Vec<Item<'m>>);

impl<'m> Fields<'m> {
    /// Takes what has a tag, at most once.
    pub(super) fn take(&mut self, tag: u32) -> Result<Option<Value<'m>>> {
        let mut found = self.all(tag);
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(Reason::InvalidMessage.because(format!("the item {tag:06X} stands there twice"))),
        }
    }

    /// Takes all that have a tag.
    pub(super) fn all(&mut self, tag: u32) -> Vec<Value<'m>> {
        self.0.extract_if(.., |item| item.tag == tag).map(|item| item.value).collect()
    }

    pub(super) fn structure(&mut self, tag: u32) -> Result<Option<Fields<'m>>> {
        self.typed(tag, |value| if let Value::Structure(of) = value { Some(Fields(of)) } else { None })
    }

    pub(super) fn integer(&mut self, tag: u32) -> Result<Option<i32>> {
        self.typed(tag, |value| if let Value::Integer(of) = value { Some(of) } else { None })
    }

    /// A number that is not negative.
    pub(super) fn count(&mut self, tag: u32) -> Result<Option<usize>> {
        let negative = |_| Reason::InvalidField.because(format!("the item {tag:06X} is negative"));
        self.integer(tag)?.map(|count| usize::try_from(count).map_err(negative)).transpose()
    }

    pub(super) fn enumeration(&mut self, tag: u32) -> Result<Option<u32>> {
        self.typed(tag, |value| if let Value::Enumeration(of) = value { Some(of) } else { None })
    }

    pub(super) fn boolean(&mut self, tag: u32) -> Result<Option<bool>> {
        self.typed(tag, |value| if let Value::Boolean(of) = value { Some(of) } else { None })
    }

    pub(super) fn text(&mut self, tag: u32) -> Result<Option<&'m str>> {
        self.typed(tag, |value| if let Value::Text(of) = value { Some(of) } else { None })
    }

    pub(super) fn bytes(&mut self, tag: u32) -> Result<Option<&'m [u8]>> {
        self.typed(tag, |value| if let Value::Bytes(of) = value { Some(of) } else { None })
    }

    /// Seconds since 1970.
    pub(super) fn time(&mut self, tag: u32) -> Result<Option<i64>> {
        self.typed(tag, |value| if let Value::DateTime(of) = value { Some(of) } else { None })
    }

    fn typed<T>(&mut self, tag: u32, of: impl FnOnce(Value<'m>) -> Option<T>) -> Result<Option<T>> {
        let wrong = || Reason::InvalidMessage.because(format!("the item {tag:06X} has a wrong type"));
        self.take(tag)?.map(|value| of(value).ok_or_else(wrong)).transpose()
    }

    /// Refuses what was not read.
    pub(super) fn end(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(item) => {
                let why = format!("the item {:06X} is not served here", item.tag);
                Err(Reason::InvalidField.because(why))
            }
        }
    }
}
