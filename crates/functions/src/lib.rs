//! Functions, operators, casts and aggregates: what there is, how a call finds its function, and
//! what the functions do.
//!
//! The tables (`table_*.rs`) name each function with PostgreSQL's OID, argument types and result,
//! and the Rust function that does the work. The binder resolves a call once
//! ([`resolve_function`], [`resolve_operator`], [`find_coercion`]) and the executor then calls
//! [`Function::call`] with values:
//!
//! ```
//! use functions::{resolve_operator, Call};
//! use types::{Datum, EvalContext, TypeId};
//! let found = resolve_operator("+", TypeId::INT4, TypeId::INT4).unwrap();
//! let context = EvalContext::for_tests();
//! let call = Call { context: &context, argument_types: &found.argument_types, result: found.result };
//! let sum = found.operator.function.call(&call, &[Datum::Int4(1), Datum::Int4(2)]).unwrap();
//! assert_eq!(sum, Datum::Int4(3));
//! ```
//!
//! # What it leaves out
//! Functions that need the session or the catalog (`current_setting`, `nextval`, …) have
//! [`Body::Session`]: they are found and typed here, and the executor answers them. Functions made
//! by users are another issue.

mod acl;
pub mod aggregate;
mod arguments;
mod array_edits;
pub mod array_parts;
mod array_shapes;
mod arrays;
mod bits;
mod bytes;
pub mod collator;
mod comparison;
mod date_bin;
mod decimal;
mod degrees;
mod encodings;
mod enums;
pub mod estimators;
pub mod extensions;
pub mod fields;
mod float_sums;
mod floating;
mod from_char;
pub mod geometry;
pub mod hashing;
mod identifiers;
pub mod in_range;
mod integer;
pub mod json;
pub mod keywords;
pub mod listed;
pub mod mcv_list;
mod moments;
mod money;
mod network;
mod normal;
pub mod operands;
pub mod ordered_set;
pub mod pattern;
pub mod ranges;
pub mod regex;
mod regexp;
pub mod registry;
mod regression;
pub mod resolve;
mod row_compare;
mod row_image;
pub mod sample;
pub mod scram;
pub mod search;
pub mod session;
pub mod sets;
mod sizes;
mod spread;
pub mod statement_columns;
pub mod strings;
pub mod system;
mod table;
mod table_aggregates;
mod table_casts;
mod table_catalog;
mod table_compare;
mod table_geometry;
mod table_io;
mod table_json;
mod table_moment;
mod table_money;
mod table_network;
mod table_number;
mod table_operators;
mod table_ranges;
mod table_search;
mod table_sets;
mod table_statistics;
mod table_string;
mod table_system;
mod template;
mod to_char;
mod to_char_number;
mod to_number;
mod type_io;
mod vector_sums;
pub mod window;

// The tables name functions by modules of the crate.
use extensions::{
    citext, fuzzy as fuzzystrmatch, hstore, hstore_forms, ltree, pgcrypto, trigram, unaccent,
    uuid as uuid_ossp, vector_distances, vectors,
};

use geometry::{boxes, circles, lines, paths, points, polygons};

use base::coro;
use base::error::{Error, Result};

use types::{growth, Datum, EvalContext, TypeId};

pub use aggregate::{
    aggregate_by_oid, aggregates_named, aggregates_of_type, all_aggregates, Accumulator, Aggregate,
};
pub use array_shapes::{check_stackable, stacked};
pub use comparison::check_sortable;
pub use operands::{resolve_operator, OperatorMatch};
pub use registry::under_keyword;
pub use registry::{
    all_casts, all_functions, all_operators, any_operator_by_oid, cast_between, casts_of,
    function_by_oid, functions_named, operator_by_oid, operators_for, operators_named,
};
pub use resolve::{
    find_coercion, resolve_aggregate, resolve_function, resolve_type_function, resolve_window,
    resolve_with_array, select_common_type, AggregateMatch, Coercion, FunctionMatch, WindowMatch,
};
pub use session::SessionFunction;
pub use sets::Records;
pub use spread::{takes_array, with_array};
pub use table::CastContext;
pub use window::{all_windows, window_by_oid, windows_named, WindowFunction};

