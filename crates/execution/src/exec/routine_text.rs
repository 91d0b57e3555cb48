//! Functions and procedures of one's own as text: `pg_get_functiondef` and its kin.
//!
//! ```text
//! CREATE OR REPLACE FUNCTION public.add(a integer, b integer DEFAULT 1)
//!  RETURNS integer
//!  LANGUAGE sql
//! AS $function$ select a + b $function$
//! ```

use base::{Error, Result, SqlState};

use super::catalog_functions::{binding, search_path};
use super::Exec;
use catalog::depend::shown_name;
use catalog::routine::{Argument, Mode, Routine, RoutineKind};
use functions::strings::quote_identifier;
use planner::bind::sql_body::body_text;
use planner::bind::stored;
use types::TypeId;

/// A type as it is named along the search path.
fn type_text(cx: &Exec<'_>, ty: TypeId) -> String {
    let shown = cx.catalog.shown_type(&search_path(cx), ty);
    shown.unwrap_or_else(|| ty.to_string())
}

/// The arguments as `pg_get_function_arguments` shows them, or without defaults.
///
/// # Errors
/// What binding a default gives, if what it rests on is gone.
pub(super) fn arguments(cx: &Exec<'_>, routine: &Routine, with_defaults: bool) -> Result<String> {
    let shown = routine.arguments.iter();
    let shown = shown.filter(|argument| argument.mode != Mode::Table);
    let shown = shown.map(|argument| argument_text(cx, routine, argument, with_defaults));
    Ok(shown.collect::<Result<Vec<_>>>()?.join(", "))
}

/// The default of the argument of that number, if it is an input that has one.
///
/// # Errors
/// As [`arguments`].
pub(super) fn argument_default(
    cx: &Exec<'_>,
    routine: &Routine,
    number: i64,
) -> Result<Option<String>> {
    let place = usize::try_from(number - 1).ok();
    let argument = place.and_then(|place| routine.arguments.get(place));
    let Some((argument, text)) = argument.and_then(|own| Some((own, own.default.as_ref()?))) else {
        return Ok(None);
    };
    let path = search_path(cx);
    stored::argument_default(binding(cx, &path), argument, text).map(Some)
}

fn argument_text(
    cx: &Exec<'_>,
    routine: &Routine,
    argument: &Argument,
    with_defaults: bool,
) -> Result<String> {
    let mode = match argument.mode {
        Mode::In if routine.kind == RoutineKind::Procedure => "IN ",
        Mode::In | Mode::Table => "",
        Mode::Out => "OUT ",
        Mode::InOut => "INOUT ",
        Mode::Variadic => "VARIADIC ",
    };
    let name = match argument.name.as_str() {
        "" => String::new(),
        name => format!("{} ", quote_identifier(name)),
    };
    let default = match &argument.default {
        Some(text) if with_defaults => {
            let path = search_path(cx);
            let shown = stored::argument_default(binding(cx, &path), argument, text)?;
            format!(" DEFAULT {shown}")
        }
        _ => String::new(),
    };
    let ty = type_text(cx, argument.type_id);
    Ok(format!("{mode}{name}{ty}{default}"))
}

/// The result as `pg_get_function_result` shows it; none of a procedure.
pub(super) fn result(cx: &Exec<'_>, routine: &Routine) -> Option<String> {
    if routine.kind == RoutineKind::Procedure {
        return None;
    }
    let columns = routine
        .arguments
        .iter()
        .filter(|argument| argument.mode == Mode::Table);
    let columns: Vec<_> = columns
        .map(|column| {
            let ty = type_text(cx, column.type_id);
            format!("{} {ty}", quote_identifier(&column.name))
        })
        .collect();
    if !columns.is_empty() {
        return Some(format!("TABLE({})", columns.join(", ")));
    }
    let set = if routine.set { "SETOF " } else { "" };
    let relation = shown_name(cx.catalog, &search_path(cx), routine.result_relation);
    let shown = relation.unwrap_or_else(|| type_text(cx, routine.result));
    Some(format!("{set}{shown}"))
}

/// The value of a SET clause: names of a list each in quotes.
fn setting_text(name: &str, value: &str) -> String {
    let quoted = |text: &str| match text.contains('\\') {
        true => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        false => format!("'{}'", text.replace('\'', "''")),
    };
    if name != "search_path" {
        return quoted(value);
    }
    let items: Vec<_> = value
        .split(',')
        .map(|item| {
            let item = item.trim();
            let inside = item
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            quoted(&inside.map_or_else(|| item.to_owned(), |inside| inside.replace("\"\"", "\"")))
        })
        .collect();
    items.join(", ")
}

/// Its body in standard SQL, as `pg_get_function_sqlbody` shows it.
///
/// # Errors
/// What binding a statement gives, if what it rests on is gone.
pub(super) fn sql_body(cx: &Exec<'_>, routine: &Routine) -> Result<Option<String>> {
    let path = search_path(cx);
    let body = routine.sql_body.as_ref();
    let shown = body.map(|body| body_text(binding(cx, &path), routine, body));
    shown.transpose()
}

/// The statement that makes it again, as `pg_get_functiondef` shows it.
///
/// # Errors
/// As [`arguments`].
pub(super) fn definition(cx: &Exec<'_>, routine: &Routine) -> Result<String> {
    if routine.kind == RoutineKind::Aggregate {
        return Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is an aggregate function", routine.name),
        ));
    }
    let schema = cx.catalog.schema_by_oid(routine.schema);
    let mut out = format!(
        "CREATE OR REPLACE {} {}.{}({})\n",
        routine.kind.noun().to_uppercase(),
        quote_identifier(schema.map_or("", |schema| &schema.name)),
        quote_identifier(&routine.name),
        arguments(cx, routine, true)?
    );
    if let Some(result) = result(cx, routine) {
        out.push_str(&format!(" RETURNS {result}\n"));
    }
    out.push_str(&format!(" LANGUAGE {}\n", routine.language.name()));
    let mut words = Vec::new();
    match routine.volatility {
        b'i' => words.push("IMMUTABLE".to_owned()),
        b's' => words.push("STABLE".to_owned()),
        _ => {}
    }
    match routine.parallel {
        b's' => words.push("PARALLEL SAFE".to_owned()),
        b'r' => words.push("PARALLEL RESTRICTED".to_owned()),
        _ => {}
    }
    if routine.strict {
        words.push("STRICT".to_owned());
    }
    if routine.security_definer {
        words.push("SECURITY DEFINER".to_owned());
    }
    if routine.leakproof {
        words.push("LEAKPROOF".to_owned());
    }
    if routine.cost > 0.0 && routine.cost != 100.0 {
        words.push(format!("COST {}", routine.cost));
    }
    if routine.set && routine.rows > 0.0 && routine.rows != 1_000.0 {
        words.push(format!("ROWS {}", routine.rows));
    }
    if !words.is_empty() {
        out.push_str(&format!(" {}\n", words.join(" ")));
    }
    for (name, value) in &routine.settings {
        let value = setting_text(name, value);
        let name = quote_identifier(name);
        out.push_str(&format!(" SET {name} TO {value}\n"));
    }
    if let Some(body) = sql_body(cx, routine)? {
        out.push_str(&format!("{body}\n"));
        return Ok(out);
    }
    let word = routine.kind.noun();
    let mut tag = format!("${word}$");
    while routine.body.contains(&tag) {
        tag.insert(tag.len() - 1, 'x');
    }
    out.push_str(&format!("AS {tag}{}{tag}\n", routine.body));
    Ok(out)
}
