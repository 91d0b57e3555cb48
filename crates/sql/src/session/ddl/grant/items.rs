//! The objects that GRANT and REVOKE name.
//!
//! What there is none of, as foreign servers, is looked for all the same, and is not there.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{GrantStmt, GrantTargetType, Node, ObjectType, ObjectWithArgs, RangeVar};

use crate::session::ddl::{database, texts};
use crate::session::Session;
use catalog::access::Guarded;
use catalog::cluster::Address;
use catalog::system::{language_named, tablespace_named, Language};
use catalog::{Catalog, RelationKind, Routine, RoutineKind, Table, PG_CATALOG, SUPERUSER};
use execution::settings::check_parameter_name;
use syntax::parser::NodeEnum;
use types::TypeId;

/// Something that privileges are given on.
pub(super) struct Item {
    pub kind: Guarded,
    pub address: Address,
    pub owner: u32,
    pub noun: &'static str,
    pub name: String,
    /// The relation of a column.
    pub relation: Option<String>,
}

impl Item {
    /// Something that is built in, or that belongs to everybody.
    fn built_in(kind: Guarded, object: u32, noun: &'static str, name: impl Into<String>) -> Item {
        Item {
            kind,
            address: Address::of(kind.class(), object),
            owner: SUPERUSER,
            noun,
            name: name.into(),
            relation: None,
        }
    }

    fn of_routine(routine: &Routine) -> Item {
        let noun = routine.kind.noun();
        Item {
            owner: routine.owner,
            ..Item::built_in(Guarded::Function, routine.oid, noun, routine.name.as_str())
        }
    }

    fn of_relation(table: &Table) -> Item {
        Item {
            kind: match table.kind {
                RelationKind::Sequence => Guarded::Sequence,
                _ => Guarded::Table,
            },
            address: Address::of(Address::CLASS, table.oid),
            owner: table.owner,
            noun: table.kind.noun(),
            name: table.name.clone(),
            relation: None,
        }
    }

    /// A column of this relation, by its number.
    pub fn column(&self, number: u32, name: &str) -> Item {
        Item {
            kind: Guarded::Column,
            address: Address {
                column: number,
                ..self.address
            },
            owner: self.owner,
            noun: "column",
            name: name.to_owned(),
            relation: Some(self.name.clone()),
        }
    }
}

fn missing(message: String) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

fn no_schema(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_SCHEMA_NAME,
        format!("schema \"{name}\" does not exist"),
    )
}

impl Session {
    /// What a statement names, each once.
    pub(super) fn granted_items(
        &mut self,
        catalog: &Arc<Catalog>,
        grant: &GrantStmt,
    ) -> Result<Vec<Item>> {
        let object = ObjectType::try_from(grant.objtype)
            .map_err(|_| Error::unsupported("GRANT on this kind of object"))?;
        if GrantTargetType::try_from(grant.targtype) == Ok(GrantTargetType::AclTargetAllInSchema) {
            return self.granted_in_schemas(catalog, grant, object);
        }
        let mut items: Vec<Item> = Vec::new();
        for node in &grant.objects {
            let item = match (&node.node, object) {
                (
                    Some(NodeEnum::RangeVar(range)),
                    ObjectType::ObjectTable | ObjectType::ObjectSequence,
                ) => Some(self.granted_relation(range, object == ObjectType::ObjectSequence)?),
                (Some(NodeEnum::ObjectWithArgs(named)), _) => {
                    Some(self.granted_function(catalog, named, object)?)
                }
                (Some(NodeEnum::List(list)), ObjectType::ObjectType | ObjectType::ObjectDomain) => {
                    Some(self.granted_type(catalog, &list.items, object)?)
                }
                (Some(NodeEnum::String(name)), ObjectType::ObjectParameterAcl) => {
                    self.granted_parameter(catalog, &name.sval, grant.is_grant)?
                }
                (Some(NodeEnum::String(name)), _) => Some(named_item(catalog, object, &name.sval)?),
                (_, ObjectType::ObjectLargeobject) => {
                    Some(self.granted_large_object(catalog, node)?)
                }
                _ => return Err(Error::unsupported("GRANT on this kind of object")),
            };
            let is_new = |item: &Item| items.iter().all(|known| known.address != item.address);
            if let Some(item) = item.filter(|item| is_new(item)) {
                items.push(item);
            }
        }
        Ok(items)
    }

