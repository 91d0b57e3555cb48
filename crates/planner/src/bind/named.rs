//! Built-in functions whose arguments are named.
//!
//! ```text
//! make_interval(1, hours => 10)     make_interval(1, 0, 0, 0, 10, 0, 0.0)
//! ```
//! What arguments are called, and their defaults, is what PostgreSQL's catalog says of the function
//! (`catalog::system::facts`). Arguments are put in place and defaults filled in while the call is bound.
//!
//! # What it leaves out
//! The text of a view shows such a call with all of its arguments by position.
//!
//! Source: PostgreSQL 15 manual, section 4.3.

use base::Result;

use super::routine::Written;
use super::Binder;
use crate::plan::Expr;
use catalog::system::facts::{self, Fact};
use catalog::PG_CATALOG;
use functions::resolve::{concrete_type, resolve_offered, Chosen, Offer};
use functions::{functions_named, Function, FunctionMatch};
use types::TypeId;

/// A function with the place of each argument that was written.
struct Fitting {
    function: &'static Function,
    fact: &'static Fact,
    order: Vec<usize>,
}

impl Fitting {
    /// How a call whose last arguments are named fits a function, if it does.
    fn of(function: &'static Function, names: &[&str], count: usize) -> Option<Fitting> {
        let fact = facts::of_function(function.oid)?;
        let inputs = function.arguments.len();
        let positional = count - names.len();
        if function.variadic || count > inputs {
            return None;
        }
        let mut order: Vec<usize> = (0..positional).collect();
        for name in names {
            let mut known = fact.names.split(',').take(inputs);
            let place = known.position(|known| known == *name)?;
            if order.contains(&place) {
                return None;
            }
            order.push(place);
        }
        let needed = inputs - usize::from(function.defaults);
        let has_all = (0..needed).all(|place| order.contains(&place));
        has_all.then_some(Fitting {
            function,
            fact,
            order,
        })
    }

    fn offer(&self, item: usize) -> Offer<usize> {
        let inputs = self.order.iter();
        Offer {
            item,
            schema: PG_CATALOG,
            inputs: inputs.map(|at| self.function.arguments[*at]).collect(),
            variadic: false,
            defaults: 0,
            result: TypeId::NONE,
        }
    }

    /// The default of an argument, as text.
    fn default(&self, place: usize) -> Option<&'static str> {
        let argument = self.fact.arguments.split(", ").nth(place)?;
        argument.split_once(" DEFAULT ").map(|(_, text)| text)
    }
}

impl Binder<'_> {
    /// A call of a built-in function whose last arguments are named; none if no function fits.
    pub(super) fn named_built_in(
        &mut self,
        name: &str,
        written: &Written<'_>,
        location: i32,
    ) -> Result<Option<Expr>> {
        let types: Vec<_> = written.args.iter().map(|arg| arg.ty).collect();
        let fitting =
            |function: &&'static Function| Fitting::of(function, &written.names, types.len());
        let all: Vec<_> = functions_named(name).iter().filter_map(fitting).collect();
        let offers = all.iter().enumerate();
        let offers: Vec<_> = offers
            .map(|(place, fitting)| fitting.offer(place))
            .collect();
        let chosen = resolve_offered(name, &types, None, &offers, &self.unasked());
        let chosen = chosen.map_err(|error| self.place_choice(error, location))?;
        let Some(Chosen::Offered(place, coerced, _)) = chosen else {
            return Ok(None);
        };
        let fitting = &all[place];
        let declared = fitting.function.arguments;
        let mut argument_types = declared.to_vec();
        let mut given: Vec<Option<Expr>> = vec![None; declared.len()];
        let all = fitting.order.iter().zip(&written.args).zip(&coerced);
        for ((place, arg), ty) in all {
            given[*place] = Some(arg.clone());
            argument_types[*place] = *ty;
        }
        let mut args = Vec::with_capacity(given.len());
        for (place, arg) in given.into_iter().enumerate() {
            args.push(match (arg, fitting.default(place)) {
                (Some(arg), _) => arg,
                (None, Some(text)) => self.default_given(text, declared[place])?,
                (None, None) => return Err(base::Error::internal("an argument without a value")),
            });
        }
        let result = concrete_type(&argument_types, declared, fitting.function.result);
        let found = FunctionMatch {
            function: fitting.function,
            argument_types,
            result: result.unwrap_or(fitting.function.result),
        };
        self.call_found(found, args, location).map(Some)
    }
}