/// What a function is told about the call besides its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Instants and settings.
    pub context: &'a EvalContext,
    /// The types of the arguments as passed (after coercion; pseudo-types made concrete).
    pub argument_types: &'a [TypeId],
    /// The type of the result.
    pub result: TypeId,
}

/// A function of values. It is not called with a NULL argument if it is strict.
pub type Native = fn(&Call<'_>, &[Datum]) -> Result<Datum>;

/// The rows of a set-returning function.
pub type Rows = Box<dyn Iterator<Item = Result<Datum>>>;

/// A set-returning function.
pub type SetReturning = fn(&Call<'_>, &[Datum]) -> Result<Rows>;

/// How a function is carried out.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Here.
    Native(Native),
    /// Here, giving any number of rows.
    Set(SetReturning),
    /// Here, giving any number of rows of several columns.
    Records(&'static Records),
    /// By the executor, which knows the session and the catalog.
    Session(SessionFunction),
}

/// Whether a call may be computed once for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Its result depends on the arguments alone.
    Immutable,
    /// It does not change within a statement.
    Stable,
    /// It may differ at each call.
    Volatile,
}

/// A row of `pg_proc`.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The declared types of its arguments. The last of a variadic function may come any number of
    /// times (`"any"`).
    pub arguments: &'static [TypeId],
    /// Whether the last argument is VARIADIC.
    pub variadic: bool,
    /// How many trailing arguments have defaults (the executor passes the shorter list).
    pub defaults: u8,
    /// The declared type of its result.
    pub result: TypeId,
    /// See [`Volatility`].
    pub volatility: Volatility,
    /// Whether a NULL argument makes the result NULL without a call.
    pub strict: bool,
    /// What it does.
    pub body: Body,
}

impl Function {
    /// Computes the function; NULL for a NULL argument of a strict one.
    ///
    /// # Errors
    /// The function's own, and XX000 for one that is not [`Body::Native`].
    pub fn call(&self, call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
        if self.is_null_for(arguments) {
            return Ok(Datum::Null);
        }
        match self.body {
            Body::Native(native) => {
                let value = coro::interruptible(|| native(call, arguments))??;
                growth::check(&value)?;
                Ok(value)
            }
            _ => Err(Error::internal(format!(
                "function {} ({}) is not computed from values alone",
                self.name, self.oid
            ))),
        }
    }

    /// Whether a NULL among these arguments makes the result NULL without a call. What is gathered for
    /// a multirange is an array of ranges, which is not NULL itself.
    #[inline]
    pub fn is_null_for(&self, arguments: &[Datum]) -> bool {
        let gathers = self.variadic && self.result.is_multirange();
        self.strict && !gathers && arguments.iter().any(Datum::is_null)
    }

