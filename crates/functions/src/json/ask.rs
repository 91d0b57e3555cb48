//! The functions that follow a jsonpath.

use base::error::{Error, Result, SqlState};
use base::jsonb::{Object, Value, View};

use super::follow::{Follower, Stop};
use super::item::Item;
use super::{invalid, jsonb};
use crate::arguments::Arguments;
use crate::{Call, Rows};
use types::json::path::{self, Path};
use types::json::Builder;
use types::Datum;

/// A call: the document, the path, the variables, and whether errors are hidden.
struct Asked<'a> {
    value: Value<'a>,
    path: Path,
    vars: Option<Object<'a>>,
    silent: bool,
    with_zone: bool,
}

impl<'a> Asked<'a> {
    fn new(args: &'a [Datum], silent: bool, with_zone: bool) -> Result<Asked<'a>> {
        let vars = match args.get(2) {
            None => None,
            Some(_) => match jsonb(args, 2)?.view() {
                View::Object(vars) => Some(vars),
                _ => {
                    let detail = "Jsonpath parameters should be encoded as key-value pairs of \
                                  \"vars\" object.";
                    return Err(invalid("\"vars\" argument is not an object").with_detail(detail));
                }
            },
        };
        Ok(Asked {
            value: jsonb(args, 0)?,
            path: path::parse(args.text(1)?)?,
            vars,
            silent: args.get(3).map_or(silent, Datum::is_true),
            with_zone,
        })
    }

    /// Follows the path: what is found, up to an error that is hidden, and whether there was one. With
    /// `first`, only until something is found, if that is allowed: in strict mode there may be errors
    /// later.
    fn run(&self, call: &Call<'_>, first: bool) -> Result<(Vec<Datum>, bool)> {
        let root = Item::of(self.value);
        let stops = first && self.path.lax;
        let mut follower = Follower {
            context: call.context,
            vars: self.vars,
            lax: self.path.lax,
            forgiving: self.path.lax,
            with_zone: self.with_zone,
            root: root.clone(),
            current: root.clone(),
            array_len: 0,
            generation: 0,
            whether: stops,
        };
        let mut found = Vec::new();
        let mut bytes = 0;
        let result = follower.follow(&self.path.steps, root, &mut |item| {
            let value = item.datum(call.context)?;
            bytes += types::growth::ELEMENT_BYTES + types::growth::bytes_of(&value);
            types::growth::check_room(bytes, 0)?;
            found.push(value);
            match stops {
                true => Err(Stop::Found),
                false => Ok(()),
            }
        });
        match result {
            Ok(()) | Err(Stop::Found) => Ok((found, false)),
            Err(Stop::Path(_)) if self.silent => Ok((found, true)),
            Err(Stop::Path(error) | Stop::Other(error)) => Err(error),
        }
    }
}

fn exists(call: &Call<'_>, asked: &Asked<'_>) -> Result<Datum> {
    Ok(match asked.run(call, true)? {
        (_, true) => Datum::Null,
        (found, false) => Datum::Bool(!found.is_empty()),
    })
}

fn matches(call: &Call<'_>, asked: &Asked<'_>) -> Result<Datum> {
    if let [Datum::Jsonb(one)] = asked.run(call, false)?.0.as_slice() {
        match Value(one).view() {
            View::Bool(truth) => return Ok(Datum::Bool(truth)),
            View::Null => return Ok(Datum::Null),
            _ => {}
        }
    }
    match asked.silent {
        true => Ok(Datum::Null),
        false => Err(Error::new(
            SqlState::of("22038"),
            "single boolean result is expected",
        )),
    }
}

fn query(call: &Call<'_>, asked: &Asked<'_>) -> Result<Rows> {
    let (found, _) = asked.run(call, false)?;
    Ok(Box::new(found.into_iter().map(Ok)))
}

fn query_array(call: &Call<'_>, asked: &Asked<'_>) -> Result<Datum> {
    let mut builder = Builder::new();
    builder.begin_array()?;
    for found in asked.run(call, false)?.0 {
        builder.value(jsonb(&[found], 0)?)?;
    }
    builder.end()?;
    builder.finish()
}

fn query_first(call: &Call<'_>, asked: &Asked<'_>) -> Result<Datum> {
    let (found, _) = asked.run(call, false)?;
    Ok(found.into_iter().next().unwrap_or(Datum::Null))
}

macro_rules! asking {
    ($($name:ident $how:ident $silent:literal $with_zone:literal $result:ty;)*) => {
        $(pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<$result> {
            $how(call, &Asked::new(args, $silent, $with_zone)?)
        })*
    };
}

asking! {
    jsonb_path_exists exists false false Datum;
    jsonb_path_exists_tz exists false true Datum;
    jsonb_path_exists_opr exists true false Datum;
    jsonb_path_match matches false false Datum;
    jsonb_path_match_tz matches false true Datum;
    jsonb_path_match_opr matches true false Datum;
    jsonb_path_query query false false Rows;
    jsonb_path_query_tz query false true Rows;
    jsonb_path_query_array query_array false false Datum;
    jsonb_path_query_array_tz query_array false true Datum;
    jsonb_path_query_first query_first false false Datum;
    jsonb_path_query_first_tz query_first false true Datum;
}
