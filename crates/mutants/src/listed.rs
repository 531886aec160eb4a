//! The mutants that cargo-mutants lists, as changes that a switch can turn on.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, ExprBinary, ExprUnary, File, Pat};

use crate::mutant::Change;

/// A mutant in the words of cargo-mutants.
#[derive(Deserialize)]
pub struct Listed {
    file: PathBuf,
    genre: String,
    name: String,
    replacement: String,
    span: Lines,
}

#[derive(Deserialize)]
struct Lines {
    start: Place,
    end: Place,
}

/// Both count from 1; columns are characters.
#[derive(Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

/// The mutants of these files of a package.
pub fn mutants(tree: &Path, package: &str, files: &[PathBuf]) -> Result<Vec<Listed>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json", "--package", package, "--dir"]).arg(tree);
    for file in files {
        command.arg("--file").arg(file);
    }
    let output = command.output().context("cargo does not start")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cargo-mutants failed (install it: cargo install cargo-mutants --locked): {error}"
    );
    serde_json::from_slice(&output.stdout).context("cargo-mutants printed what is no list")
}

/// Name and change of each of these mutants that is of this file.
pub fn changes(listed: &[Listed], file: &Path, text: &str, syntax: &File) -> Vec<(String, Change)> {
    let mut places = Places::default();
    places.visit_file(syntax);
    let starts = line_starts(text);
    let byte = |place: &Place| {
        let line = &text[starts[place.line - 1]..];
        starts[place.line - 1] + line.char_indices().nth(place.column - 1).map_or(line.len(), |(at, _)| at)
    };
    let of_file = listed.iter().filter(|mutant| mutant.file == file);
    of_file
        .map(|mutant| {
            let span = byte(&mutant.span.start)..byte(&mutant.span.end);
            let change = places.change(mutant, span, text).unwrap_or(Change::Other);
            (mutant.name.clone(), change)
        })
        .collect()
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// What can be changed, by the bytes that cargo-mutants names: those of an operator, a condition or an arm.
#[derive(Default)]
struct Places {
    /// Operator to left and right side.
    binary: HashMap<Range<usize>, (Range<usize>, Range<usize>)>,
    /// Operator to operand.
    unary: HashMap<usize, Range<usize>>,
    /// Arm to the end of its pattern, and its condition.
    arms: HashMap<usize, (usize, Option<Range<usize>>)>,
}

impl Places {
    fn change(&self, mutant: &Listed, span: Range<usize>, text: &str) -> Option<Change> {
        let value = mutant.replacement.clone();
        match mutant.genre.as_str() {
            "FnValue" => Some(Change::Return { at: span.start, value }),
            "BinaryOperator" => {
                let (left, right) = self.binary.get(&span)?.clone();
                let by = format!("{} {value} {}", &text[left.clone()], &text[right.clone()]);
                Some(Change::Replace { host: left.start..right.end, by })
            }
            "UnaryOperator" => {
                let operand = self.unary.get(&span.start)?.clone();
                Some(Change::Replace { host: span.start..operand.end, by: text[operand].to_owned() })
            }
            "MatchArmGuard" => Some(Change::Replace { host: span, by: value }),
            "MatchArm" => {
                let (pattern_end, guard) = self.arms.get(&span.start)?.clone();
                Some(Change::NeverTaken { pattern_end, guard })
            }
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, node: &'ast ExprBinary) {
        let sides = (node.left.span().byte_range(), node.right.span().byte_range());
        self.binary.insert(node.op.span().byte_range(), sides);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast ExprUnary) {
        self.unary.insert(node.op.span().byte_range().start, node.expr.span().byte_range());
        visit::visit_expr_unary(self, node);
    }

    fn visit_arm(&mut self, node: &'ast Arm) {
        let guard = match &node.pat {
            Pat::Guard(guarded) => Some(guarded.guard.span().byte_range()),
            _ => None,
        };
        self.arms.insert(node.span().byte_range().start, (node.pat.span().byte_range().end, guard));
        visit::visit_arm(self, node);
    }
}
