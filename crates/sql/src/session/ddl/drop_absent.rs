//! DROP of kinds of objects that nobody can make here, and of casts, collations, operators, rules and
//! extended statistics: each name means what is built in, or nothing, or what a user has made.
//!
//! ```text
//! DROP OPERATOR @#@ (int, int)            operator does not exist: integer @#@ integer
//! DROP OPERATOR IF EXISTS @#@ (int, int)  NOTICE, and on it goes
//! DROP OPERATOR + (int, int)              2BP01: the database system requires it
//! ```
//! So scripts that clean up after themselves run, and their author is told the same as by PostgreSQL.
//!
//! # Invariant
//! Nothing but casts, collations, operators, rules and extended statistics is dropped here.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{DropBehavior, DropStmt, Node, ObjectType, ObjectWithArgs, TypeName};

use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::cast::no_cast;
use super::rule::no_rule;
use super::texts;
use crate::session::utility::tag;
use catalog::access::must_own;
use catalog::layout::FIRST_USER_OID;
use catalog::operator_class::{self, OperatorClass, METHODS};
use catalog::rule::RETURN;
use catalog::system;
use catalog::{Catalog, Object, RelationKind, RelationRef};
use functions::strings::quote_identifier;
use syntax::parser::NodeEnum;
use types::TypeId;

/// What a name of DROP means.
enum Named {
    /// Nothing, as the error says; where IF EXISTS says it in another way, that too.
    Nothing(Error, Option<String>),
    /// What is built in, described.
    BuiltIn(String),
    /// What a user has made.
    Made(Object),
}

/// Their nouns, and what DROP of them is called.
const KINDS: [(ObjectType, &str, &str); 16] = [
    (ObjectType::ObjectOperator, "operator", "DROP OPERATOR"),
    (ObjectType::ObjectCast, "cast", "DROP CAST"),
    (ObjectType::ObjectCollation, "collation", "DROP COLLATION"),
    (ObjectType::ObjectRule, "rule", "DROP RULE"),
    (
        ObjectType::ObjectStatisticExt,
        "statistics object",
        "DROP STATISTICS",
    ),
    (ObjectType::ObjectLanguage, "language", "DROP LANGUAGE"),
    (
        ObjectType::ObjectConversion,
        "conversion",
        "DROP CONVERSION",
    ),
    (
        ObjectType::ObjectTsparser,
        "text search parser",
        "DROP TEXT SEARCH PARSER",
    ),
    (
        ObjectType::ObjectTsdictionary,
        "text search dictionary",
        "DROP TEXT SEARCH DICTIONARY",
    ),
    (
        ObjectType::ObjectTstemplate,
        "text search template",
        "DROP TEXT SEARCH TEMPLATE",
    ),
    (
        ObjectType::ObjectTsconfiguration,
        "text search configuration",
        "DROP TEXT SEARCH CONFIGURATION",
    ),
    (
        ObjectType::ObjectFdw,
        "foreign-data wrapper",
        "DROP FOREIGN DATA WRAPPER",
    ),
    (ObjectType::ObjectForeignServer, "server", "DROP SERVER"),
    (
        ObjectType::ObjectOpclass,
        "operator class",
        "DROP OPERATOR CLASS",
    ),
    (
        ObjectType::ObjectOpfamily,
        "operator family",
        "DROP OPERATOR FAMILY",
    ),
    (
        ObjectType::ObjectAccessMethod,
        "access method",
        "DROP ACCESS METHOD",
    ),
];

/// Nothing of that name.
fn no(noun: &str, name: &str) -> Named {
    let message = format!("{noun} \"{name}\" does not exist");
    Named::Nothing(Error::new(SqlState::UNDEFINED_OBJECT, message), None)
}

/// What an error that says that there is no type, or schema, makes of the name it stood in.
pub(super) fn is_missing(error: &Error) -> bool {
    [SqlState::UNDEFINED_OBJECT, SqlState::INVALID_SCHEMA_NAME].contains(&error.state())
}

