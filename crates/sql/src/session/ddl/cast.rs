//! CREATE CAST, and what a name of DROP CAST and COMMENT ON CAST means.
//!
//! ```text
//! create cast (varchar as mood) with inout as implicit
//! a row of CASTS ([`catalog::cast`]); binding asks for it (`planner::bind::own_cast`)
//! ```
//!
//! # What it leaves out
//! WITHOUT FUNCTION between types whose values are kept in different ways here, of which PostgreSQL
//! would take the bytes of one for the other (0A000); built-in functions with more than one argument.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{CoercionContext, CreateCastStmt, Node, ObjectType, ObjectWithArgs};

use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use super::texts;
use catalog::access::{denied, Guarded, Privileges};
use catalog::{cast_store, CastHow, Catalog, OwnCast, RoutineKind};
use functions::{cast_between, find_coercion, CastContext, Coercion};
use syntax::parser::NodeEnum;
use types::{Category, TypeId};

/// 42P17.
fn invalid(message: &str) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// 42710.
fn exists(source: TypeId, target: TypeId) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!("cast from type {source} to type {target} already exists"),
    )
}

/// 42704.
pub(super) fn no_cast(source: TypeId, target: TypeId) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("cast from type {source} to type {target} does not exist"),
    )
}

/// What a cast's function is like.
struct Shape {
    oid: u32,
    inputs: Vec<TypeId>,
    result: TypeId,
    set: bool,
    is_normal: bool,
}

/// Whether values of a type are values of the other as they are.
fn stands_for(catalog: &Catalog, source: TypeId, target: TypeId) -> bool {
    let (base, _) = catalog.base_type(source);
    let found = find_coercion(base, target, CastContext::Implicit);
    base == target || source == target || matches!(found, Some(Coercion::Binary))
}

/// # Errors
/// 42P17 for a function that cannot be what the cast does.
fn check_function(catalog: &Catalog, found: &Shape, source: TypeId, target: TypeId) -> Result<()> {
    let Some(first) = found.inputs.first().filter(|_| found.inputs.len() <= 3) else {
        return Err(invalid("cast function must take one to three arguments"));
    };
    if !stands_for(catalog, source, *first) {
        return Err(invalid(
            "argument of cast function must match or be binary-coercible from source data type",
        ));
    }
    if found.inputs.get(1).is_some_and(|ty| *ty != TypeId::INT4) {
        return Err(invalid(
            "second argument of cast function must be type integer",
        ));
    }
    if found.inputs.get(2).is_some_and(|ty| *ty != TypeId::BOOL) {
        return Err(invalid(
            "third argument of cast function must be type boolean",
        ));
    }
    if !stands_for(catalog, found.result, target) {
        return Err(invalid(
            "return data type of cast function must match or be binary-coercible to target data \
             type",
        ));
    }
    if !found.is_normal {
        return Err(invalid("cast function must be a normal function"));
    }
    match found.set {
        true => Err(invalid("cast function must not return a set")),
        false => Ok(()),
    }
}

/// # Errors
/// 42P17 for types whose values differ; 0A000 for those that only here do.
fn check_binary(source: TypeId, target: TypeId) -> Result<()> {
    let either = |is: fn(TypeId) -> bool| is(source) || is(target);
    let info = |ty: TypeId| ty.info().map(|info| (info.len, info.category));
    let lengths = (info(source), info(target));
    if lengths.0.map(|info| info.0) != lengths.1.map(|info| info.0) {
        return Err(invalid(
            "source and target data types are not physically compatible",
        ));
    }
    for (is, what) in [
        (
            TypeId::is_composite as fn(TypeId) -> bool,
            "composite data types are not binary-compatible",
        ),
        (TypeId::is_enum, "enum data types are not binary-compatible"),
        (
            |ty| ty.array_element().is_some(),
            "array data types are not binary-compatible",
        ),
        (
            TypeId::is_of_domain,
            "domain data types must not be marked binary-compatible",
        ),
    ] {
        if either(is) {
            return Err(invalid(what));
        }
    }
    let is_text = |ty: TypeId| ty.is_text_like() && ty != TypeId::BPCHAR;
    let alike = is_text(source) && is_text(target) || source.is_oid_like() && target.is_oid_like();
    match alike {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "a cast WITHOUT FUNCTION from type {source} to type {target}"
        ))),
    }
}

