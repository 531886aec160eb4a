//! Times of one run of the command: what several tables want is measured once.

use anyhow::Result;

use crate::bench::{EXPANSION, Rates, Setting};

/// Measures, and remembers.
pub struct Timer {
    blocks: Option<usize>,
    taken: Vec<(Setting, Rates)>,
}

impl Timer {
    /// With so many blocks in every batch, if that is said.
    pub fn new(blocks: Option<usize>) -> Timer {
        Timer { blocks, taken: Vec::new() }
    }

    /// Blocks in a batch: as asked for, or so many.
    pub fn blocks_or(&self, otherwise: usize) -> usize {
        self.blocks.unwrap_or(otherwise)
    }

    /// Measures a setting, unless that has been done. Returns what was measured, and a note that says under which conditions.
    pub fn rates(&mut self, setting: Setting) -> Result<(Rates, String)> {
        let setting = Setting { blocks: self.blocks_or(setting.blocks), ..setting };
        let note = conditions(&setting);
        if let Some((_, rates)) = self.taken.iter().find(|(taken, _)| *taken == setting) {
            return Ok((*rates, note));
        }
        let rates = setting.measure()?;
        self.taken.push((setting, rates));
        Ok((rates, note))
    }
}

/// Says if times of this build mean nothing.
pub fn build() -> &'static str {
    if cfg!(debug_assertions) { "; not a release build: no measure of anything" } else { "" }
}

/// What a time depends on.
fn conditions(setting: &Setting) -> String {
    let Setting { parties, threads, blocks, repeats, preprocessing, .. } = setting;
    let build = build();
    let material = match preprocessing {
        Some("mascot") => format!(" material from mascot with expansion {EXPANSION},"),
        Some(source) => format!(" material from {source},"),
        None => String::new(),
    };
    format!(
        "timed here: {parties} processes on one machine, TLS over loopback, {threads} thread(s) each, {blocks} blocks in a batch,\
         {material} median of {repeats}{build}"
    )
}