    fn granted_relation(&mut self, range: &RangeVar, sequence: bool) -> Result<Item> {
        let table = self.find_table_in("", range)?;
        let is_sequence = table.kind == RelationKind::Sequence;
        if sequence && !is_sequence {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", table.name),
            ));
        }
        Ok(Item::of_relation(&table))
    }

    fn granted_large_object(&mut self, catalog: &Catalog, node: &Node) -> Result<Item> {
        let object = self.named_large_object(catalog, Some(node))?;
        let noun = "large object";
        let name = format!("{noun} {}", object.oid);
        Ok(Item {
            owner: object.owner,
            ..Item::built_in(Guarded::LargeObject, object.oid, noun, name)
        })
    }

    fn granted_type(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[Node],
        object: ObjectType,
    ) -> Result<Item> {
        let name = pg_query::protobuf::TypeName {
            names: names.to_vec(),
            typemod: -1,
            location: -1,
            ..Default::default()
        };
        let (ty, _) = self.type_of_name(catalog, &name)?;
        let shown = texts(names).pop().unwrap_or_default();
        if object == ObjectType::ObjectDomain && ty.own_kind() != Some(types::OwnKind::Domain) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{shown}\" is not a domain"),
            ));
        }
        if ty.array_element().is_some() {
            return Err(super::invalid("cannot set privileges of array types")
                .with_hint("Set the privileges of the element type instead."));
        }
        Ok(Item {
            owner: catalog.owner_of(Guarded::Type, ty.0),
            ..Item::built_in(Guarded::Type, ty.0, "type", shown)
        })
    }

    fn granted_function(
        &mut self,
        catalog: &Arc<Catalog>,
        named: &ObjectWithArgs,
        object: ObjectType,
    ) -> Result<Item> {
        if self.names_routine(catalog, named) {
            let routine = self.named_routine(object, named)??;
            return Ok(Item::of_routine(&routine));
        }
        let mut types = Vec::new();
        for node in &named.objargs {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                types.push(self.type_of_name(catalog, name)?.0);
            }
        }
        let name = texts(&named.objname).join(".");
        let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
        let noun = match object {
            ObjectType::ObjectProcedure => "procedure",
            ObjectType::ObjectRoutine => "routine",
            _ => "function",
        };
        let mut known = functions::signatures(name);
        if !named.args_unspecified {
            known.retain(|known| known.1 == types);
        }
        let state = SqlState::UNDEFINED_FUNCTION;
        let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
        let shown = format!("{name}({})", shown.join(", "));
        match known[..] {
            [] if named.args_unspecified => Err(Error::new(
                state,
                format!("could not find a {noun} named \"{name}\""),
            )),
            [] => Err(Error::new(state, format!("{noun} {shown} does not exist"))),
            _ if object == ObjectType::ObjectProcedure => Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{shown} is not a procedure"),
            )),
            [(oid, _)] => Ok(Item::built_in(Guarded::Function, oid, "function", name)),
            _ => Err(Error::new(
                SqlState::of("42725"),
                format!("{noun} name \"{name}\" is not unique"),
            )
            .with_hint(format!(
                "Specify the argument list to select the {noun} unambiguously."
            ))),
        }
    }

    /// A parameter, with a new oid if nothing was said of it before; none where there is nothing to
    /// take.
    fn granted_parameter(
        &mut self,
        catalog: &Catalog,
        name: &str,
        is_grant: bool,
    ) -> Result<Option<Item>> {
        let name = name.to_ascii_lowercase();
        let mut known = catalog.parameters.iter();
        let oid = match known.find(|known| *known.1 == name) {
            Some((oid, _)) => *oid,
            None if !is_grant => return Ok(None),
            None => {
                check_parameter_name(&name)?;
                self.new_oid()?
            }
        };
        Ok(Some(Item::built_in(
            Guarded::Parameter,
            oid,
            "parameter",
            name,
        )))
    }

    /// ALL TABLES IN SCHEMA and its kin.
    fn granted_in_schemas(
        &mut self,
        catalog: &Catalog,
        grant: &GrantStmt,
        object: ObjectType,
    ) -> Result<Vec<Item>> {
        let own = self.current_role(catalog)?;
        let mut items = Vec::new();
        for node in &grant.objects {
            let Some(NodeEnum::String(name)) = &node.node else {
                continue;
            };
            let schema = catalog
                .schema(&name.sval)
                .ok_or_else(|| no_schema(&name.sval))?;
            catalog.check_look_into(own.oid, schema)?;
            match object {
                ObjectType::ObjectTable | ObjectType::ObjectSequence => {
                    let sequences = object == ObjectType::ObjectSequence;
                    let own = catalog.tables.iter().filter(|table| {
                        let is_sequence = table.kind == RelationKind::Sequence;
                        table.schema == schema.oid && is_sequence == sequences
                    });
                    items.extend(own.map(|table| Item::of_relation(table)));
                }
                ObjectType::ObjectFunction | ObjectType::ObjectRoutine
                    if schema.oid == PG_CATALOG =>
                {
                    let all = functions::all_signatures();
                    items.extend(all.into_iter().map(|(oid, name)| {
                        Item::built_in(Guarded::Function, oid, "function", name)
                    }));
                }
                ObjectType::ObjectFunction
                | ObjectType::ObjectRoutine
                | ObjectType::ObjectProcedure => {
                    let procedure = RoutineKind::Procedure;
                    let own = catalog.routines.iter().filter(|routine| {
                        routine.schema == schema.oid
                            && match object {
                                ObjectType::ObjectRoutine => true,
                                ObjectType::ObjectProcedure => routine.kind == procedure,
                                _ => routine.kind != procedure,
                            }
                    });
                    items.extend(own.map(|routine| Item::of_routine(routine)));
                }
                _ => return Err(Error::unsupported("GRANT on this kind of object")),
            }
        }
        Ok(items)
    }
}

