//! CREATE, ALTER and DROP of functions and procedures.
//!
//! Which routine a statement names follows from the types of its arguments; without a list of them the
//! name must be unambiguous.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterFunctionStmt, CreateFunctionStmt, DefElem, FunctionParameter, FunctionParameterMode, Node,
    ObjectType, ObjectWithArgs, TypeName,
};

use super::super::plpgsql::body_start;
use super::super::plpgsql::code::Signature;
use super::super::plpgsql::piece::add_context;
use super::super::routines::signature_of;
use super::super::temporary::moved_temporary;
use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::drop_absent::{is_missing, written};
use super::table::cut_name;
use super::texts;
use catalog::access::must_own;
use catalog::cluster::Address;
use catalog::depend::{routine_path, routine_text};
use catalog::local::is_local;
use catalog::routine::{Argument, Language, Mode, Routine, RoutineKind};
use catalog::{store, system, Catalog, Column, Object, Uses};
use planner::plan::{Collated, RoutineCall};
use syntax::parser::{char_position, NodeEnum};
use types::TypeId;

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("42P13"), message)
}

pub(super) fn conflicting() -> Error {
    Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
}

/// An error with the place of an option.
pub(super) fn at_option(error: Error, text: &str, option: &DefElem) -> Error {
    match char_position(text, option.location) {
        Some(position) => error.at(position),
        None => error,
    }
}

impl Session {
    pub(in crate::session) fn create_routine(
        &mut self,
        text: &str,
        create: &CreateFunctionStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let done = tag(match create.is_procedure {
            true => "CREATE PROCEDURE",
            false => "CREATE FUNCTION",
        });
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let names = texts(&create.funcname);
        let schema = match names.as_slice() {
            [.., schema, _] => schema.as_str(),
            _ => "",
        };
        let mut routine = Routine {
            schema: self.routine_schema(&catalog, schema)?,
            name: cut_name(names.last().map_or("", String::as_str)),
            owner: self.own_role(&catalog)?,
            kind: match create.is_procedure {
                true => RoutineKind::Procedure,
                false => RoutineKind::Function,
            },
            volatility: b'v',
            parallel: b'u',
            ..Routine::default()
        };
        let body = create.sql_body.as_deref();
        let written = self.routine_options(text, &mut routine, &create.options, body.is_some())?;
        self.routine_arguments(&catalog, &mut routine, &create.parameters)?;
        self.routine_result(&catalog, &mut routine, create.return_type.as_ref())?;
        let language = system::language_named(routine.language.name());
        self.may_write_in(language)?;
        let location = match (written, body) {
            (None, None) => return Err(invalid("no function body specified")),
            (Some(_), Some(_)) => return Err(invalid("duplicate function body specified")),
            (None, Some(body)) => {
                self.take_sql_body(text, &catalog, &mut routine, body)?;
                -1
            }
            (Some(written), None) => {
                routine.body = written.body;
                written.location
            }
        };
        self.routine_replaced(&catalog, &routine, create.replace)?;
        self.check_body_with_settings(text, &catalog, &routine, location)?;
        self.put_routine(&catalog, routine, create.replace, sink)?;
        Ok(done)
    }

    /// The schema in which a routine is made; the one of temporary objects is made for it.
    pub(super) fn routine_schema(&mut self, catalog: &Catalog, named: &str) -> Result<u32> {
        let known = catalog.schema(named);
        match named == "pg_temp" || known.is_some_and(|schema| is_local(schema.oid)) {
            true => self.own_schema(),
            false => self.creation_schema(catalog, named),
        }
    }

    /// The routine that a new one replaces.
    ///
    /// # Errors
    /// 42723 if there is one that is not to be replaced, 42501, and what the new one lacks.
    fn routine_replaced(
        &self,
        catalog: &Catalog,
        routine: &Routine,
        replace: bool,
    ) -> Result<Option<Arc<Routine>>> {
        let inputs = routine.input_types();
        let named = catalog.routines_named(routine.schema, &routine.name);
        let old = named
            .into_iter()
            .find(|known| known.input_types() == inputs)
            .cloned();
        let Some(old) = old else {
            return Ok(None);
        };
        if !replace {
            return Err(plain(routine_exists(routine)));
        }
        self.must_own_routine(catalog, &old, &old.name)?;
        check_replaces(
            &old,
            routine,
            &routine_text(catalog, &self.search_path(catalog), &old),
        )?;
        Ok(Some(old))
    }