    /// The result for two values, of the functions that expressions call most, where it takes no more
    /// than a few instructions and cannot fail; else none, and [`Function::call`] tells. What it gives
    /// is what that gives.
    #[inline]
    pub fn quick(&self, a: &Datum, b: &Datum) -> Option<Datum> {
        match (a, b) {
            (Datum::Numeric(a), Datum::Numeric(b)) => Some(match self.oid {
                1718 => Datum::Bool(a.cmp_small(b)?.is_eq()),
                1719 => Datum::Bool(a.cmp_small(b)?.is_ne()),
                1720 => Datum::Bool(a.cmp_small(b)?.is_gt()),
                1721 => Datum::Bool(a.cmp_small(b)?.is_ge()),
                1722 => Datum::Bool(a.cmp_small(b)?.is_lt()),
                1723 => Datum::Bool(a.cmp_small(b)?.is_le()),
                1724 => Datum::Numeric(a.add_small(b)?),
                1725 => Datum::Numeric(a.sub_small(b)?),
                1726 => Datum::Numeric(a.mul_small(b)?),
                _ => return None,
            }),
            (Datum::Int4(a), Datum::Int4(b)) => Some(match self.oid {
                65 => Datum::Bool(a == b),
                144 => Datum::Bool(a != b),
                66 => Datum::Bool(a < b),
                147 => Datum::Bool(a > b),
                149 => Datum::Bool(a <= b),
                150 => Datum::Bool(a >= b),
                177 => Datum::Int4(a.checked_add(*b)?),
                181 => Datum::Int4(a.checked_sub(*b)?),
                _ => return None,
            }),
            (Datum::Date(a), Datum::Date(b)) => Some(Datum::Bool(match self.oid {
                1_086 => a == b,
                1_087 => a < b,
                1_088 => a <= b,
                1_089 => a > b,
                1_090 => a >= b,
                1_091 => a != b,
                _ => return None,
            })),
            (Datum::Text(a), Datum::Text(b)) => Some(Datum::Bool(match self.oid {
                67 => a == b,
                157 => a != b,
                1_048 => a.trim_end_matches(' ') == b.trim_end_matches(' '),
                1_053 => a.trim_end_matches(' ') != b.trim_end_matches(' '),
                _ => return None,
            })),
            _ => None,
        }
    }

    /// Whether PUBLIC may not call it unless a superuser grants that.
    pub fn is_restricted(&self) -> bool {
        matches!(self.body, Body::Session(which) if which.is_restricted())
    }

    /// Whether it is computed from values alone.
    #[inline]
    pub fn is_of_values(&self) -> bool {
        matches!(self.body, Body::Native(_))
    }

    /// The columns of its rows, if they have several.
    pub fn columns(&self) -> Option<&'static [(&'static str, TypeId)]> {
        match self.body {
            Body::Records(records) => Some(records.columns),
            Body::Session(which) => which.columns(),
            Body::Native(_) | Body::Set(_) => None,
        }
    }

    /// The columns of its rows where its arguments are of these types.
    pub fn columns_of(&self, arguments: &[TypeId]) -> Option<Vec<(&'static str, TypeId)>> {
        let element = arguments.first().and_then(|ty| ty.array_element());
        let concrete = |(name, ty): &(&'static str, TypeId)| match *ty {
            TypeId::ANYELEMENT => (*name, element.unwrap_or(TypeId::ANYELEMENT)),
            ty => (*name, ty),
        };
        self.columns()
            .map(|columns| columns.iter().map(concrete).collect())
    }

    /// Whether it looks at rows of the database, or writes them.
    pub fn reads_rows(&self) -> bool {
        matches!(self.body, Body::Session(SessionFunction::LargeObject(_)))
    }

    /// Whether it returns rows.
    pub fn is_set_returning(&self) -> bool {
        match self.body {
            Body::Set(_) | Body::Records(_) => true,
            Body::Session(which) => which.gives_rows(),
            Body::Native(_) => false,
        }
    }
}

/// A row of `pg_operator`.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The type of the left operand; [`TypeId::NONE`] for a prefix operator.
    pub left: TypeId,
    /// The type of the right operand.
    pub right: TypeId,
    /// The function that computes it.
    pub function: &'static Function,
    /// The name of the operator that means the same with swapped operands; may be empty.
    pub commutator: &'static str,
    /// The name of the operator that means the opposite; may be empty.
    pub negator: &'static str,
}

/// A row of `pg_cast`.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// From.
    pub source: TypeId,
    /// To.
    pub target: TypeId,
    /// How.
    pub method: CastMethod,
    /// The least explicit context in which it is used.
    pub context: CastContext,
}

