//! CREATE AGGREGATE.
//!
//! ```text
//! create aggregate join_up (text) (sfunc = append, stype = text)
//! a routine join_up(text) of kind Aggregate, whose parts are append(text, text) and text
//! ```
//! Its functions are found by the types that they will be called with, and kept by their oids; whoever
//! makes it must be allowed to call them, and its owner when it is used.
//!
//! # What it leaves out
//! Aggregates over sorted sets, VARIADIC ones, SORTOP, states that are written for other processes
//! (SERIALFUNC) and those that give back rows (MSFUNC and its kin) answer 0A000. COMBINEFUNC is kept
//! and not called, as in a PostgreSQL without parallel workers.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{DefElem, DefineStmt, Node, TypeName};

use super::super::utility::{option_text, tag};
use super::super::{CommandTag, Session, Sink};
use super::routine::invalid;
use super::table::cut_name;
use super::texts;
use catalog::access::{denied, Guarded, Privileges};
use catalog::routine::{AggregateParts, Argument, Language, Mode, Routine, RoutineKind};
use catalog::Catalog;
use planner::bind::own_aggregate::PartFound;
use syntax::parser::NodeEnum;
use types::{Category, TypeId, NO_TYPMOD};

/// What the definition says, before anything of it is looked up.
#[derive(Default)]
struct Said<'d> {
    transition: Option<Vec<String>>,
    state: Option<&'d DefElem>,
    last: Option<Vec<String>>,
    combine: Option<Vec<String>>,
    base: Option<&'d DefElem>,
    initial: Option<String>,
    last_extra: bool,
    last_modifies: Option<u8>,
    space: u32,
    parallel: Option<u8>,
}

/// Options that are not carried out.
const WITHOUT: [&str; 12] = [
    "deserialfunc",
    "hypothetical",
    "mfinalfunc",
    "mfinalfunc_extra",
    "mfinalfunc_modify",
    "minitcond",
    "minvfunc",
    "msfunc",
    "msspace",
    "mstype",
    "serialfunc",
    "sortop",
];

impl Session {
    pub(in crate::session) fn create_aggregate(
        &mut self,
        define: &DefineStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let names = texts(&define.defnames);
        let schema = match names.as_slice() {
            [.., schema, _] => schema.as_str(),
            _ => "",
        };
        let mut routine = Routine {
            schema: self.routine_schema(&catalog, schema)?,
            name: cut_name(names.last().map_or("", String::as_str)),
            owner: self.own_role(&catalog)?,
            kind: RoutineKind::Aggregate,
            language: Language::C,
            volatility: b'i',
            parallel: b'u',
            body: "aggregate_dummy".to_owned(),
            ..Routine::default()
        };
        let said = self.aggregate_options(define, sink)?;
        let Some(state) = said.state else {
            return Err(invalid("aggregate stype must be specified"));
        };
        let Some(transition) = &said.transition else {
            return Err(invalid("aggregate sfunc must be specified"));
        };
        self.aggregate_arguments(&catalog, define, &said, &mut routine)?;
        let state = self.option_type(&catalog, state)?;
        self.check_state(&catalog, &routine, state, &said)?;
        let mut parts = AggregateParts {
            state,
            initial: said.initial.clone(),
            last_extra: said.last_extra,
            last_modifies: said.last_modifies.unwrap_or(b'r'),
            space: said.space,
            ..AggregateParts::default()
        };
        let all: Vec<TypeId> = std::iter::once(state)
            .chain(routine.input_types())
            .collect();
        let step = self.aggregate_part(&catalog, transition, &all)?;
        check_step(&step, state, &routine, said.initial.is_some(), transition)?;
        parts.transition = step.oid;
        routine.result = state;
        if let Some(last) = &said.last {
            let given = if said.last_extra { &all[..] } else { &all[..1] };
            let found = self.aggregate_part(&catalog, last, given)?;
            if said.last_extra && found.strict {
                let message = "final function with extra arguments must not be declared STRICT";
                return Err(invalid(message));
            }
            (parts.last, routine.result) = (found.oid, found.result);
        }
        if let Some(combine) = &said.combine {
            let found = self.aggregate_part(&catalog, combine, &[state, state])?;
            if found.result != state {
                return Err(wrong_result("combine", combine, state));
            }
            parts.combine = found.oid;
        }
        check_result_type(&routine)?;
        self.may_use_type(&catalog, state)?;
        self.may_use_type(&catalog, routine.result)?;
        if let Some(parallel) = said.parallel {
            routine.parallel = parallel;
        }
        routine.aggregate = Some(Box::new(parts));
        self.put_routine(&catalog, routine, define.replace, sink)?;
        Ok(tag("CREATE AGGREGATE"))
    }

