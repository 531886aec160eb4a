//! The measured times of one run of the command. What several tables need is measured once.

use anyhow::Result;

use crate::bench::{EXPANSION, Rates, Setting};

/// The size of a quick measurement.
const QUICK_BLOCKS: usize = 4;
const QUICK_SAMPLES: usize = 3;

/// Measures settings, and remembers the results.
pub struct Timer {
    blocks: Option<usize>,
    quick: bool,
    taken: Vec<(Setting, Rates)>,
}

impl Timer {
    /// A timer. `blocks` overrides the number of blocks in every batch; `quick` means few blocks, once.
    pub fn new(blocks: Option<usize>, quick: bool) -> Timer {
        Timer { blocks, quick, taken: Vec::new() }
    }

    /// Blocks in a batch: as asked for, or `otherwise`.
    pub fn blocks_or(&self, otherwise: usize) -> usize {
        self.blocks.unwrap_or(if self.quick { otherwise.min(QUICK_BLOCKS) } else { otherwise })
    }

    /// Measures a setting, unless that has been done. Returns the result, and a note about the conditions.
    pub fn rates(&mut self, setting: Setting) -> Result<(Rates, String)> {
        let setting = self.shortened(setting);
        let note = conditions(&setting);
        if let Some((_, rates)) = self.taken.iter().find(|(taken, _)| *taken == setting) {
            return Ok((*rates, note));
        }
        let rates = setting.measure()?;
        self.taken.push((setting, rates));
        Ok((rates, note))
    }
}

impl Timer {
    /// The setting with as many blocks as are asked for; or with few, once, if it is to be quick.
    fn shortened(&self, setting: Setting) -> Setting {
        let mut setting = Setting { blocks: self.blocks_or(setting.blocks), ..setting };
        if self.quick {
            setting.repeats = 1;
            setting.latency_samples = setting.latency_samples.min(QUICK_SAMPLES);
        }
        setting
    }
}

/// A warning if times of this build mean nothing.
pub fn build() -> &'static str {
    if cfg!(debug_assertions) { "; not a release build: no measure of anything" } else { "" }
}

/// The conditions of a time.
fn conditions(setting: &Setting) -> String {
    let Setting { parties, threads, blocks, repeats, options, .. } = setting;
    let source = options.iter().find(|(option, _)| *option == "preprocessing").map(|(_, source)| *source);
    let build = build();
    let material = match source {
        Some("mascot") => format!(" material from mascot with expansion {EXPANSION},"),
        Some(source) => format!(" material from {source},"),
        None => String::new(),
    };
    format!(
        "timed here: {parties} processes on one machine, TLS over loopback, {threads} thread(s) each, {blocks} blocks in a batch,\
         {material} median of {repeats}{build}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::Form;

    #[test]
    fn quick_measures_less_and_what_is_asked_for_is_measured() {
        let setting = Setting {
            protocol: "shamir",
            cipher: "aes-128",
            form: Form::Tables,
            parties: 3,
            threads: 1,
            options: vec![],
            blocks: 1024,
            repeats: 3,
            latency_samples: 0,
        };
        let of = |timer: Timer| {
            let Setting { blocks, repeats, latency_samples, .. } = timer.shortened(setting.clone());
            (blocks, repeats, latency_samples)
        };
        assert_eq!(of(Timer::new(None, false)), (1024, 3, 0));
        assert_eq!(of(Timer::new(Some(7), false)), (7, 3, 0));
        assert_eq!(of(Timer::new(None, true)), (QUICK_BLOCKS, 1, 0));
    }
}