/// Types as they were written, as IF EXISTS shows them.
pub(super) fn written(types: &[Node]) -> String {
    let types = types.iter().filter_map(|node| match &node.node {
        Some(NodeEnum::TypeName(name)) => {
            let arrays = "[]".repeat(usize::from(!name.array_bounds.is_empty()));
            Some(texts(&name.names).join(".") + &arrays)
        }
        _ => None,
    });
    types.collect::<Vec<_>>().join(",")
}

impl Session {
    /// DROP of a kind of which there are only built-in ones; none for other kinds.
    pub(super) fn drop_absent(
        &mut self,
        drop: &DropStmt,
        sink: &mut dyn Sink,
    ) -> Result<Option<CommandTag>> {
        let wanted = ObjectType::try_from(drop.remove_type);
        let kind = KINDS.iter().find(|kind| Ok(kind.0) == wanted);
        let Some((object, noun, done)) = kind else {
            return Ok(None);
        };
        let of_methods = [ObjectType::ObjectOpclass, ObjectType::ObjectOpfamily];
        let is_of_method = of_methods.contains(object);
        let mut made = Vec::new();
        for node in &drop.objects {
            let Some(node) = &node.node else { continue };
            let named = self.named_absent(*object, noun, node).or_else(|error| {
                match is_missing(&error) {
                    // An access method must be there, whatever is said of what it is for.
                    true if !is_of_method => Ok(Named::Nothing(error, None)),
                    _ => Err(error),
                }
            })?;
            match named {
                Named::BuiltIn(what) => {
                    return Err(Error::new(
                        SqlState::of("2BP01"),
                        format!("cannot drop {what} because it is required by the database system"),
                    ))
                }
                Named::Made(object) => made.push(object),
                Named::Nothing(missing, _) if !drop.missing_ok => return Err(missing),
                Named::Nothing(missing, said) => {
                    let said = said.unwrap_or_else(|| missing.message().to_owned());
                    let message = format!("{said}, skipping");
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                }
            }
        }
        if !made.is_empty() {
            let cascade = drop.behavior == DropBehavior::DropCascade as i32;
            self.drop_objects(|_| Ok(made.clone()), cascade, sink)?;
        }
        Ok(Some(tag(done)))
    }

    fn named_absent(&mut self, object: ObjectType, noun: &str, node: &NodeEnum) -> Result<Named> {
        let catalog = self.current_catalog()?;
        match (object, node) {
            (ObjectType::ObjectOperator, NodeEnum::ObjectWithArgs(named)) => {
                self.named_operator(&catalog, named)
            }
            (ObjectType::ObjectCast, NodeEnum::List(list)) => {
                self.named_cast(&catalog, &list.items)
            }
            (ObjectType::ObjectCollation, NodeEnum::List(list)) => {
                self.named_collation(&catalog, &texts(&list.items))
            }
            (ObjectType::ObjectStatisticExt, NodeEnum::List(list)) => {
                let names = texts(&list.items);
                let known = self.statistics_of_names(&catalog, &names)?;
                self.may_drop_statistics(&catalog, &known, &names.join("."))?;
                Ok(Named::Made(Object::Statistics(known.oid)))
            }
            (ObjectType::ObjectRule, NodeEnum::List(list)) => {
                self.named_rule(&catalog, &texts(&list.items))
            }
            (ObjectType::ObjectOpclass | ObjectType::ObjectOpfamily, NodeEnum::List(list)) => {
                let names = texts(&list.items);
                let (method, name) = names.split_first().ok_or_else(nothing)?;
                named_class(&catalog, object, noun, method, name)
            }
            (_, NodeEnum::List(list)) => {
                let names = texts(&list.items);
                check_schema(&catalog, &names)?;
                Ok(named_search_object(object, noun, &names))
            }
            (ObjectType::ObjectLanguage, NodeEnum::String(name)) => {
                Ok(match system::language_named(&name.sval) {
                    Some(known) => Named::BuiltIn(format!("language {}", known.name)),
                    None => no(noun, &name.sval),
                })
            }
            (ObjectType::ObjectAccessMethod, NodeEnum::String(name)) => {
                let known = METHODS.iter().any(|method| method.1 == name.sval);
                Ok(match known {
                    true => Named::BuiltIn(format!("access method {}", name.sval)),
                    false => no(noun, &name.sval),
                })
            }
            (_, NodeEnum::String(name)) => Ok(no(noun, &name.sval)),
            _ => Err(nothing()),
        }
    }

