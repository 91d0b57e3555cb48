//! CREATE and ALTER OPERATOR, and what a name of DROP OPERATOR and COMMENT ON OPERATOR means.
//!
//! ```text
//! create operator <-> (function = distance, leftarg = spot, rightarg = spot, negator = <!>)
//! a row of OPERATORS ([`catalog::operator`]), and a second one, a shell, for <!>, which is made later
//! ```
//! The function is found by exactly the types of the operands. Commutators and negators are linked to one another
//! as far as they have no other link.
//!
//! # What it leaves out
//! Operators over aggregates, which PostgreSQL makes and cannot compute (0A000); temporary functions behind
//! operators (0A000); other forms of built-in operators (0A000). Whether another session makes something of an
//! operator that is being dropped is not asked, as with functions.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterObjectSchemaStmt, AlterOperatorStmt, AlterOwnerStmt, DefElem, DefineStmt, Node,
    ObjectWithArgs,
};

use super::super::temporary::moved_temporary;
use super::super::utility::{option_text, tag};
use super::super::{CommandTag, Session, Sink};
use super::routine::invalid;
use super::texts;
use catalog::access::{denied, must_own, Guarded, Privileges};
use catalog::layout::FIRST_USER_OID;
use catalog::local::is_local;
use catalog::operator_store::{self, exists};
use catalog::routine::RoutineKind;
use catalog::{Catalog, OwnOperator, Routine, PG_CATALOG};
use functions::estimators;
use syntax::parser::NodeEnum;
use types::TypeId;

/// What CREATE OPERATOR says, before anything of it is looked up.
#[derive(Default)]
struct Said<'d> {
    left: Option<&'d DefElem>,
    right: Option<&'d DefElem>,
    function: Option<Vec<String>>,
    commutator: Option<Vec<String>>,
    negator: Option<Vec<String>>,
    restriction: Option<Vec<String>>,
    join: Option<Vec<String>>,
    hashes: bool,
    merges: bool,
}

/// What names an operator: the schema and the name, as they are written, and the types of its operands.
struct Named {
    names: Vec<String>,
    left: TypeId,
    right: TypeId,
}

impl Named {
    fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    fn schema(&self) -> Option<&str> {
        let place = self.names.len().checked_sub(2)?;
        self.names.get(place).map(String::as_str)
    }

    fn types(&self) -> (TypeId, TypeId) {
        (self.left, self.right)
    }

    /// 42883.
    fn missing(&self) -> Error {
        let before = match self.left {
            TypeId::NONE => String::new(),
            left => format!("{left} "),
        };
        let (names, right) = (self.names.join("."), self.right);
        let message = format!("operator does not exist: {before}{names} {right}");
        Error::new(SqlState::UNDEFINED_FUNCTION, message)
    }
}

fn syntax(message: String) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// A type that an option names.
fn type_option(option: &DefElem) -> Result<&DefElem> {
    match option.arg.as_ref().and_then(|node| node.node.as_ref()) {
        None => Err(syntax(format!("{} requires a parameter", option.defname))),
        Some(NodeEnum::TypeName(name)) if name.setof => {
            Err(invalid("SETOF type not allowed for operator argument"))
        }
        Some(_) => Ok(option),
    }
}

/// A name that an option is given, perhaps with a schema.
fn name_option(option: &DefElem) -> Result<Vec<String>> {
    match option.arg.as_ref().and_then(|node| node.node.as_ref()) {
        None => Err(syntax(format!("{} requires a parameter", option.defname))),
        Some(NodeEnum::TypeName(name)) => Ok(texts(&name.names)),
        Some(NodeEnum::List(list)) => Ok(texts(&list.items)),
        Some(NodeEnum::String(name)) => Ok(vec![name.sval.clone()]),
        Some(_) => Err(syntax(format!(
            "argument of {} must be a name",
            option.defname
        ))),
    }
}

/// A truth value that an option is given; nothing is true.
fn flag_option(option: &DefElem) -> Result<bool> {
    if option.arg.is_none() {
        return Ok(true);
    }
    match option_text(option).to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(syntax(format!(
            "{} requires a Boolean value",
            option.defname
        ))),
    }
}

