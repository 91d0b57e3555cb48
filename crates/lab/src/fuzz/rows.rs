//! Rows as values, and parts of arrays: read, compared, assigned to.

use super::expression::{Column, Writer};
use super::statement::{fixed, Table};
use super::tree::{Kind, Tree};
use super::values::pick;

impl Writer<'_> {
    fn pair(&mut self, types: (u32, u32), depth: usize) -> Tree {
        let (one, other) = (self.value(types.0, depth), self.value(types.1, depth));
        fixed("(").piece(one).text(", ").piece(other).text(")")
    }

    /// Two rows beside one another, or one beside a query's.
    pub fn rows_compared(&mut self, tree: Tree, depth: usize) -> Tree {
        let types = (self.any_comparable(), self.any_comparable());
        let one = self.pair(types, depth);
        match self.below(4) {
            0 => {
                self.note("rows distinct");
                let words = [" is distinct from ", " is not distinct from "];
                let word = pick(self.random, &words);
                let other = self.pair(types, depth);
                tree.text("row")
                    .piece(one)
                    .text(word)
                    .text("row")
                    .piece(other)
            }
            1 => {
                self.note("row is null");
                let word = pick(self.random, &[" is null", " is not null"]);
                tree.text("row").piece(one).text(word)
            }
            kind => {
                let words = match kind {
                    2 => ["in", "not in", "< any", ">= all"],
                    _ => ["=", "<>", "<", ">="],
                };
                self.note("row and query");
                let word = pick(self.random, &words);
                let (a, b) = (self.value(types.0, depth), self.value(types.1, depth));
                tree.piece(one)
                    .text(format!(" {word} (select "))
                    .piece(a)
                    .text(", ")
                    .piece(b)
                    .text(")")
            }
        }
    }

    /// A slice of an array.
    pub fn slice(&mut self, of: u32, depth: usize) -> Tree {
        self.note("slice");
        let array = self.value(of, depth);
        let bounds = [
            "1:2", ":2", "2:", ":", "0:1", "2:1", "1:1][1:1", "null:1", "-1:1",
        ];
        let bound = pick(self.random, &bounds);
        Tree::of(Kind::Value(of), "(")
            .piece(array)
            .text(format!(")[{bound}]"))
    }

    /// What UPDATE sets of a table whose columns these are; none where it has too few.
    pub fn set_of_rows(&mut self, table: &Table, settable: &[Column]) -> Option<Tree> {
        let column = &settable[self.below(settable.len())];
        if let Some(element) = self.catalog.element_of(column.of) {
            self.note("set element");
            let tree = fixed(format!("update {} set {}", table.name, column.sql));
            return Some(match self.below(2) {
                0 => {
                    let at = pick(self.random, &["1", "3", "0", "-2"]);
                    let value = self.value(element, 1);
                    tree.text(format!("[{at}] = ")).piece(value)
                }
                _ => {
                    let at = pick(self.random, &["1:2", "2:3", ":1", "0:0"]);
                    let value = self.value(column.of, 1);
                    tree.text(format!("[{at}] = ")).piece(value)
                }
            });
        }
        let mut plain = settable.iter().filter(|column| column.sql != "ref");
        let (one, other) = (plain.next()?.clone(), plain.next()?.clone());
        self.note("set row");
        let values = (self.value(one.of, 1), self.value(other.of, 1));
        let (before, after) = pick(self.random, &[("(select ", ")"), ("row(", ")"), ("(", ")")]);
        let tree = fixed(format!(
            "update {} set ({}, {}) = {before}",
            table.name, one.sql, other.sql
        ));
        Some(tree.piece(values.0).text(", ").piece(values.1).text(after))
    }
}