    /// The types of a signature; NONE is unknown.
    fn types_named(
        &mut self,
        catalog: &Arc<Catalog>,
        arguments: &[Node],
    ) -> Result<Vec<Option<TypeId>>> {
        let mut types = Vec::with_capacity(arguments.len());
        for node in arguments {
            types.push(match &node.node {
                Some(NodeEnum::TypeName(name)) => Some(self.plain_type(catalog, name)?),
                _ => None,
            });
        }
        Ok(types)
    }

    fn plain_type(&mut self, catalog: &Arc<Catalog>, name: &TypeName) -> Result<TypeId> {
        Ok(self.type_of_name(catalog, name)?.0)
    }

    fn named_operator(&mut self, catalog: &Arc<Catalog>, named: &ObjectWithArgs) -> Result<Named> {
        let full = texts(&named.objname).join(".");
        match self.operator_of_name(catalog, named) {
            Ok((oid, _)) => match catalog.own_operator(oid) {
                Some(known) => {
                    self.may_drop_operator(catalog, known, &full)?;
                    Ok(Named::Made(Object::Operator(oid)))
                }
                None => built_in_operator(catalog, oid),
            },
            Err(missing) if missing.state() == SqlState::UNDEFINED_FUNCTION => {
                let said = match check_schema(catalog, &texts(&named.objname)) {
                    Err(no_schema) => no_schema.message().to_owned(),
                    Ok(()) => format!("operator {full} does not exist"),
                };
                Ok(Named::Nothing(missing, Some(said)))
            }
            Err(error) => Err(error),
        }
    }

    fn named_cast(&mut self, catalog: &Arc<Catalog>, names: &[Node]) -> Result<Named> {
        let types = self.types_named(catalog, names)?;
        let &[Some(from), Some(to)] = types.as_slice() else {
            return Err(nothing());
        };
        if let Some(cast) = catalog.own_cast(from, to) {
            return Ok(Named::Made(Object::Cast(cast.oid)));
        }
        if from.is_own() && from.range_multirange() == Some(to) {
            let function = catalog.cast_to_multirange(to).unwrap_or(0);
            let function = Object::Routine(function).describe(catalog, &self.search_path(catalog));
            let message =
                format!("cannot drop cast from {from} to {to} because {function} requires it");
            return Err(Error::new(SqlState::of("2BP01"), message)
                .with_hint(format!("You can drop {function} instead.")));
        }
        Ok(match functions::cast_between(from, to) {
            Some(_) => Named::BuiltIn(format!("cast from {from} to {to}")),
            None => Named::Nothing(no_cast(from, to), None),
        })
    }

    fn named_collation(&mut self, catalog: &Arc<Catalog>, names: &[String]) -> Result<Named> {
        check_schema(catalog, names)?;
        match self.collation_of_names(catalog, names) {
            Ok(known) if known.oid >= FIRST_USER_OID => {
                self.may_drop_collation(catalog, known, &names.join("."))?;
                Ok(Named::Made(Object::Collation(known.oid)))
            }
            Ok(known) => Ok(Named::BuiltIn(format!(
                "collation {}",
                quote_identifier(&known.name)
            ))),
            Err(missing) if is_missing(&missing) => {
                let said = format!("collation \"{}\" does not exist", names.join("."));
                Ok(Named::Nothing(missing, Some(said)))
            }
            Err(error) => Err(error),
        }
    }