/// # Errors
/// 42P13 for what only operators with two operands can have, or only those that say whether something holds.
fn check_shape(made: &OwnOperator, said: &Said<'_>) -> Result<()> {
    if made.left == TypeId::NONE {
        let unfit = [
            (said.commutator.is_some(), "have commutators"),
            (made.join != 0, "have join selectivity"),
            (made.merges, "merge join"),
            (made.hashes, "hash"),
        ];
        if let Some((_, what)) = unfit.into_iter().find(|known| known.0) {
            return Err(invalid(format!("only binary operators can {what}")));
        }
    }
    if made.result != TypeId::BOOL {
        let unfit = [
            (said.negator.is_some(), "have negators"),
            (made.restriction != 0, "have restriction selectivity"),
            (made.join != 0, "have join selectivity"),
            (made.merges, "merge join"),
            (made.hashes, "hash"),
        ];
        if let Some((_, what)) = unfit.into_iter().find(|known| known.0) {
            return Err(invalid(format!("only boolean operators can {what}")));
        }
    }
    Ok(())
}

/// 42883, as it is said of a function that is looked for by its types.
fn no_function(names: &[String], types: &[TypeId]) -> Error {
    let types: Vec<_> = types.iter().map(TypeId::to_string).collect();
    let message = format!(
        "function {}({}) does not exist",
        names.join("."),
        types.join(", ")
    );
    Error::new(SqlState::UNDEFINED_FUNCTION, message)
}

impl Session {
    /// CREATE OPERATOR.
    pub(in crate::session) fn create_operator(
        &mut self,
        define: &DefineStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let names = texts(&define.defnames);
        let schema = self.operator_schema(&catalog, &names)?;
        let said = self.operator_options(define, sink)?;
        let Some(function) = &said.function else {
            return Err(invalid("operator function must be specified"));
        };
        let mut types = [TypeId::NONE; 2];
        for (ty, option) in types.iter_mut().zip([said.left, said.right]) {
            if let Some(option) = option {
                *ty = self.option_type(&catalog, option)?;
            }
        }
        let [left, right] = types;
        if (left, right) == (TypeId::NONE, TypeId::NONE) {
            return Err(invalid("operator argument types must be specified"));
        }
        if right == TypeId::NONE {
            let error = invalid("operator right argument type must be specified");
            return Err(error.with_detail("Postfix operators are not supported."));
        }
        let given: Vec<TypeId> = types.into_iter().filter(|ty| *ty != TypeId::NONE).collect();
        for ty in &given {
            self.may_use_type(&catalog, *ty)?;
        }
        let routine = self.operator_function(&catalog, function, &given)?;
        self.may_use_type(&catalog, routine.result)?;
        let mut made = OwnOperator {
            schema,
            name: names.last().cloned().unwrap_or_default(),
            owner: self.owner_of_new(&catalog)?,
            left,
            right,
            result: routine.result,
            function: routine.oid,
            restriction: self.estimator(&catalog, said.restriction.as_deref(), false)?,
            join: self.estimator(&catalog, said.join.as_deref(), true)?,
            hashes: said.hashes,
            merges: said.merges,
            ..OwnOperator::default()
        };
        check_shape(&made, &said)?;
        let known = catalog.own_operator_in(schema, &made.name, (left, right));
        if let Some(known) = known {
            if !known.is_shell() {
                return Err(exists(&made.name));
            }
            self.must_own_operator(&catalog, known.oid, &made.name)?;
        }
        let known = known.cloned();
        match &known {
            // Who has named it before stays linked to it.
            Some(shell) => {
                made.oid = shell.oid;
                (made.commutator, made.negator) = (shell.commutator, shell.negator);
            }
            None => made.oid = self.new_oid()?,
        }
        if let Some(names) = &said.commutator {
            made.commutator = self.other_operator(&catalog, names, (right, left), &made, true)?;
        }
        if let Some(names) = &said.negator {
            made.negator = self.other_operator(&catalog, names, (left, right), &made, false)?;
        }
        self.put_new_operator(&catalog, known.as_deref(), &made)?;
        self.changed_catalog();
        Ok(tag("CREATE OPERATOR"))
    }

