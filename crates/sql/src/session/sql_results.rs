//! What functions in SQL give: the rows of their last statement as what they say.
//!
//! ```text
//! returns setof pair  as 'select 1.255, 2'        each row in the columns of `pair`, modifiers too
//! returns record      as 'select row(1, 2)'       the row as it is; where a column definition list or
//!                                                 OUT arguments say what it is, it must be just that
//! returns setof void  as 'select 1'               nothing
//! ```
//! Of a function that gives rows of no type, and is not told what they are, each row is a record.
//!
//! # What it leaves out
//! What functions in PL/pgSQL give ([`super::plpgsql`]).

use base::{Error, Result, SqlState};

use super::plpgsql::code::ReturnKind;
use super::Session;
use catalog::RoutineKind;
use execution::kept::RowStore;
use functions::{find_coercion, CastContext, Coercion};
use planner::plan::{RoutineCall, Row};
use types::{Datum, TypeId, NO_TYPMOD};

/// What a call gives.
pub(super) struct Gave {
    pub(super) value: Datum,
    pub(super) rows: RowStore,
}

/// The shape of what a call gives.
pub(super) fn kind_of(call: &RoutineCall) -> ReturnKind {
    match call.routine.kind {
        RoutineKind::Procedure => ReturnKind::Procedure,
        RoutineKind::Function | RoutineKind::Aggregate => match call.result {
            TypeId::VOID => ReturnKind::Nothing,
            TypeId::RECORD => ReturnKind::Record(call.columns.clone()),
            TypeId::TRIGGER => ReturnKind::Record(Vec::new()),
            ty => ReturnKind::Value(ty),
        },
    }
}

