//! What fits a mode whose messages the nodes take whole.

use crate::operations::Message;

impl Message {
    /// Checks that its mode takes it, with a tag of `tag_bytes` bytes. The error says what does not fit.
    pub fn check(&self, tag_bytes: usize) -> Result<(), String> {
        let Message { mode, nonce, additional, bytes } = self;
        let Some(most) = mode.facts().whole else {
            return Err(format!("{mode} does not take messages whole"));
        };
        if let Some(nonce) = nonce {
            mode.check_nonce(nonce.len())?;
        }
        mode.check_tag(tag_bytes)?;
        if additional.len() > most.strings {
            let (given, most) = (additional.len(), most.strings);
            let strings = if most == 1 { "string" } else { "strings" };
            return Err(format!("{mode} takes at most {most} {strings} of additional data, not {given}"));
        }
        let given: usize = additional.iter().map(Vec::len).sum();
        if given > most.additional {
            return Err(format!(
                "{mode} takes at most {} bytes of additional data, not {given}",
                most.additional
            ));
        }
        if *bytes as usize > most.message {
            return Err(format!(
                "{mode} takes messages of at most {} bytes, because it is slow, not {bytes}; use gcm for longer ones",
                most.message
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{MAX_ADDITIONAL_DATA, MAX_CHAINED, MAX_STRINGS, Mode};

    use super::*;

    fn message(mode: Mode) -> Message {
        Message { mode, nonce: None, additional: Vec::new(), bytes: 1 }
    }

    fn refused(message: &Message, tag_bytes: usize) -> String {
        message.check(tag_bytes).expect_err("refused")
    }

    #[test]
    fn each_mode_takes_messages_up_to_its_limits() {
        for mode in Mode::ALL {
            let Some(most) = mode.most_whole() else {
                assert!(refused(&message(mode), 16).contains("does not take messages whole"));
                continue;
            };
            let longest = Message { bytes: most as u32, ..message(mode) };
            assert_eq!(longest.check(16), Ok(()));
            let longer = Message { bytes: most as u32 + 1, ..longest };
            assert!(refused(&longer, 16).contains(&format!("at most {most} bytes")), "{mode}");
            assert!(refused(&message(mode), 7).starts_with(&format!("{mode} has tags of ")));
            let nonce = |bytes| Message { nonce: Some(vec![1; bytes]), ..message(mode) };
            let fitting: Vec<usize> = (0..20).filter(|bytes| nonce(*bytes).check(16).is_ok()).collect();
            assert_eq!(fitting, mode.nonce_bytes().into_iter().flatten().collect::<Vec<_>>(), "{mode}");
        }
        assert_eq!(Mode::Ccm.most_whole(), Some(MAX_CHAINED));
    }

    #[test]
    fn additional_data_have_so_many_strings_and_bytes() {
        let with = |mode, strings: usize, bytes| Message {
            additional: vec![vec![1; bytes]; strings],
            ..message(mode)
        };
        assert_eq!(with(Mode::Siv, MAX_STRINGS, 1).check(16), Ok(()));
        assert!(refused(&with(Mode::Siv, MAX_STRINGS + 1, 1), 16).contains("at most 16 strings"));
        assert_eq!(with(Mode::Ccm, 1, MAX_ADDITIONAL_DATA).check(8), Ok(()));
        assert!(
            refused(&with(Mode::Ccm, 1, MAX_ADDITIONAL_DATA + 1), 8).contains("bytes of additional data")
        );
        assert!(refused(&with(Mode::Ccm, 2, 1), 8).contains("at most 1 string of additional data"));
    }
}