impl Session {
    /// CREATE CAST.
    pub(in crate::session) fn create_cast(
        &mut self,
        create: &CreateCastStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let (Some(source), Some(target)) = (&create.sourcetype, &create.targettype) else {
            return Err(Error::internal("a cast between nothing"));
        };
        let source = self.type_of_name(&catalog, source)?.0;
        let target = self.type_of_name(&catalog, target)?.0;
        self.check_cast_types(&catalog, source, target, sink)?;
        let (how, inputs) = match &create.func {
            Some(named) => {
                let found = self.cast_function(&catalog, named)?;
                check_function(&catalog, &found, source, target)?;
                (CastHow::Function(found.oid), found.inputs.len())
            }
            None if create.inout => (CastHow::InOut, 0),
            None => {
                if !self.current_role(&catalog)?.superuser {
                    let message = "must be superuser to create a cast WITHOUT FUNCTION";
                    return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
                }
                check_binary(source, target)?;
                (CastHow::Binary, 0)
            }
        };
        if source == target && inputs < 2 {
            let message = "source data type and target data type are the same";
            return Err(invalid(message));
        }
        let of_range = source.is_own() && source.range_multirange() == Some(target);
        if of_range || cast_between(source, target).is_some() {
            return Err(exists(source, target));
        }
        if source == target {
            return Err(Error::unsupported("a cast of a type to itself"));
        }
        for ty in [source, target] {
            self.lock_type(&catalog, ty, RowLock::KeyShare)?;
        }
        let cast = OwnCast {
            oid: self.new_oid()?,
            source,
            target,
            how,
            context: match CoercionContext::try_from(create.context) {
                Ok(CoercionContext::CoercionImplicit) => CastContext::Implicit,
                Ok(CoercionContext::CoercionAssignment) => CastContext::Assignment,
                _ => CastContext::Explicit,
            },
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        if !cast_store::insert(open.txn.as_mut(), catalog.database.oid, &cast)? {
            return Err(exists(source, target));
        }
        self.changed_catalog();
        Ok(tag("CREATE CAST"))
    }

    /// # Errors
    /// 42809 for pseudo-types, 42501 for types of others.
    fn check_cast_types(
        &mut self,
        catalog: &Catalog,
        source: TypeId,
        target: TypeId,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        for (ty, which) in [(source, "source"), (target, "target")] {
            if ty.category() == Category::Pseudo {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("{which} data type {ty} is a pseudo-type"),
                ));
            }
        }
        self.must_own_cast(catalog, source, target)?;
        let role = self.shared.settings.current_role();
        for ty in [source, target] {
            let of = ty.array_element().unwrap_or(ty);
            if !catalog.holds(role, Guarded::Type, of.0, Privileges::USAGE) {
                return Err(denied("type", &of.to_string()));
            }
        }
        let mut sides = [(source, "source"), (target, "target")].into_iter();
        let domain = sides.find(|(ty, _)| ty.is_of_domain() && ty.array_element().is_none());
        match domain {
            Some((_, which)) => {
                let message =
                    format!("cast will be ignored because the {which} data type is a domain");
                self.warn(SqlState::WRONG_OBJECT_TYPE, &message, sink)
            }
            None => Ok(()),
        }
    }

    /// 42501 for a cast between types of others.
    pub(super) fn must_own_cast(
        &mut self,
        catalog: &Catalog,
        source: TypeId,
        target: TypeId,
    ) -> Result<()> {
        let is_superuser = self.current_role(catalog)?.superuser;
        let owns = |ty: TypeId| {
            let of = ty.array_element().unwrap_or(ty);
            of.is_own() && self.must_own_type(catalog, of).is_ok()
        };
        if is_superuser || owns(source) || owns(target) {
            return Ok(());
        }
        Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("must be owner of type {source} or type {target}"),
        ))
    }

    fn cast_function(&mut self, catalog: &Arc<Catalog>, named: &ObjectWithArgs) -> Result<Shape> {
        let missing = match self.named_routine(ObjectType::ObjectFunction, named)? {
            Ok(routine) => {
                return Ok(Shape {
                    oid: routine.oid,
                    inputs: routine.input_types(),
                    result: routine.result,
                    set: routine.set,
                    is_normal: routine.kind == RoutineKind::Function,
                });
            }
            Err(missing) => missing,
        };
        let mut types = Vec::new();
        for node in &named.objargs {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                types.push(self.type_of_name(catalog, name)?.0);
            }
        }
        let names = texts(&named.objname);
        let (schema, name) = match names.as_slice() {
            [.., schema, name] => (schema.as_str(), name.as_str()),
            [name] => ("pg_catalog", name.as_str()),
            [] => ("", ""),
        };
        let mut known = functions::functions_named(name).iter();
        let known = known.find(|known| known.arguments == types);
        let known = known.filter(|_| schema == "pg_catalog").ok_or(missing)?;
        if known.arguments.len() > 1 || !known.is_of_values() {
            return Err(Error::unsupported(format!("a cast by function {name}")));
        }
        Ok(Shape {
            oid: known.oid,
            inputs: types,
            result: known.result,
            set: known.is_set_returning(),
            is_normal: true,
        })
    }

    /// The oid of the cast that a comment is on.
    pub(super) fn commented_cast(&mut self, catalog: &Arc<Catalog>, names: &[Node]) -> Result<u32> {
        let mut types = Vec::new();
        for node in names {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                types.push(self.type_of_name(catalog, name)?.0);
            }
        }
        let [source, target] = types[..] else {
            return Err(Error::internal("a cast between nothing"));
        };
        let cast = catalog.own_cast(source, target).map(|cast| cast.oid);
        let cast = cast.ok_or_else(|| match cast_between(source, target) {
            Some(_) => Error::unsupported("COMMENT ON this kind of object"),
            None => no_cast(source, target),
        })?;
        self.must_own_cast(catalog, source, target)?;
        Ok(cast)
    }
}