impl Session {
    /// # Errors
    /// 42P13 for a last statement, of these types if it gives rows, that gives something else than its
    /// function.
    pub(super) fn check_last(
        &self,
        call: &RoutineCall,
        last: Option<(Vec<TypeId>, bool)>,
    ) -> Result<()> {
        let kind = kind_of(call);
        if matches!(kind, ReturnKind::Nothing | ReturnKind::Procedure) {
            return Ok(());
        }
        let declared = match call.result {
            TypeId::RECORD => "record".to_owned(),
            ty => ty.to_string(),
        };
        let wrong = |detail: String| {
            let message = format!("return type mismatch in function declared to return {declared}");
            Err(Error::new(SqlState::of("42P13"), message).with_detail(detail))
        };
        let Some((types, true)) = last else {
            return wrong(
                "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
                    .to_owned(),
            );
        };
        let catalog = self.known_catalog();
        let fits = |from: TypeId, to: TypeId| {
            let (to, _) = catalog.base_type(to);
            let own = catalog.own_cast(from, to);
            from == TypeId::UNKNOWN
                || own.is_some_and(|cast| cast.context <= CastContext::Assignment)
                || find_coercion(from, to, CastContext::Assignment).is_some()
        };
        // One column may be a row of all of them.
        let is_row = |ty: TypeId| ty.is_composite() || ty == TypeId::RECORD;
        let is_short = |types: &[TypeId], columns: &[(String, TypeId)]| {
            !columns.is_empty() && types.iter().all(|ty| !is_row(*ty))
        };
        match kind {
            ReturnKind::Value(ty) => match types.as_slice() {
                [only] if fits(*only, ty) => Ok(()),
                [only] => wrong(format!("Actual return type is {only}.")),
                _ => wrong("Final statement must return exactly one column.".to_owned()),
            },
            ReturnKind::Record(columns)
                if !columns.is_empty() && (types.len() > 1 || is_short(&types, &columns)) =>
            {
                if types.len() < columns.len() {
                    return wrong("Final statement returns too few columns.".to_owned());
                }
                if types.len() > columns.len() {
                    return wrong("Final statement returns too many columns.".to_owned());
                }
                let pairs = types.iter().zip(&columns).enumerate();
                for (place, (from, (_, to))) in pairs {
                    if !fits(*from, *to) {
                        return wrong(format!(
                            "Final statement returns {from} instead of {to} at column {}.",
                            place + 1
                        ));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a function in SQL gives: the rows of its last statement in the types that it says.
    pub(super) fn sql_result(
        &mut self,
        call: &RoutineCall,
        columns: &[(String, TypeId)],
        (rows, types): (RowStore, Vec<TypeId>),
    ) -> Result<Gave> {
        let one = [(String::new(), call.result)];
        let kind = kind_of(call);
        let wanted: &[(String, TypeId)] = match &kind {
            ReturnKind::Nothing => &[],
            ReturnKind::Procedure | ReturnKind::Record(_) => columns,
            ReturnKind::Value(_) => &one,
        };
        let catalog = self.current_catalog()?;
        let is_row = |ty: TypeId| catalog.base_type(ty).0.is_composite();
        // Whether the only value of a row, of that type, is the row of all that is wanted.
        let is_spread = |ty: TypeId| match (&kind, wanted) {
            (ReturnKind::Nothing | ReturnKind::Value(_), _) => false,
            (ReturnKind::Procedure, [(_, one)]) => ty == TypeId::RECORD && !is_row(*one),
            (ReturnKind::Record(_), [_]) => ty == TypeId::RECORD || ty.is_composite(),
            (ReturnKind::Procedure | ReturnKind::Record(_), _) => true,
        };
        let mut out = RowStore::of("The rows of a function");
        let is_open = matches!(kind, ReturnKind::Record(_)) && wanted.is_empty();
        // The columns of a type of its own take what an assignment takes, others what they are.
        let routine = &call.routine;
        let is_strict = matches!(kind, ReturnKind::Record(_))
            && routine.result == TypeId::RECORD
            && routine.result_relation == 0;
        let is_whole = |ty: TypeId| is_spread(ty) && (ty == TypeId::RECORD || is_row(ty));
        for row in rows {
            let row = match row.as_slice() {
                [whole] if is_open && is_whole(types[0]) => vec![whole.clone()],
                _ if is_open => vec![record_of_row(&types, row)],
                // Of a set of nothing there are no rows.
                _ if wanted.is_empty() && call.routine.set => continue,
                _ if wanted.is_empty() => row,
                [Datum::Record(record)] if is_spread(types[0]) => {
                    let types = record.types.clone();
                    let row = record.values.clone();
                    if is_strict {
                        check_row(&types, wanted)?;
                    }
                    self.as_columns(wanted, row, &types, || mismatched(call))?
                }
                [Datum::Null] if is_whole(types[0]) && kind != ReturnKind::Procedure => {
                    match call.routine.set {
                        true => vec![Datum::Null; wanted.len()],
                        false => continue,
                    }
                }
                _ => self.as_columns(wanted, row, &types, || mismatched(call))?,
            };
            out.push(self.fit_columns(call, wanted, row)?)?;
        }
        if call.routine.set {
            return Ok(Gave {
                value: Datum::Null,
                rows: out,
            });
        }
        let first = out.into_iter().next();
        let value = match (kind, first) {
            (ReturnKind::Nothing, _) => Datum::Null,
            (ReturnKind::Value(_), row) => row
                .and_then(|row| row.into_iter().next())
                .unwrap_or(Datum::Null),
            (_, None) => Datum::Null,
            (ReturnKind::Record(_), Some(mut row)) if is_open => row.pop().unwrap_or(Datum::Null),
            (_, Some(row)) => {
                let columns: Vec<_> = match columns.is_empty() {
                    true => types.iter().map(|ty| (String::new(), *ty)).collect(),
                    false => columns.to_vec(),
                };
                super::plpgsql::record_of(&columns, row)
            }
        };
        let rows = RowStore::default();
        Ok(Gave { value, rows })
    }

    /// A row whose values fit the modifiers of its columns.
    fn fit_columns(
        &mut self,
        call: &RoutineCall,
        columns: &[(String, TypeId)],
        mut row: Row,
    ) -> Result<Row> {
        for (place, (value, (_, ty))) in row.iter_mut().zip(columns).enumerate() {
            let typmod = call.typmod(place);
            if typmod != NO_TYPMOD && !value.is_null() {
                let given = std::mem::replace(value, Datum::Null);
                *value = self.convert(given, *ty, *ty, typmod)?;
            }
        }
        Ok(row)
    }
}

fn mismatched(call: &RoutineCall) -> Error {
    let declared = match call.result {
        TypeId::RECORD => "record".to_owned(),
        ty => ty.to_string(),
    };
    Error::new(
        SqlState::of("42P13"),
        format!("return type mismatch in function declared to return {declared}"),
    )
    .with_detail("Final statement returns a different number of columns.")
}

/// A row of columns as one value.
fn record_of_row(types: &[TypeId], row: Row) -> Datum {
    let columns: Vec<_> = types.iter().map(|ty| (String::new(), *ty)).collect();
    super::plpgsql::record_of(&columns, row)
}

/// # Errors
/// 42804 for a row of other types than the columns that it is to fill.
fn check_row(types: &[TypeId], columns: &[(String, TypeId)]) -> Result<()> {
    let wrong = |detail: String| {
        let message = "function return row and query-specified return row do not match";
        Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail))
    };
    let (given, wanted) = (types.len(), columns.len());
    if given != wanted {
        let s = if given == 1 { "" } else { "s" };
        return wrong(format!(
            "Returned row contains {given} attribute{s}, but query expects {wanted}."
        ));
    }
    for (place, (from, (_, to))) in types.iter().zip(columns).enumerate() {
        let how = find_coercion(*from, *to, CastContext::Implicit);
        let is_binary = matches!(how, Some(Coercion::Binary));
        if from != to && !is_binary && !to.is_of_domain() {
            return wrong(format!(
                "Returned type {from} at ordinal position {}, but query expects {to}.",
                place + 1
            ));
        }
    }
    Ok(())
}