    pub(super) fn put_routine(
        &mut self,
        catalog: &Catalog,
        mut routine: Routine,
        replace: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let _ = sink;
        let Some(old) = self.routine_replaced(catalog, &routine, replace)? else {
            routine.oid = self.new_oid()?;
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            return match store::insert_routine(open.txn.as_mut(), catalog, &routine)? {
                true => Ok(()),
                false => Err(plain(routine_exists(&routine))),
            };
        };
        routine.oid = old.oid;
        routine.owner = old.owner;
        // One that calls itself does not depend on itself.
        routine.uses.retain(|uses| uses.relation != old.oid);
        self.update_routine(catalog, &old, &routine)
    }

    pub(super) fn update_routine(
        &mut self,
        catalog: &Catalog,
        old: &Routine,
        new: &Routine,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        match store::update_routine(open.txn.as_mut(), catalog.database.oid, old, new)? {
            true => Ok(()),
            false => {
                let schema = catalog.schema_by_oid(new.schema);
                Err(Error::new(
                    SqlState::of("42723"),
                    format!(
                        "function {}({}) already exists in schema \"{}\"",
                        new.name,
                        shown_types(&new.input_types()),
                        schema.map_or("", |schema| &schema.name)
                    ),
                ))
            }
        }
    }

    /// # Errors
    /// 42501 with the name as it is given, for who does not own a routine.
    pub(super) fn must_own_routine(
        &self,
        catalog: &Catalog,
        routine: &Routine,
        name: &str,
    ) -> Result<()> {
        match catalog.has_privileges_of(self.shared.settings.current_role(), routine.owner) {
            true => Ok(()),
            false => Err(must_own(routine.kind.noun(), name)),
        }
    }

    /// # Errors
    /// 42501 for who owns neither a routine nor its schema.
    pub(super) fn may_drop_routine(
        &self,
        catalog: &Catalog,
        routine: &Routine,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        let schema = catalog.schema_by_oid(routine.schema);
        match schema.is_some_and(|schema| catalog.has_privileges_of(role, schema.owner)) {
            true => Ok(()),
            false => self.must_own_routine(catalog, routine, name),
        }
    }

    // ---- Arguments and results ----

    pub(super) fn routine_arguments(
        &mut self,
        catalog: &Arc<Catalog>,
        routine: &mut Routine,
        parameters: &[Node],
    ) -> Result<()> {
        let mut has_default = false;
        for node in parameters {
            let Some(NodeEnum::FunctionParameter(parameter)) = &node.node else {
                continue;
            };
            let (argument, uses) = self.routine_argument(catalog, parameter)?;
            // Types are those of arguments.
            let uses = uses.into_iter().filter(|oid| !TypeId(*oid).is_own());
            routine.uses.extend(uses.map(|relation| Uses {
                relation,
                columns: Vec::new(),
            }));
            if argument.mode.is_input() {
                if has_default && argument.default.is_none() {
                    return Err(invalid(
                        "input parameters after one with a default value must also have defaults",
                    ));
                }
                has_default |= argument.default.is_some();
            }
            let procedure = routine.kind == RoutineKind::Procedure;
            let mut known = routine.arguments.iter();
            let is_late = known.any(|known| known.mode == Mode::Variadic);
            if is_late && argument.mode.is_input() {
                return Err(invalid(
                    "VARIADIC parameter must be the last input parameter",
                ));
            }
            if is_late && procedure {
                return Err(invalid("VARIADIC parameter must be the last parameter"));
            }
            if argument.mode == Mode::Out && procedure && has_default {
                return Err(invalid(
                    "procedure OUT parameters cannot appear after one with a default value",
                ));
            }
            if argument.mode == Mode::Out && argument.default.is_some() {
                return Err(invalid("only input parameters can have default values"));
            }
            let is_taken = |known: &Argument| {
                let both_in = known.mode.is_input() && argument.mode.is_input();
                let both_out = known.mode.is_output() && argument.mode.is_output();
                known.name == argument.name && (both_in || both_out || names_once(routine))
            };
            if !argument.name.is_empty() && routine.arguments.iter().any(is_taken) {
                return Err(invalid(format!(
                    "parameter name \"{}\" used more than once",
                    argument.name
                )));
            }
            routine.arguments.push(argument);
        }
        routine.uses.sort_by_key(|uses| uses.relation);
        routine.uses.dedup_by_key(|uses| uses.relation);
        Ok(())
    }

