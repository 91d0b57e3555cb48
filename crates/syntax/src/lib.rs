//! SQL as text: PostgreSQL's grammar ([`parser`]) and PL/pgSQL's ([`plpgsql`]).
//!
//! ```
//! use syntax::parser;
//! let statements = parser::parse("select 1; commit").unwrap();
//! assert_eq!(statements.len(), 2);
//! ```
//! Trees only: what a name means is nobody's business here.

pub mod parser;
pub mod plpgsql;