    fn named_rule(&mut self, catalog: &Arc<Catalog>, names: &[String]) -> Result<Named> {
        let (rule, of) = names.split_last().ok_or_else(nothing)?;
        check_schema(catalog, of)?;
        let shown = of.join(".");
        let Some((catalog, RelationRef::Table(place))) = self.find_named(of)? else {
            let message = format!("relation \"{shown}\" does not exist");
            let missing = Error::new(SqlState::UNDEFINED_TABLE, message);
            return Ok(Named::Nothing(missing, None));
        };
        let table = &catalog.tables[place];
        let noun = match table.kind {
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            _ => "",
        };
        if let Some(known) = table.rule(rule) {
            let role = self.shared.settings.current_role();
            if !catalog.has_privileges_of(role, table.owner) {
                return Err(must_own("relation", &table.name));
            }
            return Ok(Named::Made(Object::Rule(known.oid)));
        }
        if noun.is_empty() || rule != RETURN {
            return Ok(Named::Nothing(no_rule(table, rule), None));
        }
        self.must_own_relation(table)?;
        let message = format!(
            "cannot drop rule _RETURN on {noun} {shown} because {noun} {shown} requires it"
        );
        let hint = format!("You can drop {noun} {shown} instead.");
        Err(Error::new(SqlState::of("2BP01"), message).with_hint(hint))
    }
}

fn nothing() -> Error {
    Error::internal("DROP of nothing")
}

/// # Errors
/// 3F000 for a name in a schema that is not there.
fn check_schema(catalog: &Catalog, names: &[String]) -> Result<()> {
    match names {
        [.., schema, _] if catalog.schema(schema).is_none() => Err(Error::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        )),
        _ => Ok(()),
    }
}

/// What DROP says of an operator that no user has made.
///
/// # Errors
/// 2BP01 for one of an extension.
fn built_in_operator(catalog: &Catalog, oid: u32) -> Result<Named> {
    let known = functions::any_operator_by_oid(oid).ok_or_else(nothing)?;
    let left = match known.left {
        TypeId::NONE => "NONE".to_owned(),
        left => left.to_string(),
    };
    let what = format!("operator {}({left},{})", known.name, known.right);
    if functions::operator_by_oid(oid).is_some() {
        return Ok(Named::BuiltIn(what));
    }
    let of = functions::extensions::of_function(known.function.oid);
    let of = of
        .and_then(|of| catalog.extension(of.name))
        .ok_or_else(nothing)?;
    let extension = Object::Extension(of.oid).describe(catalog, &[]);
    let message = format!("cannot drop {what} because {extension} requires it");
    Err(Error::new(SqlState::of("2BP01"), message)
        .with_hint(format!("You can drop {extension} instead.")))
}

/// An operator class, or family, of an access method.
fn named_class(
    catalog: &Catalog,
    object: ObjectType,
    noun: &str,
    method: &str,
    names: &[String],
) -> Result<Named> {
    let found = operator_class::method_named(method).ok_or_else(|| {
        let message = format!("access method \"{method}\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })?;
    if let Err(missing) = check_schema(catalog, names) {
        return Ok(Named::Nothing(missing, None));
    }
    let name = names.last().map_or("", String::as_str);
    let known = match object {
        ObjectType::ObjectOpclass => OperatorClass::named(found, name).next().is_some(),
        _ => operator_class::all().any(|class| class.method == found && class.family_name == name),
    };
    if known {
        let what = format!("{noun} {name} for access method {method}");
        return Ok(Named::BuiltIn(what));
    }
    let full = names.join(".");
    let message = format!("{noun} \"{full}\" does not exist for access method \"{method}\"");
    let missing = Error::new(SqlState::UNDEFINED_OBJECT, message);
    Ok(Named::Nothing(missing, None))
}

/// A text search object, or whatever else has names and is only looked up by the last.
fn named_search_object(object: ObjectType, noun: &str, names: &[String]) -> Named {
    let name = names.last().map_or("", String::as_str);
    let known = match object {
        ObjectType::ObjectTsconfiguration => {
            functions::search::dictionary::configs().any(|known| known.1 == name)
        }
        ObjectType::ObjectTsdictionary => {
            functions::search::dictionary::dictionaries().any(|known| known.1 == name)
        }
        ObjectType::ObjectTsparser => name == "default",
        ObjectType::ObjectTstemplate => ["simple", "snowball"].contains(&name),
        _ => false,
    };
    match known {
        true => Named::BuiltIn(format!("{noun} {name}")),
        false => no(noun, &names.join(".")),
    }
}
