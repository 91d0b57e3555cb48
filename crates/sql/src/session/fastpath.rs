//! A function that is called by its oid, without a statement: the protocol's FunctionCall.
//!
//! ```text
//! FunctionCall 952 (24576, 131072)    select pg_catalog.lo_open($1, $2)
//! ```
//! It is a statement that calls the function with parameters of the types that it declares, so that rights,
//! transactions and errors are those of statements. libpq works with large objects in this way.
//!
//! # What it leaves out
//! Arguments have the collations of their types, where PostgreSQL's have none, so that `lower` fails there.

use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::{Oid, Prepared, Session};
use catalog::RoutineKind;
use functions::strings::quote_identifier;
use types::TypeId;

/// A call that waits for its arguments.
#[derive(Debug)]
pub struct Called<P> {
    /// The function's name.
    pub name: String,
    /// The statement that calls it.
    pub prepared: Rc<P>,
}

/// What is called.
struct Callable {
    schema: String,
    name: String,
    arguments: Vec<TypeId>,
    variadic: bool,
    /// Whether it gives one value for its arguments, and does nothing else.
    is_plain: bool,
}

impl Session {
    /// Prepares the call of a function by its oid.
    ///
    /// # Errors
    /// 42883 when there is none; 0A000 for an aggregate, a procedure and their like; 25P02.
    pub fn prepare_call(&mut self, function: Oid) -> Result<Called<Prepared>> {
        self.begin_message();
        let called = self.callable(function.0);
        let called = called.inspect_err(|_| self.failed())?;
        let arguments: Vec<_> = (1..=called.arguments.len())
            .map(|number| match called.variadic {
                true if number == called.arguments.len() => format!("VARIADIC ${number}"),
                _ => format!("${number}"),
            })
            .collect();
        let text = format!(
            "SELECT {}.{}({})",
            quote_identifier(&called.schema),
            quote_identifier(&called.name),
            arguments.join(", ")
        );
        let types: Vec<_> = called.arguments.iter().map(|ty| Oid(ty.0)).collect();
        Ok(Called {
            name: called.name,
            prepared: self.prepare(&text, &types)?,
        })
    }

    fn callable(&mut self, function: u32) -> Result<Callable> {
        self.check_may_query()?;
        let called = match self.built_in(function) {
            Some(called) => called,
            None => self.routine_called(function)?,
        };
        match called.is_plain {
            true => Ok(called),
            false => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot call function \"{}\" via fastpath interface",
                    called.name
                ),
            )),
        }
    }

    fn built_in(&self, function: u32) -> Option<Callable> {
        let of = |name: &str, arguments: &[TypeId], variadic, is_plain| {
            let (schema, name) = name.split_once('.').unwrap_or(("pg_catalog", name));
            Callable {
                schema: schema.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_vec(),
                variadic,
                is_plain,
            }
        };
        if let Some(known) = functions::function_by_oid(function) {
            let is_plain = !known.is_set_returning();
            return Some(of(known.name, known.arguments, known.variadic, is_plain));
        }
        let other = functions::aggregate_by_oid(function)
            .map(|known| (known.name, known.arguments))
            .or_else(|| {
                functions::window::window_by_oid(function)
                    .map(|known| (known.name, known.arguments))
            });
        other.map(|(name, arguments)| of(name, arguments, false, false))
    }

    fn routine_called(&mut self, function: u32) -> Result<Callable> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let missing = || {
            Error::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function with OID {function} does not exist"),
            )
        };
        let routine = catalog.routine(function).ok_or_else(missing)?;
        let schema = catalog.schema_by_oid(routine.schema);
        Ok(Callable {
            schema: schema.ok_or_else(missing)?.name.clone(),
            name: routine.name.clone(),
            arguments: routine.input_types(),
            variadic: routine.is_variadic(),
            is_plain: routine.kind == RoutineKind::Function && !routine.set,
        })
    }
}
