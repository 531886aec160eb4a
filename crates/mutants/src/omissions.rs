//! Mutants that leave something out: a statement that calls, the body of an `if`, the last call of a
//! function, what happens to an error.

use std::ops::Range;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, ExprIf, ExprMethodCall, File, ItemFn, ItemMod, Stmt};

use crate::mutant::Change;

/// Name and change of each of them.
pub fn changes(file: &Path, text: &str, syntax: &File) -> Vec<(String, Change)> {
    let mut found = Omissions { text, changes: Vec::new() };
    found.visit_file(syntax);
    let name = |line: usize, what: String| format!("{}:{line}: {what}", file.display());
    found.changes.into_iter().map(|(line, what, change)| (name(line, what), change)).collect()
}

struct Omissions<'a> {
    text: &'a str,
    /// Line, description and change.
    changes: Vec<(usize, String, Change)>,
}

impl Omissions<'_> {
    fn source(&self, node: &impl Spanned) -> (usize, Range<usize>, String) {
        let span = node.span();
        let bytes = span.byte_range();
        let words: Vec<&str> = self.text[bytes.clone()].split_whitespace().collect();
        (span.start().line, bytes, words.join(" "))
    }

    fn omit(&mut self, statement: &Stmt) {
        let (line, host, source) = self.source(statement);
        self.changes.push((line, format!("omit {source}"), Change::Omit { host }));
    }

    fn replace(&mut self, node: &impl Spanned, by: &str) {
        let (line, host, source) = self.source(node);
        self.changes.push((
            line,
            format!("replace {source} with {by}"),
            Change::Replace { host, by: by.to_owned() },
        ));
    }
}

fn calls(expression: &Expr) -> bool {
    match expression {
        Expr::Try(inner) => calls(&inner.expr),
        Expr::Call(call) => !makes_a_value(&call.func),
        Expr::Await(_) | Expr::MethodCall(_) => true,
        _ => false,
    }
}

/// Whether this is `Ok`, `Some` or another variant.
fn makes_a_value(callee: &Expr) -> bool {
    let Expr::Path(path) = callee else { return false };
    let last = path.path.segments.last().map(|segment| segment.ident.to_string());
    last.is_some_and(|name| name.starts_with(char::is_uppercase))
}

/// Whether this is compiled for tests only.
fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    })
}

impl<'ast> Visit<'ast> for Omissions<'_> {
    fn visit_item_mod(&mut self, node: &'ast ItemMod) {
        if !of_tests(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        if !of_tests(&node.attrs) {
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_block(&mut self, node: &'ast Block) {
        let last = node.stmts.len().saturating_sub(1);
        for (at, statement) in node.stmts.iter().enumerate() {
            match statement {
                Stmt::Expr(expression, Some(_)) if calls(expression) => self.omit(statement),
                // What does not fit is found by the compiler: only a result without a value can be `Ok(())`.
                Stmt::Expr(expression, None) if at == last && last > 0 && calls(expression) => {
                    self.replace(expression, "Ok(())");
                }
                _ => {}
            }
        }
        visit::visit_block(self, node);
    }

    fn visit_expr_if(&mut self, node: &'ast ExprIf) {
        // An operator that is the whole condition has mutants already, but none that always says no.
        if !self.source(&node.cond).2.contains("let ") {
            self.replace(&node.cond, "false");
        }
        visit::visit_expr_if(self, node);
    }

    fn visit_expr_method_call(&mut self, node: &'ast ExprMethodCall) {
        if node.method == "inspect_err" {
            let receiver = self.text[node.receiver.span().byte_range()].to_owned();
            let (line, host, source) = self.source(node);
            self.changes.push((
                line,
                format!("omit inspect_err of {source}"),
                Change::Replace { host, by: receiver },
            ));
        }
        visit::visit_expr_method_call(self, node);
    }
}
