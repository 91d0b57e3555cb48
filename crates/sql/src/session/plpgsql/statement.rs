//! SQL statements of a block, written out or as a text that EXECUTE runs, and what INTO does with their
//! rows.
//!
//! ```text
//! SELECT a, b INTO x, y FROM t WHERE c = z      one row at most is read, z is a parameter
//! SELECT a INTO STRICT x FROM t                 two at most, so that it is known whether it is the only one
//! ```

use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::super::plan::{has_into, Way};
use super::super::run::Output;
use super::super::statements::{about, Given, InPlpgsql};
use super::super::{NoticeSeverity, Prepared, Session};
use super::code::{IntoCode, Target};
use super::cursors::command_of;
use super::piece::{shown_params, Compiled, Piece, PieceKind, View};
use super::run::Frame;
use execution::kept::RowStore;
use execution::state::prepared::Planned;
use execution::state::KeptRows;
use planner::bind::Variables;
use syntax::parser::{NodeEnum, Statement};
use types::{Datum, TypeId};

/// What is known of the rows that INTO takes from.
struct Filled<'a> {
    planned: &'a Planned,
    /// Whether its statement writes, so that a second row is an error in any case.
    writes: bool,
    /// The parameters, which errors may show.
    params: Params<'a>,
}

/// Which rows of a text are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// At most so many, if it gives any.
    Most(usize),
    /// All; a text that gives none is refused (42601) before it does anything.
    All,
}

enum Params<'a> {
    /// Those of a piece, by the names of the variables.
    Named(&'a Compiled),
    /// Those of a text, by their numbers.
    Numbered(&'a [Datum], &'a [TypeId]),
}

