//! What a function or a procedure gives: what RETURNS says, what its outputs imply.
//!
//! ```text
//! returns int                       a value
//! returns setof t                   rows of a table, a view or a composite type
//! (out a int, out b text)           a record of both, whatever RETURNS says of one
//! returns anyelement                an input must say what it is
//! ```
//!
//! # What it leaves out
//! Sets of a domain, and functions for event triggers (0A000).

use std::sync::Arc;

use base::{Error, Result};
use pg_query::protobuf::TypeName;

use super::super::plpgsql::piece::add_context;
use super::super::Session;
use super::routine::invalid;
use super::texts;
use catalog::routine::{Language, Mode, Routine, RoutineKind};
use catalog::{Catalog, RelationKind};
use types::{OwnKind, TypeId};

impl Session {
    /// Puts into the routine what it gives.
    ///
    /// # Errors
    /// 42P13 where RETURNS does not fit the outputs, or nothing says what it gives.
    pub(super) fn routine_result(
        &mut self,
        catalog: &Arc<Catalog>,
        routine: &mut Routine,
        declared: Option<&TypeName>,
    ) -> Result<()> {
        self.declared_result(catalog, routine, declared)?;
        check_result(routine, routine.result)?;
        let mut outputs = routine.outputs();
        outputs.try_for_each(|output| check_result(routine, output.type_id))
    }

    fn declared_result(
        &mut self,
        catalog: &Arc<Catalog>,
        routine: &mut Routine,
        declared: Option<&TypeName>,
    ) -> Result<()> {
        let outputs: Vec<TypeId> = routine.outputs().map(|output| output.type_id).collect();
        let implied = match outputs.as_slice() {
            [] => None,
            [one] if routine.kind == RoutineKind::Function => Some(*one),
            _ => Some(TypeId::RECORD),
        };
        let is_table = routine
            .arguments
            .iter()
            .any(|argument| argument.mode == Mode::Table);
        let Some(declared) = declared else {
            routine.result = match (implied, routine.kind) {
                (Some(ty), _) => ty,
                (None, RoutineKind::Procedure) => TypeId::VOID,
                (None, _) => return Err(invalid("function result type must be specified")),
            };
            return Ok(());
        };
        routine.set = declared.setof || is_table;
        if let (true, Some(ty)) = (is_table, implied) {
            routine.result = ty;
            return Ok(());
        }
        let plain = TypeName {
            setof: false,
            ..declared.clone()
        };
        let found = match self.routine_type(catalog, &plain) {
            Ok(ty) if ty.own_kind() == Some(OwnKind::Row) => {
                routine.result_relation = ty.own_number();
                TypeId::RECORD
            }
            Ok(ty) => ty,
            Err(error) => {
                let names = texts(&declared.names);
                let relation = match self.find_named(&names)? {
                    Some((_, catalog::RelationRef::Table(place))) => &catalog.tables[place],
                    _ => return Err(error),
                };
                let has_rows = matches!(
                    relation.kind,
                    RelationKind::Table | RelationKind::View | RelationKind::MaterializedView
                );
                if !has_rows {
                    return Err(error);
                }
                routine.result_relation = relation.oid;
                TypeId::RECORD
            }
        };
        if routine.set && found.is_of_domain() {
            return Err(Error::unsupported(
                "a function that returns a set of a domain",
            ));
        }
        match implied {
            Some(ty) if ty != found => {
                return Err(invalid(format!(
                    "function result type must be {ty} because of OUT parameters"
                )))
            }
            _ => {}
        }
        if found == TypeId::EVENT_TRIGGER {
            return Err(Error::unsupported("a function for event triggers"));
        }
        if found == TypeId::TRIGGER {
            if routine.language == Language::Sql {
                return Err(invalid("SQL functions cannot return type trigger"));
            }
            if !routine.arguments.is_empty() {
                let mut error = invalid("trigger functions cannot have declared arguments")
                    .with_hint(
                        "The arguments of the trigger can be accessed through TG_NARGS and \
                         TG_ARGV instead.",
                    );
                let name = &routine.name;
                let line = format!("compilation of PL/pgSQL function \"{name}\" near line 1");
                add_context(&mut error, &line);
                return Err(error);
            }
        }
        routine.result = found;
        Ok(())
    }
}

/// 42P13 for a polymorphic result or output that no input says anything of.
fn check_result(routine: &Routine, found: TypeId) -> Result<()> {
    const OF_RANGES: &[TypeId] = &[TypeId::ANYRANGE, TypeId::ANYMULTIRANGE];
    const COMPATIBLE_RANGES: &[TypeId] =
        &[TypeId::ANYCOMPATIBLERANGE, TypeId::ANYCOMPATIBLEMULTIRANGE];
    let is_compatible = |ty: TypeId| {
        let plain = [
            TypeId::ANYCOMPATIBLE,
            TypeId::ANYCOMPATIBLEARRAY,
            TypeId::ANYCOMPATIBLENONARRAY,
        ];
        plain.contains(&ty) || COMPATIBLE_RANGES.contains(&ty)
    };
    let has = |wanted: &dyn Fn(TypeId) -> bool| {
        let mut inputs = routine.inputs();
        inputs.any(|input| wanted(input.type_id))
    };
    let needed = match found {
        found if OF_RANGES.contains(&found) => {
            (!has(&|ty| OF_RANGES.contains(&ty))).then_some("anyrange or anymultirange")
        }
        found if COMPATIBLE_RANGES.contains(&found) => {
            (!has(&|ty| COMPATIBLE_RANGES.contains(&ty)))
                .then_some("anycompatiblerange or anycompatiblemultirange")
        }
        found if is_compatible(found) => (!has(&is_compatible)).then_some(
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or \
             anycompatiblemultirange",
        ),
        found if found.is_polymorphic() => (!has(&|ty| ty.is_polymorphic() && !is_compatible(ty)))
            .then_some("anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange"),
        _ => None,
    };
    match needed {
        None => Ok(()),
        Some(types) => Err(
            invalid("cannot determine result data type").with_detail(format!(
                "A result of type {found} requires at least one input of type {types}."
            )),
        ),
    }
}