    /// An argument, and what its default needs.
    fn routine_argument(
        &mut self,
        catalog: &Arc<Catalog>,
        parameter: &FunctionParameter,
    ) -> Result<(Argument, Vec<u32>)> {
        let mode = match FunctionParameterMode::try_from(parameter.mode) {
            Ok(FunctionParameterMode::FuncParamOut) => Mode::Out,
            Ok(FunctionParameterMode::FuncParamInout) => Mode::InOut,
            Ok(FunctionParameterMode::FuncParamVariadic) => Mode::Variadic,
            Ok(FunctionParameterMode::FuncParamTable) => Mode::Table,
            _ => Mode::In,
        };
        let name = parameter.arg_type.as_ref();
        let name = name.ok_or_else(|| Error::internal("an argument without a type"))?;
        if name.setof {
            return Err(invalid("functions cannot accept set arguments"));
        }
        let type_id = self.routine_type(catalog, name)?;
        if mode != Mode::In && type_id.is_of_domain() {
            return Err(Error::unsupported(
                "an output or VARIADIC argument of a domain",
            ));
        }
        if mode == Mode::Variadic
            && type_id.array_element().is_none()
            && !matches!(type_id, TypeId::ANYARRAY | TypeId::ANYCOMPATIBLEARRAY)
        {
            return Err(invalid("VARIADIC parameter must be an array"));
        }
        let mut uses = Vec::new();
        let default = match &parameter.defexpr {
            None => None,
            Some(node) => {
                let column = Column {
                    name: parameter.name.clone(),
                    type_id,
                    ..Column::default()
                };
                let fixed = self.try_binding("", catalog, |binder| {
                    let checked = binder.fixed(node, &column)?;
                    binder.check_argument_default(node, type_id)?;
                    Ok(checked)
                })?;
                self.may_use_types_of(catalog, fixed.1.iter().copied())?;
                uses = fixed.1;
                Some(fixed.0)
            }
        };
        let argument = Argument {
            name: parameter.name.clone(),
            type_id,
            mode,
            default,
        };
        Ok((argument, uses))
    }

    /// The type of an argument or a result, which the role must be allowed to use; also that of a column,
    /// `t.c%TYPE`.
    pub(super) fn routine_type(
        &mut self,
        catalog: &Arc<Catalog>,
        name: &TypeName,
    ) -> Result<TypeId> {
        if name.pct_type {
            let names = texts(&name.names);
            if let Some((column, of)) = names.split_last() {
                if let Some((_, catalog::RelationRef::Table(place))) = self.find_named(of)? {
                    let table = &catalog.tables[place];
                    if let Some(place) = table.column(column) {
                        let found = table.columns[place].type_id;
                        let message = format!(
                            "type reference {}%TYPE converted to {found}",
                            names.join(".")
                        );
                        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                        self.keep_notice(NoticeSeverity::Notice, body);
                        return Ok(found);
                    }
                }
            }
        }
        let (found, _) = self.type_of_name(catalog, name)?;
        self.may_use_type(catalog, found)?;
        Ok(found)
    }

    // ---- Bodies ----

    /// As [`Session::check_body`], with what the SET clauses give.
    fn check_body_with_settings(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        routine: &Routine,
        location: i32,
    ) -> Result<()> {
        if routine.settings.is_empty() {
            return self.check_body(text, catalog, routine, location);
        }
        let mark = self.shared.settings.mark();
        let mut outcome = Ok(());
        for (name, value) in &routine.settings {
            outcome = outcome.and_then(|()| self.apply_setting(name, Some(value), true));
        }
        let outcome = outcome.and_then(|()| self.check_body(text, catalog, routine, location));
        self.shared.settings.roll_back_to(mark);
        self.settings_changed();
        outcome
    }