impl Session {
    /// EXECUTE, perhaps with INTO.
    pub(super) fn execute_step(
        &mut self,
        query: &Piece,
        into: Option<&IntoCode>,
        using: &[Piece],
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let wanted = Wanted::Most(rows_wanted(into));
        let mut rows = RowStore::of("The rows of a statement");
        let text = self.dynamic_text(query, using, frame)?;
        let (count, planned) = self.dynamic(&text, &mut rows, wanted, frame)?;
        frame.rows = count;
        match (into, planned) {
            (Some(into), Some(planned)) => {
                let filled = Filled {
                    planned: &planned,
                    writes: false,
                    params: Params::Numbered(&text.1, &text.2),
                };
                self.fill(into, &filled, rows, frame)
            }
            (Some(_), None) => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "INTO used with a command that cannot return data",
            )),
            (None, _) => Ok(()),
        }
    }

    /// What INTO does with the rows of a statement.
    fn fill(
        &mut self,
        into: &IntoCode,
        filled: &Filled<'_>,
        rows: RowStore,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let planned = filled.planned;
        if into.strict && rows.is_empty() {
            let error = Error::new(SqlState::of("P0002"), "query returned no rows");
            return Err(self.with_params(error, filled, frame)?);
        }
        let is_dynamic = matches!(filled.params, Params::Numbered(..));
        if rows.len() > 1 {
            let checks = self.shared.settings.parsed().procedural;
            let error = Error::new(SqlState::of("P0003"), "query returned more than one row");
            let mut error = self.with_params(error, filled, frame)?;
            if !is_dynamic {
                let hint = "Make sure the query returns a single row, or use LIMIT 1.";
                error = error.with_hint(hint);
            }
            let is_checked = !is_dynamic && checks.errors.too_many_rows;
            if into.strict || filled.writes || is_checked {
                return Err(error);
            }
            if !is_dynamic && checks.warnings.too_many_rows {
                self.notice(NoticeSeverity::Warning, error, frame.sink)?;
            }
        }
        let row = rows.into_iter().next();
        if row.is_some() {
            self.check_count(&into.targets, planned.types.len(), frame)?;
        }
        let row = row.unwrap_or_else(|| vec![Datum::Null; planned.types.len()]);
        let shape = (planned.types.as_slice(), planned.columns.as_deref());
        self.fill_row(&into.targets, shape, row, frame)
    }

    /// An error of INTO with the parameters of its statement, if it is to show them.
    fn with_params(&self, error: Error, filled: &Filled<'_>, frame: &Frame<'_>) -> Result<Error> {
        if !frame.prints_strict {
            return Ok(error);
        }
        let shown = match filled.params {
            Params::Named(compiled) => shown_params(&self.eval, compiled.named(&frame.slots))?,
            Params::Numbered(values, types) => {
                let numbers = (1..).map(|number| format!("${number}"));
                let each = numbers.zip(values).zip(types);
                let each = each.map(|((name, value), ty)| (name, value, *ty));
                shown_params(&self.eval, each)?
            }
        };
        Ok(match shown {
            Some(shown) => error.with_detail(shown),
            None => error,
        })
    }

    /// Whether there are as many columns as variables, where that is asked for.
    pub(super) fn check_count(
        &mut self,
        targets: &[Target],
        given: usize,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let checks = self.shared.settings.parsed().procedural;
        let (fails, warns) = (
            checks.errors.strict_multi_assignment,
            checks.warnings.strict_multi_assignment,
        );
        if !fails && !warns {
            return Ok(());
        }
        let wanted = match targets {
            [Target { slot, field: None }] if frame.slots[*slot].is_record => {
                let fixed = &frame.slots[*slot].fixed;
                fixed.as_ref().map_or(given, |shape| shape.columns.len())
            }
            targets => targets.len(),
        };
        if wanted == given {
            return Ok(());
        }
        let list = if fails {
            "extra_errors"
        } else {
            "extra_warnings"
        };
        let message = "number of source and target fields in assignment does not match";
        let detail = format!("strict_multi_assignment check of {list} is active.");
        let hint = "Make sure the query returns the exact list of columns.";
        let error = Error::new(SqlState::DATATYPE_MISMATCH, message)
            .with_detail(detail)
            .with_hint(hint);
        match fails {
            true => Err(error),
            false => self.notice(NoticeSeverity::Warning, error, frame.sink),
        }
    }

    pub(super) fn sql(
        &mut self,
        piece: &Piece,
        into: Option<&IntoCode>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let compiled = self.compiled(piece, &frame.slots)?;
        if compiled.planned.bound.is_none() {
            return self.sql_utility(piece, &compiled, frame);
        }
        let select = matches!(compiled.statement.node(), NodeEnum::SelectStmt(_));
        if into.is_none() && compiled.planned.columns.is_some() {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                "query has no destination for result data",
            );
            return Err(match select {
                true => error.with_hint(
                    "If you want to discard the results of a SELECT, use PERFORM instead.",
                ),
                false => error,
            });
        }
        let most = match select {
            true if self.counts_rows() => 2,
            true => rows_wanted(into),
            false => usize::MAX,
        };
        let mut rows = RowStore::of("The rows of a statement");
        let (count, planned) = self
            .run_piece(piece, &frame.slots, &mut rows, most)
            .map_err(|error| piece.explain(error))?;
        frame.set_rows(count);
        let Some(into) = into else {
            return Ok(());
        };
        let filled = Filled {
            planned: &planned,
            writes: !select,
            params: Params::Named(&compiled),
        };
        self.fill(into, &filled, rows, frame)
    }

    /// Whether INTO is asked to look for a second row.
    fn counts_rows(&self) -> bool {
        let checks = self.shared.settings.parsed().procedural;
        checks.errors.too_many_rows || checks.warnings.too_many_rows
    }

    /// All rows of a statement, be it one with a plan or one like EXPLAIN.
    pub(super) fn rows_of_piece(
        &mut self,
        piece: &Piece,
        rows: &mut RowStore,
        frame: &mut Frame<'_>,
    ) -> Result<Rc<Planned>> {
        let compiled = self.compiled(piece, &frame.slots)?;
        if compiled.planned.bound.is_some() {
            let ran = self.run_piece(piece, &frame.slots, rows, usize::MAX);
            return Ok(ran.map_err(|error| piece.explain(error))?.1);
        }
        about(compiled.statement.node()).in_plpgsql.check(false)?;
        let params = compiled.values(&frame.slots);
        let given = self.utility_rows(&compiled.statement, &params, frame);
        *rows = given.map_err(|error| piece.explain(error))?;
        Ok(compiled.planned.clone())
    }

    fn sql_utility(
        &mut self,
        piece: &Piece,
        compiled: &Rc<Compiled>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        about(compiled.statement.node()).in_plpgsql.check(false)?;
        self.utility_rows(&compiled.statement, &[], frame)
            .map_err(|error| piece.explain(error))?;
        match compiled.planned.columns {
            None => Ok(()),
            Some(_) => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "query has no destination for result data",
            )),
        }
    }

    /// The text that EXECUTE runs, and the values and types of its parameters.
    pub(super) fn dynamic_text(
        &mut self,
        query: &Piece,
        using: &[Piece],
        frame: &Frame<'_>,
    ) -> Result<(Piece, Vec<Datum>, Vec<TypeId>)> {
        let (text, ty) = self.value_of(query, &frame.slots)?;
        if text.is_null() {
            return Err(Error::new(
                SqlState::of("22004"),
                "query string argument of EXECUTE is null",
            ));
        }
        let text = self
            .convert(text, ty, TypeId::TEXT, -1)?
            .as_str()
            .to_owned();
        let mut params = Vec::new();
        let mut types = Vec::new();
        for piece in using {
            let (value, ty) = self.value_of(piece, &frame.slots)?;
            params.push(value);
            types.push(if ty == TypeId::UNKNOWN {
                TypeId::TEXT
            } else {
                ty
            });
        }
        let shown = Piece {
            kind: PieceKind::Statement,
            shown: text.as_str().into(),
            text,
            shift: 0,
            names: frame.rows_named.clone(),
            simple: false,
            part: None,
            planned: std::cell::RefCell::default(),
        };
        Ok((shown, params, types))
    }

    /// EXECUTE: runs a text; with rows, also what describes them.
    pub(super) fn dynamic(
        &mut self,
        (shown, params, types): &(Piece, Vec<Datum>, Vec<TypeId>),
        rows: &mut RowStore,
        wanted: Wanted,
        frame: &mut Frame<'_>,
    ) -> Result<(u64, Option<Rc<Planned>>)> {
        let parsed = self.parse_as_set(&shown.text);
        let mut statements = parsed.map_err(|error| shown.explain(error))?;
        let Some(statement) = statements.pop() else {
            return Ok((0, None));
        };
        let in_plpgsql = about(statement.node()).in_plpgsql;
        if in_plpgsql == InPlpgsql::Transaction {
            in_plpgsql.check(true)?;
        }
        if !statements.is_empty() {
            return Err(Error::unsupported("EXECUTE of several commands"));
        }
        in_plpgsql.check(true)?;
        let makes_table =
            matches!(statement.node(), NodeEnum::SelectStmt(select) if has_into(select));
        let outcome = self.running_text(&shown.shown, |session| {
            session.dynamic_statement(statement, (shown, params, types), rows, wanted, frame)
        });
        let outcome = outcome.map_err(|error| shown.explain(error))?;
        match makes_table {
            false => Ok(outcome),
            true => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "EXECUTE of SELECT ... INTO is not implemented",
            )
            .with_hint(
                "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.",
            )),
        }
    }

    fn dynamic_statement(
        &mut self,
        statement: Statement,
        (text, params, types): (&Piece, &[Datum], &[TypeId]),
        rows: &mut RowStore,
        wanted: Wanted,
        frame: &mut Frame<'_>,
    ) -> Result<(u64, Option<Rc<Planned>>)> {
        let most = match wanted {
            Wanted::Most(most) => most,
            Wanted::All => usize::MAX,
        };
        let command = command_of(&statement);
        let check = |planned: &Planned| match wanted {
            Wanted::All => check_returns_rows(planned, command),
            Wanted::Most(_) => Ok(()),
        };
        let planned = if !text.names.rows.is_empty() && about(statement.node()).is_planned() {
            let planned = self.plan_text(&statement, text, types, false)?;
            check(&planned)?;
            self.settle_text(planned, &statement, text, types, false)?
        } else {
            let prepared: Rc<Prepared> = self.prepare_statement(statement, types, false)?;
            let planned = self.current_plan(&prepared)?;
            check(&planned)?;
            if planned.bound.is_none() {
                if let Some(statement) = prepared.statement() {
                    for row in self
                        .utility_rows(statement, params, frame)?
                        .into_iter()
                        .take(most)
                    {
                        rows.push(row)?;
                    }
                }
                let described = planned.columns.is_some().then_some(planned);
                return Ok((rows.len() as u64, described));
            }
            self.settle_plan(planned, |session| session.current_plan(&prepared))?
        };
        let begun = self.begin_counted(&planned)?;
        let count = self.run_plan(&planned, params, &mut Output::Rows(rows, most))?;
        self.end_counted(begun, count);
        let described = planned.columns.is_some().then(|| planned.clone());
        Ok((count, described))
    }

    /// What a statement without a plan of its own does; its rows.
    fn utility_rows(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        frame: &mut Frame<'_>,
    ) -> Result<RowStore> {
        self.ensure_open()?;
        let mut kept = KeptRows::new(frame.sink);
        self.utility(&mut Given {
            statement,
            params,
            param_types: &[],
            sink: &mut kept,
            alone: false,
        })?;
        Ok(kept.into_rows())
    }

    /// The plan of a text, which may name the rows of the statement that a trigger is for.
    pub(super) fn plan_text(
        &mut self,
        statement: &Statement,
        text: &Piece,
        types: &[TypeId],
        for_cursor: bool,
    ) -> Result<Rc<Planned>> {
        let view = View::of(&text.names, &[]);
        let variables = (!text.names.rows.is_empty()).then_some(&view as &dyn Variables);
        let way = Way {
            for_cursor,
            ..Way::default()
        };
        let planned = self.plan_watched(statement, types, false, variables, way);
        Ok(Rc::new(planned?.0))
    }

    /// Takes the locks of such a plan, and plans anew until nothing changes.
    pub(super) fn settle_text(
        &mut self,
        planned: Rc<Planned>,
        statement: &Statement,
        text: &Piece,
        types: &[TypeId],
        for_cursor: bool,
    ) -> Result<Rc<Planned>> {
        let planned = self.settle_plan(planned, |session| {
            session.plan_text(statement, text, types, for_cursor)
        })?;
        if let Some(bound) = &planned.bound {
            self.check_bound(bound, statement.node())?;
        }
        Ok(planned)
    }
}

/// # Errors
/// 42601 for a statement that gives no rows.
pub(super) fn check_returns_rows(planned: &Planned, command: &str) -> Result<()> {
    match planned.columns {
        Some(_) => Ok(()),
        None => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!("{command} query does not return tuples"),
        )),
    }
}

/// How many rows of a SELECT with INTO are needed.
fn rows_wanted(into: Option<&IntoCode>) -> usize {
    match into {
        Some(into) if into.strict => 2,
        Some(_) => 1,
        None => usize::MAX,
    }
}