/// How a cast is carried out.
#[derive(Clone, Copy, Debug)]
pub enum CastMethod {
    /// The value stays as it is.
    Binary,
    /// By a function of the value (and, where it has three arguments, modifier and explicitness).
    Function(&'static Function),
    /// Through the text form.
    InOut,
}

/// The functions, aggregates and window functions of a name: oids and types of arguments.
pub fn signatures(name: &str) -> Vec<(u32, Vec<TypeId>)> {
    let functions = functions_named(name).iter();
    let functions = functions.filter(|known| function_by_oid(known.oid).is_some());
    let functions = functions.map(|known| (known.oid, known.arguments.to_vec()));
    let aggregates = aggregates_named(name).iter();
    let aggregates = aggregates.map(|known| (known.oid, known.arguments.to_vec()));
    let windows = windows_named(name).map(|known| (known.oid, known.arguments.to_vec()));
    let mut all: Vec<_> = functions.chain(aggregates).chain(windows).collect();
    all.sort_by_key(|known| known.0);
    all.dedup_by_key(|known| known.0);
    all
}

/// The oids and names of all functions, aggregates and window functions.
pub fn all_signatures() -> Vec<(u32, &'static str)> {
    let functions = all_functions().map(|known| (known.oid, known.name));
    let aggregates = all_aggregates().map(|known| (known.oid, known.name));
    let windows = all_windows().map(|known| (known.oid, known.name));
    let mut all: Vec<_> = functions.chain(aggregates).chain(windows).collect();
    all.sort_unstable();
    all.dedup_by_key(|known| known.0);
    all
}

/// A function, aggregate or window function with the types of its arguments: `abs(integer)`.
pub fn signature_of(oid: u32) -> Option<String> {
    let function = function_by_oid(oid).map(|known| (known.name, known.arguments));
    let aggregate = || aggregate_by_oid(oid).map(|known| (known.name, known.arguments));
    let window = || window_by_oid(oid).map(|known| (known.name, known.arguments));
    let (name, arguments) = function.or_else(aggregate).or_else(window)?;
    let arguments: Vec<_> = arguments.iter().map(TypeId::to_string).collect();
    let name = strings::quote_identifier(name);
    Some(format!("{name}({})", arguments.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Numeric;

    #[test]
    fn quick_results_are_those_of_calls() {
        let numbers = [
            "0",
            "1.50",
            "1.5",
            "-3",
            "9223372036854775807",
            "1e30",
            "NaN",
            "0.000000000000000001",
        ];
        let numbers = numbers.map(|text| Datum::Numeric(Numeric::parse(text).unwrap()));
        let integers = [i32::MIN, -1, 0, 1, i32::MAX].map(Datum::Int4);
        let days = [i32::MIN, -1, 0, 1, i32::MAX].map(Datum::Date);
        let texts = ["", "a", "a ", "b"].map(Datum::text);
        let context = EvalContext::for_tests();
        let (mut given, null) = (0, [Datum::Null]);
        for (values, kinds) in [
            (&numbers[..], &[TypeId::NUMERIC][..]),
            (&integers[..], &[TypeId::INT4][..]),
            (&days[..], &[TypeId::DATE][..]),
            (&texts[..], &[TypeId::TEXT, TypeId::BPCHAR][..]),
        ] {
            let all = all_functions().filter(|function| {
                let [a, b] = function.arguments else {
                    return false;
                };
                a == b && kinds.contains(a) && function.is_of_values()
            });
            for function in all {
                for (a, b) in values
                    .iter()
                    .chain(&null)
                    .flat_map(|a| values.iter().map(move |b| (a, b)))
                {
                    let Some(quick) = function.quick(a, b) else {
                        continue;
                    };
                    let call = Call {
                        context: &context,
                        argument_types: function.arguments,
                        result: function.result,
                    };
                    let slow = function.call(&call, &[a.clone(), b.clone()]).unwrap();
                    assert_eq!(quick, slow, "{} {a:?} {b:?}", function.name);
                    given += 1;
                }
            }
        }
        assert!(given > 300, "{given}");
    }
}