    /// Refuses a body that could not run, unless `check_function_bodies` is off.
    fn check_body(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        routine: &Routine,
        location: i32,
    ) -> Result<()> {
        let checks = self.shared.settings.show("check_function_bodies");
        if checks.is_ok_and(|(_, value)| value == "off") {
            return Ok(());
        }
        let start = body_start(text, string_after(text, location));
        let placed = |error: Error| match error.fields().position {
            Some(position) => error.at(position + start),
            None => error,
        };
        let call = example_call(catalog, routine);
        let shown = format!("{}({})", routine.name, shown_types(&routine.input_types()));
        match routine.language {
            Language::PlPgSql => {
                let signature = Signature {
                    is_new: true,
                    ..signature_of(&call, shown)
                };
                let code = self.compile_plpgsql(&routine.body, &signature);
                for warning in code.map_err(placed)?.warnings {
                    self.keep_notice(NoticeSeverity::Warning, placed(warning));
                }
                Ok(())
            }
            Language::C | Language::Internal => Ok(()),
            Language::Sql => self.check_sql_body(&call).map_err(|mut error| {
                let fields = error.fields_mut();
                fields.internal_query = None;
                let position = fields.internal_position.take().or(fields.position.take());
                match position.filter(|_| routine.sql_body.is_none()) {
                    Some(position) => error.at(position + start),
                    None => {
                        let line = format!("SQL function \"{}\"", routine.name);
                        add_context(&mut error, &line);
                        error
                    }
                }
            }),
        }
    }

    // ---- Names ----

