//! What ALTER TABLE computes for rows that are there, and stored text whose names change.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::expr::Place;
use super::scope::Scope;
use super::write::target_scope;
use super::Binder;
use crate::plan::{compile, Program};
use crate::plan::{Expr, ExprKind};
use catalog::Table;
use functions::strings::quote_identifier;
use functions::CastContext;
use syntax::parser::{self, TokenKind};
use types::TypeId;

/// What stands before a stored expression when it is parsed.
const BEFORE_STORED: usize = "SELECT ".len();

impl Binder<'_> {
    /// The value of a column as one of another type: by an expression over the row, or by a cast.
    ///
    /// # Errors
    /// 42804 when it cannot become one.
    pub fn conversion(
        &mut self,
        table: &Arc<Table>,
        place: usize,
        (ty, typmod): (TypeId, i32),
        using: Option<&Node>,
    ) -> Result<Program> {
        let column = &table.columns[place];
        let value = match using {
            Some(node) => {
                let scope = target_scope(table, &table.name);
                self.node(node, &scope, Place::plain("ALTER COLUMN TYPE"))?
            }
            None => {
                let mut own = Expr::new(ExprKind::Column(place), column.type_id, -1);
                own.typmod = column.typmod;
                own.domain = column.domain;
                own
            }
        };
        match self.try_coerce(value, ty, typmod, CastContext::Assignment)? {
            Ok(value) => Ok(compile(&value)),
            Err(_) => {
                let (what, hint) = match using {
                    None => (
                        format!("column \"{}\"", column.name),
                        format!(
                            "You might need to specify \"USING {}::{ty}\".",
                            quote_identifier(&column.name)
                        ),
                    ),
                    Some(_) => (
                        format!("result of USING clause for column \"{}\"", column.name),
                        "You might need to add an explicit cast.".to_owned(),
                    ),
                };
                let message = format!("{what} cannot be cast automatically to type {ty}");
                Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint))
            }
        }
    }

    /// Checks that the default of a column can be one of another type.
    ///
    /// # Errors
    /// 42804 when it cannot.
    pub fn check_retyped_default(
        &mut self,
        table: &Arc<Table>,
        place: usize,
        (ty, typmod): (TypeId, i32),
    ) -> Result<()> {
        let column = &table.columns[place];
        let Some(text) = &column.default else {
            return Ok(());
        };
        let default = match column.generated {
            true => self.stored(text, &target_scope(table, &table.name), Place::GENERATED)?,
            false => self.stored(text, &Scope::default(), Place::DEFAULT)?,
        };
        match self.try_coerce(default, ty, typmod, CastContext::Assignment)? {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "default for column \"{}\" cannot be cast automatically to type {ty}",
                    column.name
                ),
            )),
        }
    }

    /// The default of a column, and whether each row needs a value of its own.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn default_program(&mut self, table: &Table, place: usize) -> Result<(Program, bool)> {
        let default = self.default(table, place)?;
        Ok((compile(&default), default.any(&Expr::is_volatile_call)))
    }

    /// A stored expression over a table's columns as it reads once one of them has another name.
    /// Names of tables before columns are left away.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn with_renamed_column(
        &mut self,
        text: &str,
        table: &Arc<Table>,
        renamed: Option<(usize, &str)>,
    ) -> Result<String> {
        let scope = target_scope(table, &table.name);
        let bound = self.stored(text, &scope, Place::CHECK)?;
        let mut found: Vec<(usize, usize)> = Vec::new();
        columns_of(&bound, &mut found);
        found.sort_unstable();
        found.dedup();
        let tokens = parser::tokens(text)?;
        let (mut out, mut end) = (String::new(), 0);
        for (location, place) in found {
            let Some(start) = location.checked_sub(BEFORE_STORED) else {
                continue;
            };
            let Some(first) = tokens.iter().position(|token| token.start == start) else {
                continue;
            };
            let mut last = first;
            while matches!(tokens.get(last + 1), Some(dot) if dot.kind == TokenKind::Char(b'.'))
                && last + 2 < tokens.len()
            {
                last += 2;
            }
            let name = match renamed {
                Some((column, name)) if column == place => name,
                _ => table.columns[place].name.as_str(),
            };
            out.push_str(&text[end..start]);
            out.push_str(&quote_identifier(name));
            end = tokens[last].end;
        }
        out.push_str(&text[end..]);
        Ok(out)
    }
}

/// The columns in an expression: where they stand, and which they are.
fn columns_of(expr: &Expr, out: &mut Vec<(usize, usize)>) {
    if let (ExprKind::Column(place), Ok(at)) = (&expr.kind, usize::try_from(expr.location.0)) {
        out.push((at, *place));
    }
    for part in expr.parts() {
        columns_of(part, out);
    }
}