    /// The schema in which an operator of that name is made.
    fn operator_schema(&self, catalog: &Catalog, names: &[String]) -> Result<u32> {
        let schema = match names {
            [.., schema, _] => schema.as_str(),
            _ => "",
        };
        let named = catalog.schema(schema).map_or(0, |known| known.oid);
        match schema == "pg_temp" || is_local(named) {
            true => Err(Error::unsupported("a temporary operator")),
            false => self.creation_schema(catalog, schema),
        }
    }

    fn operator_options<'d>(
        &mut self,
        define: &'d DefineStmt,
        sink: &mut dyn Sink,
    ) -> Result<Said<'d>> {
        let mut said = Said::default();
        for node in &define.definition {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            match option.defname.as_str() {
                "leftarg" => said.left = Some(type_option(option)?),
                "rightarg" => said.right = Some(type_option(option)?),
                "function" | "procedure" => said.function = Some(name_option(option)?),
                "commutator" => said.commutator = Some(name_option(option)?),
                "negator" => said.negator = Some(name_option(option)?),
                "restrict" => said.restriction = Some(name_option(option)?),
                "join" => said.join = Some(name_option(option)?),
                "hashes" => said.hashes = flag_option(option)?,
                "merges" => said.merges = flag_option(option)?,
                // As older versions said that it merges.
                "sort1" | "sort2" | "ltcmp" | "gtcmp" => said.merges = true,
                name => {
                    let message = format!("operator attribute \"{name}\" not recognized");
                    self.warn(SqlState::SYNTAX_ERROR, &message, sink)?;
                }
            }
        }
        Ok(said)
    }

    /// The function of these types that a name means, which the role may call.
    fn operator_function(
        &mut self,
        catalog: &Catalog,
        names: &[String],
        types: &[TypeId],
    ) -> Result<Arc<Routine>> {
        let name = names.last().map_or("", String::as_str);
        let schemas = self.schemas_searched(catalog, names)?;
        let found = schemas.into_iter().find_map(|schema| {
            let mut own = catalog.routines_named(schema, name);
            let own = own
                .find(|known| known.kind != RoutineKind::Procedure && known.input_types() == types);
            match schema {
                PG_CATALOG => self.built_in_behind(catalog, name, types),
                _ => own.map(|own| Ok(own.clone())),
            }
        });
        let routine = found.unwrap_or_else(|| Err(no_function(names, types)))?;
        let role = self.shared.settings.current_role();
        if !catalog.holds(role, Guarded::Function, routine.oid, Privileges::EXECUTE) {
            return Err(denied("function", &names.join(".")));
        }
        if routine.kind == RoutineKind::Aggregate {
            return Err(Error::unsupported("an operator over an aggregate"));
        }
        match is_local(routine.oid) {
            true => Err(Error::unsupported("an operator over a temporary function")),
            false => Ok(routine),
        }
    }

    /// The built-in function of these types.
    fn built_in_behind(
        &self,
        catalog: &Catalog,
        name: &str,
        types: &[TypeId],
    ) -> Option<Result<Arc<Routine>>> {
        let mut known = functions::functions_named(name).iter();
        let known = known.find(|known| known.arguments == types);
        let behind = known.and_then(|known| {
            catalog.routine_behind(&OwnOperator {
                function: known.oid,
                ..OwnOperator::default()
            })
        });
        if let Some(routine) = behind {
            return Some(Ok(routine));
        }
        let mut aggregates = functions::aggregates_named(name).iter();
        let aggregate = aggregates.find(|known| known.arguments == types);
        aggregate.map(|_| Err(Error::unsupported("an operator over an aggregate")))
    }

    /// The schemas in which a name is looked for.
    fn schemas_searched(&self, catalog: &Catalog, names: &[String]) -> Result<Vec<u32>> {
        if let [.., schema, _] = names {
            let known = catalog.schema(schema).ok_or_else(|| {
                let message = format!("schema \"{schema}\" does not exist");
                Error::new(SqlState::INVALID_SCHEMA_NAME, message)
            })?;
            catalog.check_look_into(self.shared.settings.current_role(), known)?;
            return Ok(vec![known.oid]);
        }
        let path = self.search_path(catalog);
        let first = (!path.contains(&PG_CATALOG)).then_some(PG_CATALOG);
        let path = path.into_iter().filter(|schema| !is_local(*schema));
        Ok(first.into_iter().chain(path).collect())
    }

    /// The function that estimates what an operator selects; 0 where none is named.
    ///
    /// # Errors
    /// 42883 for one that there is not, or that is for something else.
    fn estimator(
        &mut self,
        catalog: &Catalog,
        names: Option<&[String]>,
        of_joins: bool,
    ) -> Result<u32> {
        let Some(names) = names else { return Ok(0) };
        let name = names.last().map_or("", String::as_str);
        let schemas = self.schemas_searched(catalog, names)?;
        let found = estimators::named(name, of_joins);
        let found = found.filter(|_| schemas.contains(&PG_CATALOG));
        let found = found.ok_or_else(|| {
            let types: &[TypeId] = match of_joins {
                true => &estimators::OF_JOINS,
                false => &estimators::OF_ROWS,
            };
            no_function(names, types)
        })?;
        let role = self.shared.settings.current_role();
        match catalog.holds(role, Guarded::Function, found.oid, Privileges::EXECUTE) {
            true => Ok(found.oid),
            false => Err(denied("function", &names.join("."))),
        }
    }

    /// The commutator, or the negator, of an operator that is being made: itself, one that is there, or a shell.
    ///
    /// # Errors
    /// 42P13 for its own negator, 42501 for one of another role.
    fn other_operator(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[String],
        types: (TypeId, TypeId),
        made: &OwnOperator,
        commutes: bool,
    ) -> Result<u32> {
        let name = names.last().cloned().unwrap_or_default();
        let mut schemas = self.schemas_searched(catalog, names)?.into_iter();
        let found = schemas.find_map(|schema| catalog.operator_in(schema, &name, types));
        // A shell that is filled now is what it was.
        if let Some(oid) = found.filter(|oid| *oid != made.oid) {
            self.must_own_operator(catalog, oid, &names.join("."))?;
            return Ok(oid);
        }
        let schema = self.operator_schema(catalog, names)?;
        let own = (made.schema, &made.name, (made.left, made.right));
        if (schema, &name, types) == own {
            return match commutes {
                true => Ok(made.oid),
                false => Err(invalid("operator cannot be its own negator")),
            };
        }
        let shell = OwnOperator {
            oid: self.new_oid()?,
            schema,
            name,
            owner: made.owner,
            left: types.0,
            right: types.1,
            commutator: if commutes { made.oid } else { 0 },
            negator: if commutes { 0 } else { made.oid },
            ..OwnOperator::default()
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        operator_store::insert(open.txn.as_mut(), catalog.database.oid, &shell)?;
        Ok(shell.oid)
    }

    /// Writes an operator, in the place of its shell if there is one, and has others linked to it.
    fn put_new_operator(
        &mut self,
        catalog: &Catalog,
        shell: Option<&OwnOperator>,
        made: &OwnOperator,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let (txn, database) = (open.txn.as_mut(), catalog.database.oid);
        match shell {
            Some(shell) => {
                operator_store::hold(txn, database, shell.oid, RowLock::Update)?;
                operator_store::update(txn, database, shell, made)?;
            }
            None => operator_store::insert(txn, database, made)?,
        }
        operator_store::link(txn, database, made)
    }

    /// ALTER OPERATOR … SET (…).
    pub(in crate::session) fn alter_operator(
        &mut self,
        alter: &AlterOperatorStmt,
    ) -> Result<CommandTag> {
        let named = alter.opername.as_ref();
        let named = named.ok_or_else(|| Error::internal("ALTER OPERATOR of nothing"))?;
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let meant = self.named_types(&catalog, named)?;
        self.operator_named(&catalog, &meant)?;
        let (mut restriction, mut join) = (None, None);
        for node in &alter.options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            let name = || match option.arg {
                None => Ok(None),
                Some(_) => name_option(option).map(Some),
            };
            match option.defname.as_str() {
                "restrict" => restriction = Some(name()?),
                "join" => join = Some(name()?),
                fixed @ ("leftarg" | "rightarg" | "function" | "procedure" | "commutator"
                | "negator" | "hashes" | "merges") => {
                    return Err(syntax(format!(
                        "operator attribute \"{fixed}\" cannot be changed"
                    )))
                }
                other => {
                    return Err(syntax(format!(
                        "operator attribute \"{other}\" not recognized"
                    )))
                }
            }
        }
        self.change_operator(&meant, |session, catalog, old| {
            let mut new = old.clone();
            if let Some(names) = &restriction {
                new.restriction = session.estimator(catalog, names.as_deref(), false)?;
            }
            if let Some(names) = &join {
                new.join = session.estimator(catalog, names.as_deref(), true)?;
            }
            let is_given = |given: &Option<Option<Vec<String>>>| matches!(given, Some(Some(_)));
            let unfit = match (old.left, old.result) {
                (TypeId::NONE, _) if is_given(&join) => Some("binary operators can have join"),
                (_, TypeId::BOOL) => None,
                _ if is_given(&restriction) => Some("boolean operators can have restriction"),
                _ if is_given(&join) => Some("boolean operators can have join"),
                _ => None,
            };
            match unfit {
                Some(what) => Err(invalid(format!("only {what} selectivity"))),
                None => Ok(new),
            }
        })
    }

    /// ALTER OPERATOR … SET SCHEMA.
    pub(super) fn move_operator(&mut self, alter: &AlterObjectSchemaStmt) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let named = named_in(alter.object.as_deref())?;
        let meant = self.named_types(&catalog, named)?;
        self.operator_named(&catalog, &meant)?;
        let schema = match alter.newschema.as_str() {
            "pg_temp" => return Err(moved_temporary()),
            name => self.creation_schema(&catalog, name)?,
        };
        if is_local(schema) {
            return Err(moved_temporary());
        }
        self.change_operator(&meant, |_, catalog, old| {
            let known = catalog.own_operator_in(schema, &old.name, (old.left, old.right));
            if known.is_some_and(|known| known.oid != old.oid) {
                let constraint = "pg_operator_oprname_l_r_n_index";
                return Err(Error::new(
                    SqlState::UNIQUE_VIOLATION,
                    format!("duplicate key value violates unique constraint \"{constraint}\""),
                )
                .with_detail(format!(
                    "Key (oprname, oprleft, oprright, oprnamespace)=({}, {}, {}, {schema}) already exists.",
                    old.name, old.left.0, old.right.0
                )));
            }
            Ok(OwnOperator {
                schema,
                ..old.clone()
            })
        })
    }

    /// ALTER OPERATOR … OWNER TO.
    pub(super) fn give_operator(
        &mut self,
        alter: &AlterOwnerStmt,
        owner: u32,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let named = named_in(alter.object.as_deref())?;
        let meant = self.named_types(&catalog, named)?;
        self.change_operator(&meant, |session, catalog, old| {
            if old.owner != owner {
                session.may_give_to(catalog, owner, old.schema)?;
            }
            Ok(OwnOperator {
                owner,
                ..old.clone()
            })
        })
    }

    /// Makes another of an operator of a user's, which belongs to this role.
    fn change_operator(
        &mut self,
        meant: &Named,
        change: impl FnOnce(&mut Session, &Arc<Catalog>, &OwnOperator) -> Result<OwnOperator>,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let oid = self.operator_named(&catalog, meant)?;
        self.must_own_operator(&catalog, oid, meant.name())?;
        if oid < FIRST_USER_OID {
            return Err(Error::unsupported("another form of a built-in operator"));
        }
        self.lock_operator(&catalog, oid)?;
        self.forget_own_catalog();
        let catalog = self.current_catalog()?;
        let old = catalog.own_operator(oid).cloned();
        let old = old.ok_or_else(|| Error::internal("tuple concurrently deleted"))?;
        self.must_own_operator(&catalog, oid, meant.name())?;
        let new = change(self, &catalog, &old)?;
        if new != *old {
            self.put_operator(&catalog, &old, &new)?;
        }
        Ok(tag("ALTER OPERATOR"))
    }

    /// Puts an operator in the place of what it was.
    pub(super) fn put_operator(
        &mut self,
        catalog: &Catalog,
        old: &OwnOperator,
        new: &OwnOperator,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        operator_store::update(open.txn.as_mut(), catalog.database.oid, old, new)?;
        self.changed_catalog();
        Ok(())
    }

    /// Locks an operator of a user's until the end of the transaction.
    pub(super) fn lock_operator(&mut self, catalog: &Catalog, oid: u32) -> Result<()> {
        match &mut self.open {
            Some(open) => {
                let database = catalog.database.oid;
                operator_store::hold(open.txn.as_mut(), database, oid, RowLock::Update)
            }
            None => Ok(()),
        }
    }

    /// 42501 for an operator of another role, by the name that is given.
    pub(super) fn must_own_operator(
        &mut self,
        catalog: &Catalog,
        oid: u32,
        name: &str,
    ) -> Result<()> {
        let Some(known) = catalog.own_operator(oid) else {
            return self.must_be_superuser(catalog, "operator", name);
        };
        let role = self.shared.settings.current_role();
        match catalog.has_privileges_of(role, known.owner) {
            true => Ok(()),
            false => Err(must_own("operator", name)),
        }
    }

    /// 42501 for an operator of another role, unless its schema is this role's.
    pub(super) fn may_drop_operator(
        &mut self,
        catalog: &Catalog,
        known: &OwnOperator,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        match catalog.schema_by_oid(known.schema) {
            Some(schema) if catalog.has_privileges_of(role, schema.owner) => Ok(()),
            _ => self.must_own_operator(catalog, known.oid, name),
        }
    }

    /// What an operator is named by.
    ///
    /// # Errors
    /// 42601 for one that would stand behind its operand, 42704 for a type that is not there.
    fn named_types(&mut self, catalog: &Arc<Catalog>, named: &ObjectWithArgs) -> Result<Named> {
        let mut types = [TypeId::NONE; 2];
        for (ty, node) in types.iter_mut().zip(&named.objargs) {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                *ty = self.type_of_name(catalog, name)?.0;
            }
        }
        let [left, right] = types;
        if right == TypeId::NONE {
            return Err(syntax("postfix operators are not supported".to_owned()));
        }
        Ok(Named {
            names: texts(&named.objname),
            left,
            right,
        })
    }

    fn operator_named(&self, catalog: &Catalog, meant: &Named) -> Result<u32> {
        let mut schemas = match meant.schema() {
            Some(schema) if catalog.schema(schema).is_none() => return Err(meant.missing()),
            _ => self.schemas_searched(catalog, &meant.names)?.into_iter(),
        };
        let found =
            schemas.find_map(|schema| catalog.operator_in(schema, meant.name(), meant.types()));
        found.ok_or_else(|| meant.missing())
    }

    /// The oid of the operator that DROP or COMMENT names, and what it is called there.
    ///
    /// # Errors
    /// 42883 if there is none; 3F000, 42704 and 42601 for what is wrong with its name.
    pub(super) fn operator_of_name(
        &mut self,
        catalog: &Arc<Catalog>,
        named: &ObjectWithArgs,
    ) -> Result<(u32, String)> {
        let meant = self.named_types(catalog, named)?;
        let oid = self.operator_named(catalog, &meant)?;
        Ok((oid, meant.names.join(".")))
    }
}

/// What a statement about an operator names.
fn named_in(object: Option<&Node>) -> Result<&ObjectWithArgs> {
    match object.and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::ObjectWithArgs(named)) => Ok(named),
        _ => Err(Error::internal("an operator without a name")),
    }
}
