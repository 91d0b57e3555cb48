//! Bodies of routines in standard SQL: how their statements get to the catalog, and what
//! `pg_get_function_sqlbody` prints of them.
//!
//! ```text
//! create function f(x int) returns int begin atomic select a from t where a = x; end
//! stored:   SELECT a FROM "#"."16384" AS "t"("a", "b") WHERE a = "#".x
//! shown:    BEGIN ATOMIC
//!            SELECT t.a
//!               FROM t
//!              WHERE (t.a = f.x);
//!           END
//! ```
//! Names are fixed as in a view ([`super::fixed`]); arguments are qualified by a name that nothing else
//! has, so that neither a column that comes later nor a new name of the routine changes what is meant.
//!
//! # What it leaves out
//! Arguments without names are shown by their numbers, also beside others that have names.

use base::{Error, Result};
use pg_query::protobuf::ReturnStmt;

use super::definition::{Called, OfRoutine, Shown};
use super::fixed::{fix, Recorded};
use super::{BindContext, Binder, Conflict, Variables};
use crate::deparse::layout::{flattened, shifted, spaced};
use catalog::cast::{has_using_in_place, without_note};
use catalog::sql_body::{SqlBody, SqlStatement};
use catalog::view::BY_OID;
use catalog::Routine;
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum};
use types::{TypeId, NO_TYPMOD};

/// The query that RETURN stands for.
///
/// # Errors
/// XX000 without an expression.
pub fn returned_query(stated: &ReturnStmt) -> Result<NodeEnum> {
    let value = stated.returnval.as_deref();
    let value = value.ok_or_else(|| Error::internal("RETURN of nothing"))?;
    let select = parser::selection(value, None);
    Ok(NodeEnum::SelectStmt(Box::new(select)))
}

/// The arguments of a routine, as the statements of its body name them.
struct Arguments<'r> {
    body: &'r SqlBody,
    names: Vec<String>,
    types: Vec<TypeId>,
}

impl Variables for Arguments<'_> {
    fn find(&self, names: &[&str]) -> Result<Option<(usize, TypeId, i32)>> {
        let place = match names {
            [number] => {
                let number = number
                    .strip_prefix('$')
                    .and_then(|number| number.parse().ok());
                number.and_then(|number: usize| number.checked_sub(1))
            }
            [BY_OID, name] => self.names.iter().rposition(|known| known == name),
            _ => None,
        };
        let known = place.and_then(|place| Some((place, *self.types.get(place)?)));
        Ok(known.map(|(place, ty)| (place, ty, NO_TYPMOD)))
    }

    fn conflict(&self) -> Conflict {
        Conflict::Column
    }

    fn sql_body(&self) -> Option<&SqlBody> {
        Some(self.body)
    }
}

impl Binder<'_> {
    /// A statement of a body as the catalog keeps it, and what it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_statement(&mut self, node: &NodeEnum) -> Result<(String, Recorded)> {
        self.names_only = true;
        let text = parser::deparse_statement(node)?;
        let statements = parser::parse(&text)?;
        let first = statements.first();
        let first = first.ok_or_else(|| Error::internal("a statement that is none"))?;
        self.recorded = Some(Recorded::default());
        let bound = self.statement(first.node());
        let recorded = self.recorded.take().unwrap_or_default();
        bound?;
        Ok((fix(&text, &recorded)?, recorded))
    }

    /// A statement of a body as it is shown, from the space before its first word.
    fn statement_text(&mut self, statement: &SqlStatement, routine: &Routine) -> Result<String> {
        let statements = parser::parse(&statement.text)?;
        let first = statements.first();
        let first = first.ok_or_else(|| Error::internal("a statement that is none"))?;
        let called = match statement.is_return {
            true => Called::Returned,
            false => Called::Nothing,
        };
        let laid_out = match first.node() {
            NodeEnum::SelectStmt(select) => self.query_text(select, None, called),
            node => self.written_text(node, called),
        };
        match laid_out {
            Ok(Some(text)) => Ok(text),
            _ => self.statement_as_stored(statement, routine),
        }
    }

    /// A statement in the layout in which the catalog has it.
    fn statement_as_stored(&self, statement: &SqlStatement, routine: &Routine) -> Result<String> {
        let text = self.renamed(without_note(&statement.text))?;
        let tokens = parser::tokens(&text)?;
        let mark = format!("\"{BY_OID}\"");
        let mut out = String::from(" ");
        let mut done = 0;
        for token in tokens {
            if text[token.start..token.end] == mark {
                out.push_str(&text[done..token.start]);
                out.push_str(&quote_identifier(&routine.name));
                done = token.end;
            }
        }
        out.push_str(&text[done..]);
        Ok(match (statement.is_return, out.split_once("SELECT ")) {
            (true, Some((_, value))) => format!(" RETURN {value}"),
            _ => out,
        })
    }
}

/// The body of a routine as `pg_get_function_sqlbody` prints it.
///
/// # Errors
/// What binding a statement gives, if what it rests on is gone.
pub fn body_text(cx: BindContext<'_>, routine: &Routine, body: &SqlBody) -> Result<String> {
    let names: Vec<_> = routine.inputs().map(|input| input.name.clone()).collect();
    let arguments = Arguments {
        body,
        names: names.clone(),
        types: routine.input_types(),
    };
    let shown = |statement: &SqlStatement| -> Result<String> {
        let text = parser::large_stack(|| {
            let cx = BindContext {
                variables: Some(&arguments),
                ..cx
            };
            let mut binder = Binder::new(cx, Vec::new(), false);
            binder.noted = cx.catalog.noted_in_text(&statement.text);
            binder.using_first = !has_using_in_place(&statement.text);
            binder.names_only = true;
            binder.recorded = Some(Recorded::default());
            let of_routine = OfRoutine {
                routine: routine.name.clone(),
                arguments: names.clone(),
            };
            binder.shown_queries = Some(Shown::of(of_routine, !body.is_block));
            binder.statement_text(statement, routine)
        })?;
        Ok(match body.is_block {
            true => spaced(&shifted(&text, 1)),
            false => flattened(&text).trim_start().to_owned(),
        })
    };
    let mut lines = Vec::new();
    for statement in &body.statements {
        lines.push(shown(statement)?);
    }
    if !body.is_block {
        return Ok(lines.concat());
    }
    let lines: String = lines.iter().map(|line| format!("{line};\n")).collect();
    Ok(format!("BEGIN ATOMIC\n{lines}END"))
}