/// An object that has a name of one part.
fn named_item(catalog: &Catalog, object: ObjectType, name: &str) -> Result<Item> {
    match object {
        ObjectType::ObjectSchema => {
            let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
            Ok(Item {
                owner: schema.owner,
                ..Item::built_in(Guarded::Schema, schema.oid, "schema", name)
            })
        }
        ObjectType::ObjectDatabase => {
            let found = database::named(catalog, name)?;
            Ok(Item {
                owner: found.owner,
                ..Item::built_in(Guarded::Database, found.oid, "database", name)
            })
        }
        ObjectType::ObjectLanguage => {
            let Language { oid, trusted, .. } = language_named(name)
                .ok_or_else(|| missing(format!("language \"{name}\" does not exist")))?;
            if !trusted {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("language \"{name}\" is not trusted"),
                )
                .with_detail(
                    "GRANT and REVOKE are not allowed on untrusted languages, because only \
                     superusers can use untrusted languages.",
                ));
            }
            Ok(Item::built_in(Guarded::Language, *oid, "language", name))
        }
        ObjectType::ObjectTablespace => {
            let oid = tablespace_named(name)
                .ok_or_else(|| missing(format!("tablespace \"{name}\" does not exist")))?;
            Ok(Item::built_in(Guarded::Tablespace, oid, "tablespace", name))
        }
        ObjectType::ObjectFdw => Err(missing(format!(
            "foreign-data wrapper \"{name}\" does not exist"
        ))),
        ObjectType::ObjectForeignServer => {
            Err(missing(format!("server \"{name}\" does not exist")))
        }
        _ => Err(Error::unsupported("GRANT on this kind of object")),
    }
}

/// The kinds of objects that have default privileges, and how messages call one.
pub(super) fn with_default(object: ObjectType) -> Option<(Guarded, &'static str)> {
    Some(match object {
        ObjectType::ObjectTable => (Guarded::Table, "relation"),
        ObjectType::ObjectSequence => (Guarded::Sequence, "sequence"),
        ObjectType::ObjectFunction | ObjectType::ObjectRoutine | ObjectType::ObjectProcedure => {
            (Guarded::Function, "function")
        }
        ObjectType::ObjectType => (Guarded::Type, "type"),
        ObjectType::ObjectSchema => (Guarded::Schema, "schema"),
        _ => return None,
    })
}
