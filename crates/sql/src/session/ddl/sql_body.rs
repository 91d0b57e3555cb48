//! Bodies in standard SQL, in CREATE FUNCTION and CREATE PROCEDURE: `RETURN …` and `BEGIN ATOMIC … END`.
//!
//! ```text
//! create function f(x int) returns int return x + g(1)
//!   bound as it stands, for its errors and their places
//!   written anew and bound again, with oids in the places of names    →  Routine::sql_body, uses
//! ```
//!
//! # What it leaves out
//! Statements without a plan, as PostgreSQL does.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::super::plan::has_into;
use super::super::plpgsql::piece::{Names, Slot, View};
use super::super::routines::arguments_of;
use super::super::statements::about;
use super::super::Session;
use super::routine::{example_call, invalid};
use catalog::routine::Language;
use catalog::sql_body::{Known, SqlBody, SqlStatement};
use catalog::{Catalog, Routine, Uses};
use planner::bind::sql_body::returned_query;
use syntax::parser::NodeEnum;

/// The statements of a body, and whether they are a block.
fn statements(body: &Node) -> (Vec<&NodeEnum>, bool) {
    match &body.node {
        Some(NodeEnum::List(block)) => {
            let inside = block.items.first().and_then(|inside| inside.node.as_ref());
            let statements = match inside {
                Some(NodeEnum::List(list)) => list.items.as_slice(),
                _ => &[],
            };
            let statements = statements.iter();
            let known = statements.filter_map(|statement| statement.node.as_ref());
            (known.collect(), true)
        }
        alone => (alone.iter().collect(), false),
    }
}

impl Session {
    /// Gives a routine its body in standard SQL.
    ///
    /// # Errors
    /// What is wrong with a statement, with its place; 42P13 for a routine that cannot have such a body.
    pub(super) fn take_sql_body(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        routine: &mut Routine,
        body: &Node,
    ) -> Result<()> {
        if routine.language != Language::Sql {
            return Err(invalid(
                "inline SQL function body only valid for language SQL",
            ));
        }
        if routine.inputs().any(|input| input.type_id.is_polymorphic()) {
            return Err(invalid(
                "SQL function with unquoted function body cannot have polymorphic arguments",
            ));
        }
        let (names, slots) = arguments_of(&example_call(catalog, routine));
        let (statements, is_block) = statements(body);
        let mut made = SqlBody {
            is_block,
            ..SqlBody::default()
        };
        let mut uses = Vec::new();
        for node in statements {
            let given = (text, catalog, &names, slots.as_slice());
            let statement = self.fix_statement(given, node, &mut made.known, &mut uses)?;
            made.statements.push(statement);
        }
        self.may_use_types_of(catalog, uses.iter().map(|uses: &Uses| uses.relation))?;
        uses.append(&mut routine.uses);
        routine.uses = gathered(uses);
        routine.sql_body = Some(Arc::new(made));
        Ok(())
    }

    fn fix_statement(
        &mut self,
        (text, catalog, names, slots): (&str, &Arc<Catalog>, &Names, &[Slot]),
        node: &NodeEnum,
        known: &mut Vec<Known>,
        uses: &mut Vec<Uses>,
    ) -> Result<SqlStatement> {
        let (node, is_return) = match node {
            NodeEnum::ReturnStmt(stated) => (&returned_query(stated)?, true),
            node => (node, false),
        };
        let about = about(node);
        if !about.is_planned() {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "{} is not yet supported in unquoted SQL function body",
                    about.command
                ),
            ));
        }
        if let NodeEnum::SelectStmt(select) = node {
            if has_into(select) {
                return Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    "SELECT ... INTO is not allowed here",
                ));
            }
        }
        let view = View::of(names, slots);
        self.try_binding_with(text, catalog, &view, |binder| {
            binder.names_only = true;
            binder.statement(node).map(|_| ())
        })?;
        let (text, recorded) =
            self.try_binding_with("", catalog, &view, |binder| binder.fixed_statement(node))?;
        let targets = recorded.targets.iter();
        let targets = targets.map(|target| Known::relation(&target.table));
        let rows = recorded.fields.iter();
        let rows = rows.map(|(ty, _)| Known::row_type(catalog, *ty));
        for new in targets.chain(rows) {
            if known.iter().all(|known| known.oid != new.oid) {
                known.push(new);
            }
        }
        uses.extend(recorded.uses());
        Ok(SqlStatement { is_return, text })
    }
}

/// What several statements need, each once.
pub(super) fn gathered(mut all: Vec<Uses>) -> Vec<Uses> {
    all.sort_by_key(|uses| uses.relation);
    let mut out: Vec<Uses> = Vec::new();
    for uses in all {
        match out.last_mut().filter(|last| last.relation == uses.relation) {
            Some(last) => last.columns.extend(uses.columns),
            None => out.push(uses),
        }
    }
    for uses in &mut out {
        uses.columns.sort_unstable();
        uses.columns.dedup();
    }
    out
}