    /// The routine that a statement names; the inner error says that there is none.
    pub(super) fn named_routine(
        &mut self,
        object: ObjectType,
        named: &ObjectWithArgs,
    ) -> Result<std::result::Result<Arc<Routine>, Error>> {
        let noun = match object {
            ObjectType::ObjectProcedure => "procedure",
            ObjectType::ObjectRoutine => "routine",
            ObjectType::ObjectAggregate => "aggregate",
            _ => "function",
        };
        let catalog = self.current_catalog()?;
        let names = texts(&named.objname);
        let name = names.last().map_or("", String::as_str);
        let schemas: Vec<u32> = match names.as_slice() {
            [.., schema, _] => match catalog.schema(schema) {
                Some(schema) => vec![schema.oid],
                None => {
                    let message = format!("schema \"{schema}\" does not exist");
                    return Ok(Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message)));
                }
            },
            _ => routine_path(&self.search_path(&catalog)),
        };
        let is_kind = |routine: &Routine| match object {
            ObjectType::ObjectProcedure => routine.kind == RoutineKind::Procedure,
            ObjectType::ObjectAggregate => routine.kind == RoutineKind::Aggregate,
            ObjectType::ObjectRoutine => true,
            // An aggregate is a function too.
            _ => routine.kind != RoutineKind::Procedure,
        };
        let mut types = Vec::new();
        let (mut all, mut says_modes) = (Vec::new(), false);
        for node in &named.objargs {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                types.push(self.routine_type(&catalog, name)?);
            }
        }
        for node in &named.objfuncargs {
            if let Some(NodeEnum::FunctionParameter(parameter)) = &node.node {
                says_modes |= parameter.mode != FunctionParameterMode::FuncParamDefault as i32;
                if let Some(name) = &parameter.arg_type {
                    all.push(self.routine_type(&catalog, name)?);
                }
            }
        }
        let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
        let shown = shown.join(", ");
        let ambiguous = || {
            let message = format!("{noun} name \"{name}\" is not unique");
            Error::new(SqlState::AMBIGUOUS_FUNCTION, message)
        };
        // All arguments of a procedure may be said without their modes.
        let may_say_all = !says_modes
            && matches!(
                object,
                ObjectType::ObjectProcedure | ObjectType::ObjectRoutine
            );
        let mut wrong = None;
        for schema in schemas {
            let known: Vec<_> = catalog.routines_named(schema, name).cloned().collect();
            if named.args_unspecified {
                match known.as_slice() {
                    [] => continue,
                    [one] if is_kind(one) => return Ok(Ok(one.clone())),
                    [_] => {
                        wrong = Some(name.to_owned());
                        continue;
                    }
                    _ => {
                        return Err(ambiguous().with_hint(format!(
                            "Specify the argument list to select the {noun} unambiguously."
                        )));
                    }
                }
            }
            let by_input = known.iter().find(|known| known.input_types() == types);
            let by_all = known.iter().find(|known| {
                may_say_all && known.kind == RoutineKind::Procedure && known.identity() == all
            });
            match (by_input, by_all) {
                (Some(one), Some(other)) if one.oid != other.oid => return Err(ambiguous()),
                (Some(found), _) | (None, Some(found)) if is_kind(found) => {
                    return Ok(Ok(found.clone()));
                }
                (None, None) => {}
                _ => wrong = Some(format!("{name}({shown})")),
            }
        }
        if let Some(shown) = wrong {
            let article = if noun == "aggregate" { "an" } else { "a" };
            let shown = match noun {
                "aggregate" => format!("function {shown}"),
                _ => shown,
            };
            let message = format!("{shown} is not {article} {noun}");
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if object == ObjectType::ObjectAggregate {
            let mut built_in = functions::aggregates_named(name).iter();
            if let Some(found) = built_in.find(|known| known.arguments == types) {
                let signature = functions::signature_of(found.oid).unwrap_or_default();
                return Err(Error::new(
                    SqlState::of("2BP01"),
                    format!("cannot drop function {signature} because it is required by the database system"),
                ));
            }
        }
        let message = match named.args_unspecified {
            true => format!("could not find a {noun} named \"{}\"", names.join(".")),
            false => {
                let shown = match (object, shown.as_str()) {
                    (ObjectType::ObjectAggregate, "") => "*",
                    (_, shown) => shown,
                };
                format!("{noun} {}({shown}) does not exist", names.join("."))
            }
        };
        Ok(Err(Error::new(SqlState::UNDEFINED_FUNCTION, message)))
    }

    /// Whether a name is that of a routine rather than of a built-in function.
    pub(super) fn names_routine(&self, catalog: &Catalog, named: &ObjectWithArgs) -> bool {
        let names = texts(&named.objname);
        let name = names.last().map_or("", String::as_str);
        let built_in = names.len() == 1 && !functions::signatures(name).is_empty();
        catalog.knows_routine(name) || (!built_in && names[0] != "pg_catalog")
    }

    /// DROP FUNCTION, PROCEDURE and ROUTINE.
    pub(super) fn drop_routines(
        &mut self,
        object: ObjectType,
        objects: &[Node],
        (missing_ok, cascade): (bool, bool),
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut roots = Vec::new();
        for node in objects {
            let Some(NodeEnum::ObjectWithArgs(named)) = &node.node else {
                continue;
            };
            let found = match self.named_routine(object, named) {
                Err(missing) if missing_ok && is_missing(&missing) => Ok(Err(missing)),
                found => found,
            };
            match found? {
                Ok(routine) => {
                    let catalog = self.current_catalog()?;
                    let name = texts(&named.objname).join(".");
                    if object == ObjectType::ObjectFunction {
                        refuse_aggregate(&routine)?;
                    }
                    self.may_drop_routine(&catalog, &routine, &name)?;
                    let object = Object::Routine(routine.oid);
                    if !roots.contains(&object) {
                        roots.push(object);
                    }
                }
                Err(missing) if missing_ok => {
                    let message = match named.args_unspecified {
                        _ if is_missing(&missing) => format!("{}, skipping", missing.message()),
                        true => {
                            let names = texts(&named.objname);
                            let noun = missing.message().split(' ').nth(4).unwrap_or("function");
                            format!("{noun} {}() does not exist, skipping", names.join("."))
                        }
                        false => {
                            // With the types as they were written.
                            let types = written(&named.objargs);
                            let message = missing.message();
                            let stem = message.split('(').next().unwrap_or(message);
                            format!("{stem}({types}) does not exist, skipping")
                        }
                    };
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                }
                Err(missing) => return Err(missing),
            }
        }
        self.drop_objects(|_| Ok(roots.clone()), cascade, sink)
    }

    /// ALTER FUNCTION and its kin: the options.
    pub(in crate::session) fn alter_routine(
        &mut self,
        text: &str,
        alter: &AlterFunctionStmt,
    ) -> Result<CommandTag> {
        let object = ObjectType::try_from(alter.objtype).unwrap_or(ObjectType::ObjectFunction);
        let named = alter.func.as_ref();
        let named = named.ok_or_else(|| Error::internal("ALTER of nothing"))?;
        self.ensure_open()?;
        let old = self.named_routine(object, named)??;
        let catalog = self.current_catalog()?;
        self.must_own_routine(&catalog, &old, &texts(&named.objname).join("."))?;
        if let Err(mut error) = refuse_aggregate(&old) {
            error.fields_mut().hint = None;
            return Err(error);
        }
        let mut new = (*old).clone();
        let mut seen: Vec<&str> = Vec::new();
        for node in &alter.actions {
            if let Some(NodeEnum::DefElem(option)) = &node.node {
                if seen.contains(&option.defname.as_str()) && option.defname != "set" {
                    return Err(at_option(conflicting(), text, option));
                }
                seen.push(&option.defname);
                self.routine_option(text, &mut new, option)?;
            }
        }
        self.update_routine(&catalog, &old, &new)?;
        Ok(tag(altered(object)))
    }

    /// ALTER … RENAME TO.
    pub(super) fn rename_routine(
        &mut self,
        object: ObjectType,
        named: &ObjectWithArgs,
        to: &str,
    ) -> Result<CommandTag> {
        self.change_routine(object, named, |session, catalog, new| {
            session.may_create_in(catalog, new.schema)?;
            new.name = cut_name(to);
            Ok(())
        })
    }

    /// ALTER … SET SCHEMA.
    pub(super) fn move_routine(
        &mut self,
        object: ObjectType,
        named: &ObjectWithArgs,
        to: &str,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let schema = catalog.schema(to).ok_or_else(|| {
            let message = format!("schema \"{to}\" does not exist");
            Error::new(SqlState::INVALID_SCHEMA_NAME, message)
        })?;
        // PostgreSQL asks for the right to create there before it asks who owns what is moved.
        self.may_create_in(&catalog, schema.oid)?;
        self.change_routine(object, named, |_, _, new| {
            if is_local(new.schema) != is_local(schema.oid) {
                return Err(moved_temporary());
            }
            new.schema = schema.oid;
            Ok(())
        })
    }

    /// ALTER … OWNER TO.
    pub(super) fn give_routine(
        &mut self,
        object: ObjectType,
        named: &ObjectWithArgs,
        to: u32,
    ) -> Result<CommandTag> {
        self.change_routine(object, named, |session, catalog, new| {
            session.may_give_to(catalog, to, new.schema)?;
            session.give_lists(catalog, Address::PROC, new.oid, new.owner, to)?;
            new.owner = to;
            Ok(())
        })
    }

    fn change_routine(
        &mut self,
        object: ObjectType,
        named: &ObjectWithArgs,
        change: impl FnOnce(&mut Session, &Arc<Catalog>, &mut Routine) -> Result<()>,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let old = self.named_routine(object, named)??;
        let catalog = self.current_catalog()?;
        let owned = self.must_own_routine(&catalog, &old, &old.name);
        owned.map_err(|error| match old.kind {
            // A function, where it is not made or dropped.
            RoutineKind::Aggregate => must_own("function", &old.name),
            _ => error,
        })?;
        let mut new = (*old).clone();
        change(self, &catalog, &mut new)?;
        if new != *old {
            self.update_routine(&catalog, &old, &new)?;
        }
        Ok(tag(altered(object)))
    }
}

