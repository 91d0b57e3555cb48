//! Whether values are a domain's.

use base::{Error, Result, SqlState};

use super::program::Evaluate;
use super::Exec;
use planner::plan::DomainTest;
use types::Datum;

/// Work that one element of an array is.
const ELEMENT_WORK: usize = 1;

/// Tests a value of a domain's base type.
///
/// # Errors
/// 23502 for NULL, 23514 for a value that violates a check, with the domain in the error's fields.
pub(super) fn check(cx: &mut Exec<'_>, test: &DomainTest, value: &Datum) -> Result<()> {
    if let Datum::Record(row) = value {
        for (place, field) in &test.fields {
            let value = row.values.get(*place).unwrap_or(&Datum::Null);
            check(cx, field, value)?;
        }
    }
    if test.not_null && value.is_null() {
        let message = format!("domain {} does not allow null values", test.domain);
        let error = Error::new(SqlState::NOT_NULL_VIOLATION, message);
        return Err(of_domain(error, test, None));
    }
    if let (Some(element), Datum::Array(array)) = (&test.element, value) {
        for value in &array.elements {
            base::coro::work(ELEMENT_WORK)?;
            check(cx, element, value)?;
        }
    }
    for (name, condition) in &test.checks {
        if let Datum::Bool(false) = condition.eval(cx, std::slice::from_ref(value))? {
            let message = format!(
                "value for domain {} violates check constraint \"{name}\"",
                test.domain
            );
            let error = Error::new(SqlState::CHECK_VIOLATION, message);
            return Err(of_domain(error, test, Some(name)));
        }
    }
    Ok(())
}

fn of_domain(mut error: Error, test: &DomainTest, constraint: Option<&str>) -> Error {
    let fields = error.fields_mut();
    fields.schema = Some(test.schema.clone());
    fields.datatype = Some(test.name.clone());
    fields.constraint = constraint.map(str::to_owned);
    error
}