    fn aggregate_options<'d>(
        &mut self,
        define: &'d DefineStmt,
        sink: &mut dyn Sink,
    ) -> Result<Said<'d>> {
        let mut said = Said::default();
        for node in &define.definition {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            let flag = || !matches!(option_text(option).as_str(), "false" | "off" | "0");
            match option.defname.as_str() {
                "sfunc" | "sfunc1" => said.transition = Some(function_names(option)),
                "stype" | "stype1" => said.state = Some(option),
                "finalfunc" => said.last = Some(function_names(option)),
                "combinefunc" => said.combine = Some(function_names(option)),
                "basetype" => said.base = Some(option),
                "initcond" | "initcond1" => said.initial = Some(option_text(option)),
                "finalfunc_extra" => said.last_extra = option.arg.is_none() || flag(),
                "finalfunc_modify" => said.last_modifies = Some(modifies(option)?),
                "sspace" => said.space = option_text(option).parse().unwrap_or(0),
                "parallel" => said.parallel = Some(parallel(option)?),
                name if WITHOUT.contains(&name) => {
                    let what = format!("{} of an aggregate", name.to_uppercase());
                    return Err(Error::unsupported(what));
                }
                name => {
                    let message = format!("aggregate attribute \"{name}\" not recognized");
                    self.warn(SqlState::SYNTAX_ERROR, &message, sink)?;
                }
            }
        }
        Ok(said)
    }

    fn aggregate_arguments(
        &mut self,
        catalog: &Arc<Catalog>,
        define: &DefineStmt,
        said: &Said<'_>,
        routine: &mut Routine,
    ) -> Result<()> {
        if define.oldstyle {
            let Some(base) = said.base else {
                return Err(invalid("aggregate input type must be specified"));
            };
            if !option_text(base).eq_ignore_ascii_case("any") {
                let type_id = self.option_type(catalog, base)?;
                self.may_use_type(catalog, type_id)?;
                routine.arguments.push(Argument {
                    type_id,
                    ..Argument::default()
                });
            }
            return Ok(());
        }
        if said.base.is_some() {
            let message = "basetype is redundant with aggregate input type specification";
            return Err(invalid(message));
        }
        let sorted = define.args.get(1).and_then(|node| node.node.as_ref());
        if matches!(sorted, Some(NodeEnum::Integer(direct)) if direct.ival >= 0) {
            return Err(Error::unsupported("an ordered-set aggregate of one's own"));
        }
        let listed = define.args.first().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::List(listed)) = listed else {
            return Ok(());
        };
        self.routine_arguments(catalog, routine, &listed.items)?;
        for argument in &routine.arguments {
            match argument.mode {
                Mode::In if argument.default.is_some() => {
                    return Err(invalid("aggregates cannot have default arguments"));
                }
                Mode::In => {}
                Mode::Variadic => {
                    return Err(Error::unsupported("a VARIADIC argument of an aggregate"));
                }
                _ => return Err(invalid("aggregates cannot have output arguments")),
            }
        }
        Ok(())
    }

    pub(super) fn option_type(
        &mut self,
        catalog: &Arc<Catalog>,
        option: &DefElem,
    ) -> Result<TypeId> {
        let node = option.arg.as_ref().and_then(|node| node.node.as_ref());
        match node {
            Some(NodeEnum::TypeName(name)) => Ok(self.type_of_name(catalog, name)?.0),
            _ => {
                let name = TypeName {
                    names: vec![Node {
                        node: Some(NodeEnum::String(pg_query::protobuf::String {
                            sval: option_text(option),
                        })),
                    }],
                    typemod: -1,
                    ..TypeName::default()
                };
                Ok(self.type_of_name(catalog, &name)?.0)
            }
        }
    }

    /// 42P13 for a state of a type that no values are of, and what the first one raises.
    fn check_state(
        &mut self,
        catalog: &Arc<Catalog>,
        routine: &Routine,
        state: TypeId,
        said: &Said<'_>,
    ) -> Result<()> {
        if state.is_polymorphic() {
            let knows = routine.inputs().any(|input| input.type_id.is_polymorphic());
            return match knows {
                true => Ok(()),
                false => Err(
                    invalid("cannot determine transition data type").with_detail(format!(
                        "A result of type {state} requires at least one input of type anyelement, \
                         anyarray, anynonarray, anyenum, anyrange, or anymultirange."
                    )),
                ),
            };
        }
        if state == TypeId::INTERNAL {
            return Err(Error::unsupported(
                "an aggregate with a state of type internal",
            ));
        }
        if state.category() == Category::Pseudo {
            let message = format!("aggregate transition data type cannot be {state}");
            return Err(invalid(message));
        }
        if let Some(text) = &said.initial {
            let (base, _) = catalog.base_type(state);
            types::input(&self.eval, base, NO_TYPMOD, text)?;
        }
        Ok(())
    }

    /// A function that an aggregate is made of, which the role may call.
    pub(super) fn aggregate_part(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[String],
        types: &[TypeId],
    ) -> Result<PartFound> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = self.try_binding("", catalog, |binder| binder.aggregate_part(&names, types))?;
        let role = self.shared.settings.current_role();
        match catalog.holds(role, Guarded::Function, found.oid, Privileges::EXECUTE) {
            true => Ok(found),
            false => Err(denied(
                "function",
                names.last().copied().unwrap_or_default(),
            )),
        }
    }
}

