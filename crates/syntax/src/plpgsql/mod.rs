//! PL/pgSQL: the language of DO blocks.
//!
//! [`parse`] turns the text of a block into the tree of [`ast`]. The language's own grammar is
//! small, and everything between its keywords is SQL: expressions and statements stay text here,
//! with their places, and go to SQL's parser when the block is prepared.

pub mod ast;
pub mod conditions;
mod cursors;
pub mod parse;

#[cfg(test)]
mod tests;