fn altered(object: ObjectType) -> &'static str {
    match object {
        ObjectType::ObjectProcedure => "ALTER PROCEDURE",
        ObjectType::ObjectRoutine => "ALTER ROUTINE",
        ObjectType::ObjectAggregate => "ALTER AGGREGATE",
        _ => "ALTER FUNCTION",
    }
}

/// Whether a node of the grammar names a routine.
pub(super) fn is_routine(object: ObjectType) -> bool {
    matches!(
        object,
        ObjectType::ObjectAggregate
            | ObjectType::ObjectFunction
            | ObjectType::ObjectProcedure
            | ObjectType::ObjectRoutine
    )
}

/// 42809 for an aggregate where only a plain function will do.
fn refuse_aggregate(routine: &Routine) -> Result<()> {
    match routine.kind {
        RoutineKind::Aggregate => Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is an aggregate function", routine.name),
        )
        .with_hint("Use DROP AGGREGATE to drop aggregate functions.")),
        _ => Ok(()),
    }
}

/// Without the detail.
fn plain(mut error: Error) -> Error {
    error.fields_mut().detail = None;
    error
}

/// Whether inputs and outputs may not share a name.
fn names_once(routine: &Routine) -> bool {
    routine.language == Language::PlPgSql
}

fn shown_types(types: &[TypeId]) -> String {
    let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
    shown.join(",")
}

