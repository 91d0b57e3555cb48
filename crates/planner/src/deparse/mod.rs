//! Bound expressions as text, exactly as PostgreSQL prints them in `\d`, `pg_get_expr` and
//! `pg_get_constraintdef`.
//!
//! An expression is bound first, so that what was left open is written out:
//!
//! ```text
//! check (a > 1 and b like 'x%')      CHECK (((a > 1) AND (b ~~ 'x%'::text)))
//! the same, pretty                   CHECK (a > 1 AND b ~~ 'x%'::text)
//! ```
//!
//! [`Names`] says what columns are called; queries inside expressions are left to it too.
//!
//! # Rules
//! - Without *pretty*, every operator stands in parentheses; with it, only where it must.
//! - A cast that nobody wrote is shown where it is an operand or an argument, and hidden elsewhere.
//! - A constant has a type label unless its text alone says its type.

mod decompiled;
mod expression;
pub(crate) mod layout;
mod window;
mod words;

pub use decompiled::{decompiled, folded, Values};
pub use expression::{expression, is_call, is_operation, Names, Style};
pub use window::{sort_key, window};
