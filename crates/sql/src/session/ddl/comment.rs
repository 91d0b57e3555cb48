//! COMMENT ON.

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{CommentStmt, ObjectType, RangeVar};

use super::super::utility::tag;
use super::super::{CommandTag, Session};
use super::policy::no_policy;
use super::role::no_role;
use super::routine::is_routine;
use super::rule::rule_oid;
use super::trigger::no_trigger;
use super::{database, texts};
use catalog::access::must_own;
use catalog::cluster::{self, Address};
use catalog::{Catalog, RelationKind, RelationRef, Table, PUBLIC};
use functions::{self, function_by_oid};
use syntax::parser::NodeEnum;
use types::TypeId;

/// The language that is no built-in one.
const PLPGSQL: &str = "plpgsql";

fn missing(message: String) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// A name of up to two parts as a relation.
fn range_of(names: &[String]) -> RangeVar {
    RangeVar {
        relname: names.last().cloned().unwrap_or_default(),
        schemaname: match names {
            [.., schema, _] => schema.clone(),
            _ => String::new(),
        },
        location: -1,
        ..RangeVar::default()
    }
}

/// The names of a domain, and the name of a check.
fn domain_and_check(items: &[pg_query::protobuf::Node]) -> (Vec<String>, String) {
    let (mut domain, mut check) = (Vec::new(), String::new());
    for item in items {
        match &item.node {
            Some(NodeEnum::TypeName(name)) => domain = texts(&name.names),
            Some(NodeEnum::String(name)) => check.clone_from(&name.sval),
            _ => {}
        }
    }
    (domain, check)
}

impl Session {
    pub(in crate::session) fn comment(&mut self, comment: &CommentStmt) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let object = ObjectType::try_from(comment.objtype);
        let node = comment.object.as_ref().and_then(|node| node.node.as_ref());
        let names = match node {
            Some(NodeEnum::List(list)) => texts(&list.items),
            Some(NodeEnum::String(name)) => vec![name.sval.clone()],
            _ => Vec::new(),
        };
        let address = match (object, node) {
            (
                Ok(
                    object @ (ObjectType::ObjectTable
                    | ObjectType::ObjectView
                    | ObjectType::ObjectMatview
                    | ObjectType::ObjectSequence
                    | ObjectType::ObjectIndex),
                ),
                _,
            ) => self.commented_relation(&catalog, object, &names)?,
            (Ok(ObjectType::ObjectColumn), _) => self.commented_column(&catalog, &names)?,
            (Ok(ObjectType::ObjectTabconstraint), _) => {
                self.commented_constraint(&catalog, &names)?
            }
            (Ok(ObjectType::ObjectPolicy), _) => self.commented_policy(&catalog, &names)?,
            (Ok(ObjectType::ObjectTrigger), _) => self.commented_trigger(&catalog, &names)?,
            (Ok(ObjectType::ObjectRule), _) => self.commented_rule(&catalog, &names)?,
            (Ok(object), Some(NodeEnum::String(_))) => {
                self.commented_name(&catalog, object, &names[0])?
            }
            (Ok(ObjectType::ObjectLargeobject), _) => {
                self.commented_large_object(&catalog, comment.object.as_deref())?
            }
            (Ok(ObjectType::ObjectCast), Some(NodeEnum::List(list))) => {
                let oid = self.commented_cast(&catalog, &list.items)?;
                Address::of(Address::CAST, oid)
            }
            (Ok(ObjectType::ObjectCollation), Some(NodeEnum::List(_))) => {
                let known = self.collation_of_names(&catalog, &names)?;
                self.must_own_collation(&catalog, known, &names.join("."))?;
                Address::of(Address::COLLATION, known.oid)
            }
            (Ok(ObjectType::ObjectStatisticExt), _) => {
                self.commented_statistics(&catalog, &names)?
            }
            (Ok(ObjectType::ObjectOperator), Some(NodeEnum::ObjectWithArgs(named))) => {
                let (oid, name) = self.operator_of_name(&catalog, named)?;
                self.must_own_operator(&catalog, oid, &name)?;
                if catalog.own_operator(oid).is_some() {
                    self.lock_operator(&catalog, oid)?;
                }
                Address::of(Address::OPERATOR, oid)
            }
            (Ok(ObjectType::ObjectDomconstraint), Some(NodeEnum::List(list))) => {
                let (domain, check) = domain_and_check(&list.items);
                let oid = self.commented_domain_check(&domain, &check)?;
                Address::of(Address::CONSTRAINT, oid)
            }
            (
                Ok(object @ (ObjectType::ObjectType | ObjectType::ObjectDomain)),
                Some(NodeEnum::TypeName(name)),
            ) => {
                let (ty, _) = self.type_of_name(&catalog, name)?;
                let is_domain = ty.own_kind() == Some(types::OwnKind::Domain);
                if object == ObjectType::ObjectDomain && !is_domain {
                    let message = format!("\"{}\" is not a domain", texts(&name.names).join("."));
                    return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                match ty.array_element().unwrap_or(ty).is_own() {
                    true => self.must_own_type(&catalog, ty.array_element().unwrap_or(ty))?,
                    false => self.must_be_superuser(&catalog, "type", &ty.to_string())?,
                }
                Address::of(Address::TYPE, ty.0)
            }
            (Ok(object), Some(NodeEnum::ObjectWithArgs(named)))
                if is_routine(object) && self.names_routine(&catalog, named) =>
            {
                let routine = self.named_routine(object, named)??;
                let name = texts(&named.objname).join(".");
                self.must_own_routine(&catalog, &routine, &name)?;
                Address::of(Address::PROC, routine.oid)
            }
            (Ok(ObjectType::ObjectFunction), Some(NodeEnum::ObjectWithArgs(named))) => {
                let mut types = Vec::new();
                for node in &named.objargs {
                    if let Some(NodeEnum::TypeName(name)) = &node.node {
                        types.push(self.type_of_name(&catalog, name)?.0);
                    }
                }
                let names = texts(&named.objname);
                let name = names.last().map_or("", String::as_str);
                let function = function_of(name, &types)?;
                self.must_be_superuser(&catalog, "function", name)?;
                Address::of(Address::PROC, function)
            }
            _ => return Err(Error::unsupported("COMMENT ON this kind of object")),
        };
        let text = match comment.comment.as_str() {
            // What is there from the start would show again.
            "" if address == Address::of(Address::NAMESPACE, PUBLIC) => Some(""),
            "" => None,
            text => Some(text),
        };
        if let Some(open) = &mut self.open {
            cluster::put_comment(open.txn.as_mut(), catalog.database.oid, address, text)?;
        }
        Ok(tag("COMMENT"))
    }