/// The name of a function that an option gives.
pub(super) fn function_names(option: &DefElem) -> Vec<String> {
    match option.arg.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::TypeName(name)) => texts(&name.names),
        Some(NodeEnum::List(list)) => texts(&list.items),
        _ => vec![option_text(option)],
    }
}

fn modifies(option: &DefElem) -> Result<u8> {
    match option_text(option).to_ascii_lowercase().as_str() {
        "read_only" => Ok(b'r'),
        "shareable" => Ok(b's'),
        "read_write" => Ok(b'w'),
        _ => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!(
                "parameter \"{}\" must be READ_ONLY, SHAREABLE, or READ_WRITE",
                option.defname
            ),
        )),
    }
}

fn parallel(option: &DefElem) -> Result<u8> {
    match option_text(option).as_str() {
        "safe" => Ok(b's'),
        "restricted" => Ok(b'r'),
        "unsafe" => Ok(b'u'),
        _ => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE",
        )),
    }
}

fn wrong_result(what: &str, names: &[String], state: TypeId) -> Error {
    Error::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "return type of {what} function {} is not {state}",
            names.join(".")
        ),
    )
}

/// What is wrong with a transition function, if anything is.
fn check_step(
    step: &PartFound,
    state: TypeId,
    routine: &Routine,
    begins: bool,
    names: &[String],
) -> Result<()> {
    if step.result != state && (state.is_polymorphic() || !step.result.is_polymorphic()) {
        return Err(wrong_result("transition", names, state));
    }
    let first = routine.inputs().next().map(|input| input.type_id);
    let fits = first.is_some_and(|first| {
        first == state
            || first.is_polymorphic()
            || first == TypeId::VARCHAR && state == TypeId::TEXT
    });
    if step.strict && !begins && !fits {
        return Err(invalid(
            "must not omit initial value when transition function is strict and transition type is \
             not compatible with input type",
        ));
    }
    Ok(())
}

/// 42P13 for a result whose type no argument says.
fn check_result_type(routine: &Routine) -> Result<()> {
    let result = routine.result;
    let knows = routine.inputs().any(|input| input.type_id.is_polymorphic());
    if result.is_polymorphic() && !knows {
        return Err(
            invalid("cannot determine result data type").with_detail(format!(
                "A result of type {result} requires at least one input of type anyelement, \
                 anyarray, anynonarray, anyenum, anyrange, or anymultirange."
            )),
        );
    }
    match result {
        TypeId::INTERNAL => Err(invalid("unsafe use of pseudo-type \"internal\"")),
        _ => Ok(()),
    }
}
