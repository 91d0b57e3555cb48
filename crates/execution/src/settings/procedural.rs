//! PL/pgSQL's settings.
//!
//! Source: PostgreSQL 15 manual, sections 43.11.1 and 43.12.2.

use base::{Error, Result, SqlState};

use super::{define, split_path, Definition, Kind};

#[rustfmt::skip]
pub(super) const SETTINGS: &[Definition] = &[
    define("plpgsql.check_asserts", Kind::Bool, "on", "Perform checks given in ASSERT statements."),
    define(ERRORS, Kind::Text, "none", "List of programming constructs that should produce an error."),
    define(WARNINGS, Kind::Text, "none", "List of programming constructs that should produce a warning."),
    define("plpgsql.print_strict_params", Kind::Bool, "off", "Print information about parameters in the DETAIL part of the error messages generated on INTO ... STRICT failures."),
    define("plpgsql.variable_conflict", Kind::Enum(&["error", "use_variable", "use_column"]), "error", "Sets handling of conflicts between PL/pgSQL variable names and table column names."),
];

const ERRORS: &str = "plpgsql.extra_errors";
const WARNINGS: &str = "plpgsql.extra_warnings";

/// Whether a value of a setting of that name is a list of checks.
pub(super) fn is_list_of_checks(name: &str) -> bool {
    matches!(name, ERRORS | WARNINGS)
}

/// What may be looked for beyond what is wrong in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// A variable that has the name of one around it.
    pub shadowed_variables: bool,
    /// INTO of a query with more than one row.
    pub too_many_rows: bool,
    /// As many variables as columns.
    pub strict_multi_assignment: bool,
}

impl Checks {
    const ALL: Checks = Checks {
        shadowed_variables: true,
        too_many_rows: true,
        strict_multi_assignment: true,
    };

    /// The checks of a list.
    ///
    /// # Errors
    /// 22023, as a detail of which key word is none.
    pub(super) fn read(text: &str) -> Result<Checks> {
        let mut checks = Checks::default();
        for word in split_path(text) {
            match word.as_str() {
                "all" => return alone(text, "all", Checks::ALL),
                "none" => return alone(text, "none", Checks::default()),
                "shadowed_variables" => checks.shadowed_variables = true,
                "too_many_rows" => checks.too_many_rows = true,
                "strict_multi_assignment" => checks.strict_multi_assignment = true,
                _ => return Err(wrong(format!("Unrecognized key word: \"{word}\"."))),
            }
        }
        Ok(checks)
    }
}

fn alone(text: &str, word: &str, checks: Checks) -> Result<Checks> {
    match text.trim().eq_ignore_ascii_case(word) {
        true => Ok(checks),
        false => Err(wrong(format!(
            "Key word \"{word}\" cannot be combined with other key words."
        ))),
    }
}

fn wrong(detail: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid list of checks").with_detail(detail)
}

/// What a name means that is a variable's and a column's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VariableConflict {
    /// Nothing.
    #[default]
    Error,
    /// The variable.
    UseVariable,
    /// The column.
    UseColumn,
}

/// PL/pgSQL's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Procedural {
    /// `plpgsql.check_asserts` is off.
    pub skips_asserts: bool,
    /// `plpgsql.print_strict_params`.
    pub print_strict_params: bool,
    /// `plpgsql.variable_conflict`.
    pub variable_conflict: VariableConflict,
    /// `plpgsql.extra_errors`.
    pub errors: Checks,
    /// `plpgsql.extra_warnings`.
    pub warnings: Checks,
}

impl Procedural {
    /// What the settings of these names say.
    pub(super) fn parsed<'t>(text: impl Fn(&'static str) -> &'t str) -> Procedural {
        Procedural {
            skips_asserts: text("plpgsql.check_asserts") == "off",
            print_strict_params: text("plpgsql.print_strict_params") == "on",
            variable_conflict: match text("plpgsql.variable_conflict") {
                "use_variable" => VariableConflict::UseVariable,
                "use_column" => VariableConflict::UseColumn,
                _ => VariableConflict::Error,
            },
            errors: Checks::read(text(ERRORS)).unwrap_or_default(),
            warnings: Checks::read(text(WARNINGS)).unwrap_or_default(),
        }
    }
}