    pub(super) fn type_of_name(
        &mut self,
        catalog: &std::sync::Arc<Catalog>,
        name: &pg_query::protobuf::TypeName,
    ) -> Result<(TypeId, i32)> {
        let search_path = self.search_path(catalog);
        let cx = planner::bind::BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: "",
            literals: None,
            variables: None,
        };
        planner::bind::type_names::resolve(&cx, name)
    }

    pub(super) fn must_be_superuser(
        &mut self,
        catalog: &Catalog,
        noun: &str,
        name: &str,
    ) -> Result<()> {
        match self.current_role(catalog)?.superuser {
            true => Ok(()),
            false => Err(must_own(noun, name)),
        }
    }

    /// 42501 for a part of another role's table.
    fn must_own_part_of(&mut self, catalog: &Catalog, table: &Table) -> Result<()> {
        match catalog.has_privileges_of(self.shared.settings.current_role(), table.owner) {
            true => Ok(()),
            false => Err(must_own("relation", &table.name)),
        }
    }

    fn commented_relation(
        &mut self,
        catalog: &Catalog,
        object: ObjectType,
        names: &[String],
    ) -> Result<Address> {
        let range = range_of(names);
        let shown = names.join(".");
        let found = self.find_range(&range)?;
        let found = found.ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{shown}\" does not exist"),
            )
        })?;
        let (oid, table, is) = match found {
            RelationRef::Table(place) => {
                let table = &catalog.tables[place];
                (table.oid, table, Some(table.kind))
            }
            RelationRef::Index(place, index) => {
                let table = &catalog.tables[place];
                (table.indexes[index].oid, table, None)
            }
        };
        let (right, noun) = match object {
            ObjectType::ObjectIndex => (is.is_none(), "an index"),
            ObjectType::ObjectView => (is == Some(RelationKind::View), "a view"),
            ObjectType::ObjectMatview => (
                is == Some(RelationKind::MaterializedView),
                "a materialized view",
            ),
            ObjectType::ObjectSequence => (is == Some(RelationKind::Sequence), "a sequence"),
            _ => (
                matches!(
                    is,
                    Some(RelationKind::Table | RelationKind::System | RelationKind::Partitioned)
                ),
                "a table",
            ),
        };
        if !right {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not {noun}", range.relname),
            ));
        }
        match found {
            RelationRef::Table(_) => self.must_own_relation(table)?,
            RelationRef::Index(_, index) => self.must_own_index(table, &table.indexes[index])?,
        }
        self.lock_commented(table)?;
        Ok(Address::of(Address::CLASS, oid))
    }

    /// One comments at a time, and nobody changes the relation meanwhile.
    fn lock_commented(&mut self, table: &Table) -> Result<()> {
        match table.kind {
            RelationKind::System => Ok(()),
            _ => self.lock_mode(table, TableLock::ShareUpdateExclusive),
        }
    }

    fn commented_column(&mut self, catalog: &Catalog, names: &[String]) -> Result<Address> {
        let Some((column, of)) = names.split_last() else {
            return Err(Error::internal("COMMENT ON COLUMN of nothing"));
        };
        let table = self.find_table_in("", &range_of(of))?;
        let shown = of.join(".");
        let place = table.column(column).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" of relation \"{shown}\" does not exist"),
            )
        })?;
        self.must_own_part_of(catalog, &table)?;
        self.lock_commented(&table)?;
        Ok(Address {
            class: Address::CLASS,
            object: table.oid,
            column: u32::try_from(place + 1).unwrap_or(u32::MAX),
        })
    }

    fn commented_constraint(&mut self, catalog: &Catalog, names: &[String]) -> Result<Address> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("COMMENT ON CONSTRAINT of nothing"));
        };
        let table = self.find_table_in("", &range_of(of))?;
        let indexes = table.indexes.iter();
        let indexes = indexes.filter(|index| index.constraint != 0);
        let found = indexes
            .map(|index| (&index.name, index.constraint))
            .chain(table.checks.iter().map(|check| (&check.name, check.oid)))
            .chain(table.foreign_keys.iter().map(|key| (&key.name, key.oid)))
            .find(|known| known.0 == name);
        let (_, oid) = found.ok_or_else(|| {
            missing(format!(
                "constraint \"{name}\" for table \"{}\" does not exist",
                table.name
            ))
        })?;
        self.must_own_part_of(catalog, &table)?;
        Ok(Address::of(Address::CONSTRAINT, oid))
    }

    fn commented_policy(&mut self, catalog: &Catalog, names: &[String]) -> Result<Address> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("COMMENT ON POLICY of nothing"));
        };
        let table = self.find_table_in("", &range_of(of))?;
        let policy = table.policies.iter().find(|policy| policy.name == *name);
        let policy = policy.ok_or_else(|| no_policy(&table, name))?;
        self.must_own_part_of(catalog, &table)?;
        Ok(Address::of(Address::POLICY, policy.oid))
    }

    fn commented_trigger(&mut self, catalog: &Catalog, names: &[String]) -> Result<Address> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("COMMENT ON TRIGGER of nothing"));
        };
        let table = self.find_table_in("", &range_of(of))?;
        let trigger = table.trigger(name);
        let trigger = trigger.ok_or_else(|| no_trigger(&table, name))?;
        self.must_own_part_of(catalog, &table)?;
        Ok(Address::of(Address::TRIGGER, trigger.oid))
    }

    fn commented_rule(&mut self, catalog: &Catalog, names: &[String]) -> Result<Address> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("COMMENT ON RULE of nothing"));
        };
        let table = self.find_table_in("", &range_of(of))?;
        let oid = rule_oid(&table, name)?;
        self.must_own_part_of(catalog, &table)?;
        Ok(Address::of(Address::REWRITE, oid))
    }

    /// An object that has a name of one part.
    fn commented_name(
        &mut self,
        catalog: &Catalog,
        object: ObjectType,
        name: &str,
    ) -> Result<Address> {
        let own = self.current_role(catalog)?;
        match object {
            ObjectType::ObjectSchema => {
                let schema = catalog.schema(name).ok_or_else(|| {
                    Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{name}\" does not exist"),
                    )
                })?;
                if !catalog.has_privileges_of(own.oid, schema.owner) {
                    return Err(must_own("schema", name));
                }
                Ok(Address::of(Address::NAMESPACE, schema.oid))
            }
            ObjectType::ObjectDatabase => {
                let found = database::named(catalog, name)?;
                if !catalog.has_privileges_of(own.oid, found.owner) {
                    return Err(must_own("database", name));
                }
                Ok(Address::of(Address::DATABASE, found.oid))
            }
            ObjectType::ObjectRole => {
                let role = catalog.role(name).ok_or_else(|| no_role(name))?;
                if !own.superuser && (role.superuser || !own.create_role) {
                    return Err(Error::new(
                        SqlState::INSUFFICIENT_PRIVILEGE,
                        match role.superuser {
                            true => "must be superuser".to_owned(),
                            false => "must have CREATEROLE privilege".to_owned(),
                        },
                    ));
                }
                Ok(Address::of(Address::ROLE, role.oid))
            }
            ObjectType::ObjectExtension => self.commented_extension(catalog, name),
            ObjectType::ObjectLanguage if name == PLPGSQL => {
                self.must_be_superuser(catalog, "language", name)?;
                Ok(Address::of(Address::LANGUAGE, 13_563))
            }
            ObjectType::ObjectLanguage => {
                Err(missing(format!("language \"{name}\" does not exist")))
            }
            ObjectType::ObjectTablespace => match name {
                "pg_default" => Ok(Address::of(Address::TABLESPACE, 1_663)),
                "pg_global" => Ok(Address::of(Address::TABLESPACE, 1_664)),
                _ => Err(missing(format!("tablespace \"{name}\" does not exist"))),
            },
            _ => Err(Error::unsupported("COMMENT ON this kind of object")),
        }
    }
}

fn function_of(name: &str, types: &[TypeId]) -> Result<u32> {
    let named = functions::functions_named(name).iter();
    let found = named
        .filter(|function| function.arguments == types)
        .find(|function| function_by_oid(function.oid).is_some());
    found.map(|function| function.oid).ok_or_else(|| {
        let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
        Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name}({}) does not exist", shown.join(", ")),
        )
    })
}