/// Where the string begins that follows AS.
fn string_after(text: &str, location: i32) -> i32 {
    let start = usize::try_from(location).unwrap_or(0);
    let rest = text.get(start..).unwrap_or_default();
    let begins = |c: char| matches!(c, '$' | '\'' | 'e' | 'E');
    let after = rest.get(2..).unwrap_or_default();
    match after.find(begins) {
        Some(at) => i32::try_from(start + 2 + at).unwrap_or(location),
        None => location,
    }
}

fn routine_exists(routine: &Routine) -> Error {
    let types: Vec<_> = routine
        .input_types()
        .iter()
        .map(TypeId::to_string)
        .collect();
    let message = format!(
        "function \"{}\" already exists with same argument types",
        routine.name
    );
    Error::new(SqlState::of("42723"), message).with_detail(types.join(", "))
}

/// What a replaced routine must have kept.
fn check_replaces(old: &Routine, new: &Routine, what: &str) -> Result<()> {
    let hint = format!("Use DROP {} {what} first.", old.kind.noun().to_uppercase());
    if old.kind != new.kind {
        let error = Error::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind");
        let detail = match old.kind {
            RoutineKind::Aggregate => format!("\"{}\" is an aggregate function.", old.name),
            kind => format!("\"{}\" is a {}.", old.name, kind.noun()),
        };
        return Err(error.with_detail(detail));
    }
    let columns = |routine: &Routine| -> Vec<(String, TypeId)> {
        let outputs = routine.outputs();
        outputs
            .map(|output| (output.name.clone(), output.type_id))
            .collect()
    };
    let same_result =
        (old.result, old.set, old.result_relation) == (new.result, new.set, new.result_relation);
    if !same_result {
        let message = match old.kind {
            RoutineKind::Function | RoutineKind::Aggregate => {
                "cannot change return type of existing function"
            }
            RoutineKind::Procedure => "cannot change whether a procedure has output parameters",
        };
        return Err(invalid(message).with_hint(hint));
    }
    if old.result == TypeId::RECORD && columns(old) != columns(new) {
        return Err(invalid("cannot change return type of existing function")
            .with_detail("Row type defined by OUT parameters is different.")
            .with_hint(hint));
    }
    for (was, is) in old.inputs().zip(new.inputs()) {
        if !was.name.is_empty() && was.name != is.name {
            let message = format!("cannot change name of input parameter \"{}\"", was.name);
            return Err(invalid(message).with_hint(hint));
        }
        if was.default.is_some() && is.default.is_none() {
            let message = "cannot remove parameter defaults from existing function";
            return Err(invalid(message).with_hint(hint));
        }
    }
    Ok(())
}

/// A call by which a body can be checked: polymorphic types stand for integers.
pub(super) fn example_call(catalog: &Catalog, routine: &Routine) -> RoutineCall {
    let example = |ty: TypeId| match ty {
        TypeId::ANYARRAY | TypeId::ANYCOMPATIBLEARRAY => {
            TypeId::INT4.array_of().unwrap_or(TypeId::INT4)
        }
        TypeId::ANYRANGE | TypeId::ANYCOMPATIBLERANGE => TypeId::INT4RANGE,
        TypeId::ANYMULTIRANGE | TypeId::ANYCOMPATIBLEMULTIRANGE => TypeId::INT4MULTIRANGE,
        ty if ty.is_polymorphic() => TypeId::INT4,
        ty => ty,
    };
    let mut columns: Vec<_> = routine
        .outputs()
        .map(|output| (output.name.clone(), example(output.type_id)))
        .collect();
    if let Some(table) = catalog.table_by_oid(routine.result_relation) {
        let kept = table.columns.iter().filter(|column| !column.dropped);
        columns = kept
            .map(|column| (column.name.clone(), column.type_id))
            .collect();
    }
    let mut result = example(routine.result);
    if let (true, Some(fields)) = (result.is_composite(), catalog.fields(result)) {
        columns = fields
            .into_iter()
            .map(|field| (field.name, field.ty))
            .collect();
        result = TypeId::RECORD;
    }
    RoutineCall {
        types: routine.input_types().into_iter().map(example).collect(),
        result,
        columns,
        typmods: Vec::new(),
        shown: routine.name.clone(),
        written: Vec::new(),
        routine: Arc::new(routine.clone()),
        caller: None,
        collation: Collated::default(),
        cast: None,
        operator: None,
    }
}
