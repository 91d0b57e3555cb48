//! DROP: what goes, what goes with it, and the locks for all of that.
//!
//! Whatever is to go is first planned over the graph of dependencies ([`plan_drop`]), then locked,
//! then planned again with the catalog as it is once everything is locked; only a plan that is the
//! same twice is carried out.

use std::sync::Arc;

use base::engine::{RowLock, Transaction};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DropBehavior, DropStmt, ObjectType, RangeVar};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::composite::refuse_stored;
use super::policy::no_policy;
use super::routine::is_routine;
use super::texts;
use catalog::access::must_own;
use catalog::cluster::{self, Address};
use catalog::depend::{listed, plan_drop, Dropped};
use catalog::{
    cast_store, collation_store, extension_store, operator_store, statistics_store, store,
    type_store, Catalog, Identity, Object, RelationKind, RelationRef, Table, TypeBody, UserType,
    INFORMATION_SCHEMA, PG_CATALOG, QUORATE,
};
use planner::bind::{self, BindContext};
use syntax::parser::NodeEnum;
use types::TypeId;

/// How often a DROP is planned anew because the catalog changed while it waited for locks.
const REPLANS_MAX: usize = 100;

/// The kinds of objects that DROP knows.
struct Kind {
    object: ObjectType,
    noun: &'static str,
    tag: &'static str,
}

const KINDS: [Kind; 10] = [
    Kind {
        object: ObjectType::ObjectExtension,
        noun: "extension",
        tag: "DROP EXTENSION",
    },
    Kind {
        object: ObjectType::ObjectTrigger,
        noun: "trigger",
        tag: "DROP TRIGGER",
    },
    Kind {
        object: ObjectType::ObjectPolicy,
        noun: "policy",
        tag: "DROP POLICY",
    },
    Kind {
        object: ObjectType::ObjectTable,
        noun: "table",
        tag: "DROP TABLE",
    },
    Kind {
        object: ObjectType::ObjectIndex,
        noun: "index",
        tag: "DROP INDEX",
    },
    Kind {
        object: ObjectType::ObjectSequence,
        noun: "sequence",
        tag: "DROP SEQUENCE",
    },
    Kind {
        object: ObjectType::ObjectView,
        noun: "view",
        tag: "DROP VIEW",
    },
    Kind {
        object: ObjectType::ObjectMatview,
        noun: "materialized view",
        tag: "DROP MATERIALIZED VIEW",
    },
    // Nothing is one.
    Kind {
        object: ObjectType::ObjectForeignTable,
        noun: "foreign table",
        tag: "DROP FOREIGN TABLE",
    },
    Kind {
        object: ObjectType::ObjectSchema,
        noun: "schema",
        tag: "DROP SCHEMA",
    },
];

impl Session {
    pub(in crate::session) fn drop(
        &mut self,
        drop: &DropStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let wanted = ObjectType::try_from(drop.remove_type);
        if matches!(
            wanted,
            Ok(ObjectType::ObjectType | ObjectType::ObjectDomain)
        ) {
            return self.drop_types(drop, sink);
        }
        if let Some(object) = wanted.ok().filter(|object| is_routine(*object)) {
            let cascade = drop.behavior == DropBehavior::DropCascade as i32;
            self.drop_routines(object, &drop.objects, (drop.missing_ok, cascade), sink)?;
            return Ok(tag(match object {
                ObjectType::ObjectProcedure => "DROP PROCEDURE",
                ObjectType::ObjectRoutine => "DROP ROUTINE",
                ObjectType::ObjectAggregate => "DROP AGGREGATE",
                _ => "DROP FUNCTION",
            }));
        }
        if let Some(done) = self.drop_absent(drop, sink)? {
            return Ok(done);
        }
        let kind = KINDS.iter().find(|kind| Ok(kind.object) == wanted);
        let kind = kind.ok_or_else(|| Error::unsupported("DROP of this kind of object"))?;
        let names: Vec<_> = drop
            .objects
            .iter()
            .map(|object| match &object.node {
                Some(NodeEnum::List(list)) => texts(&list.items),
                Some(NodeEnum::String(name)) => vec![name.sval.clone()],
                _ => Vec::new(),
            })
            .collect();
        let mut known = Vec::new();
        for name in names {
            match self.named_for_drop(kind, &name)? {
                Ok(_) => known.push(name),
                Err(missing) if drop.missing_ok => {
                    let mut message = format!("{}, skipping", missing.message());
                    let of_table = [ObjectType::ObjectPolicy, ObjectType::ObjectTrigger];
                    if of_table.contains(&kind.object) {
                        message = message.replacen("\" for table \"", "\" for relation \"", 1);
                    }
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                }
                Err(missing) => return Err(missing),
            }
        }
        let cascade = drop.behavior == DropBehavior::DropCascade as i32;
        let resolve = |session: &mut Session| {
            let mut roots = Vec::new();
            for name in &known {
                let object = session.named_for_drop(kind, name)??;
                if !roots.contains(&object) {
                    roots.push(object);
                }
            }
            Ok(roots)
        };
        self.drop_objects(resolve, cascade, sink)?;
        Ok(tag(kind.tag))
    }

    /// What a name of DROP means; the inner error says that there is no such thing.
    fn named_for_drop(
        &mut self,
        kind: &Kind,
        names: &[String],
    ) -> Result<std::result::Result<Object, Error>> {
        let name = names.last().map_or("", String::as_str);
        let catalog = self.current_catalog()?;
        let no_schema = |name: &str| {
            Error::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{name}\" does not exist"),
            )
        };
        if kind.object == ObjectType::ObjectSchema {
            return match catalog.schema(name) {
                None => Ok(Err(no_schema(name))),
                Some(schema) if [PG_CATALOG, INFORMATION_SCHEMA, QUORATE].contains(&schema.oid) => {
                    Err(Error::new(
                        SqlState::of("2BP01"),
                        format!(
                            "cannot drop schema {name} because it is required by the database system"
                        ),
                    ))
                }
                Some(schema) => Ok(Ok(Object::Schema(schema.oid))),
            };
        }
        if kind.object == ObjectType::ObjectExtension {
            return match self.own_extension(&catalog, name) {
                Ok(found) => Ok(Ok(Object::Extension(found.oid))),
                Err(error) if error.state() == SqlState::UNDEFINED_OBJECT => Ok(Err(error)),
                Err(error) => Err(error),
            };
        }
        if kind.object == ObjectType::ObjectPolicy {
            return self.policy_for_drop(&catalog, names);
        }
        if kind.object == ObjectType::ObjectTrigger {
            return self.trigger_for_drop(&catalog, names);
        }
        if let [.., schema, _] = names {
            if catalog.schema(schema).is_none() {
                return Ok(Err(no_schema(schema)));
            }
        }
        let Some((catalog, found)) = self.find_named(names)? else {
            let state = match kind.object {
                ObjectType::ObjectIndex => SqlState::UNDEFINED_OBJECT,
                _ => SqlState::UNDEFINED_TABLE,
            };
            let message = format!("{} \"{name}\" does not exist", kind.noun);
            return Ok(Err(Error::new(state, message)));
        };
        if let RelationRef::Table(place) = found {
            if catalog.tables[place].kind == RelationKind::System {
                return Err(super::system_table(name));
            }
        }
        if let RelationRef::Index(table, index) = found {
            let table = &catalog.tables[table];
            super::partition::refuse_dropping_part(&catalog, table, &table.indexes[index])?;
        }
        let noun = noun_of(&catalog, found);
        if noun != kind.noun {
            let article = if kind.noun == "index" { "an" } else { "a" };
            let its = if noun == "index" { "an" } else { "a" };
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not {article} {}", kind.noun),
            )
            .with_hint(format!(
                "Use DROP {} to remove {its} {noun}.",
                noun.to_uppercase()
            )));
        }
        Ok(Ok(Object::Relation(found.oid(&catalog))))
    }

    /// The policy that a name, the last, of a table means.
    fn policy_for_drop(
        &mut self,
        catalog: &Catalog,
        names: &[String],
    ) -> Result<std::result::Result<Object, Error>> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("DROP POLICY of nothing"));
        };
        let Some((_, RelationRef::Table(place))) = self.find_named(of)? else {
            let message = format!("relation \"{}\" does not exist", of.join("."));
            return Ok(Err(Error::new(SqlState::UNDEFINED_TABLE, message)));
        };
        let table = &catalog.tables[place];
        let policy = table.policies.iter().find(|policy| policy.name == *name);
        let Some(policy) = policy else {
            return Ok(Err(no_policy(table, name)));
        };
        let role = self.shared.settings.current_role();
        match catalog.has_privileges_of(role, table.owner) {
            true => Ok(Ok(Object::Policy(policy.oid))),
            false => Err(must_own("relation", &table.name)),
        }
    }

    /// What a name means, and where the catalog has it.
    pub(super) fn find_named(
        &mut self,
        names: &[String],
    ) -> Result<Option<(Arc<Catalog>, RelationRef)>> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let cx = BindContext {
            catalog: &catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: "",
            literals: None,
            variables: None,
        };
        let range = RangeVar {
            relname: names.last().cloned().unwrap_or_default(),
            schemaname: match names {
                [.., schema, _] => schema.clone(),
                _ => String::new(),
            },
            ..RangeVar::default()
        };
        let found = bind::find_relation(&cx, &range)?;
        Ok(found.map(|found| (catalog.clone(), found)))
    }

    /// Drops what `roots` names, with everything that depends on it if `cascade`. `roots` is asked
    /// again whenever the catalog may have changed.
    ///
    /// # Errors
    /// 2BP01 when something else depends on it.
    pub(super) fn drop_objects(
        &mut self,
        mut roots: impl FnMut(&mut Session) -> Result<Vec<Object>>,
        cascade: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (mut locked, mut held, mut held_rows) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..REPLANS_MAX {
            let objects = roots(self)?;
            let catalog = self.current_catalog()?;
            for root in &objects {
                self.must_own_object(&catalog, *root)?;
            }
            let search_path = self.search_path(&catalog);
            let dropped = plan_drop(&catalog, &search_path, &objects, cascade)?;
            let mut tables: Vec<_> = dropped
                .objects
                .iter()
                .filter_map(|object| table_of(&catalog, *object))
                .collect();
            let parents = tables
                .iter()
                .filter_map(|table| table.partition_of.as_ref());
            let parents = parents.filter_map(|of| catalog.table_by_oid(of.parent));
            let parents: Vec<_> = parents.collect();
            tables.extend(parents);
            tables.sort_by_key(|table| table.oid);
            tables.dedup_by_key(|table| table.oid);
            let wanted: Vec<_> = tables.iter().map(|table| table.tree).collect();
            let mut own_types: Vec<_> = dropped.objects.iter().filter_map(type_of).collect();
            own_types.extend(dropped.objects.iter().filter_map(|object| match object {
                Object::Constraint(oid) => Some(catalog.domain_check(*oid)?.0.id),
                Object::Column(oid, _) => Some(catalog.composite_of_relation(*oid)?.id),
                _ => None,
            }));
            let rows = dropped
                .objects
                .iter()
                .copied()
                .filter(|object| matches!(object, Object::Collation(_) | Object::Operator(_)));
            let rows: Vec<Object> = rows.collect();
            let holds_types = own_types.iter().all(|id| held.contains(id));
            let holds_rows = rows.iter().all(|object| held_rows.contains(object));
            if holds_types && holds_rows && wanted.iter().all(|tree| locked.contains(tree)) {
                self.say_cascades(&dropped, sink)?;
                self.refuse_dropping_used(&catalog, &dropped)?;
                return self.carry_out(&catalog, &dropped);
            }
            for table in tables {
                self.lock_fully(table)?;
                locked.push(table.tree);
            }
            for id in own_types {
                self.lock_type(&catalog, id, RowLock::Update)?;
                held.push(id);
            }
            for object in rows {
                match object {
                    Object::Collation(oid) => {
                        self.lock_collation(&catalog, oid, RowLock::Update)?
                    }
                    Object::Operator(oid) => self.lock_operator(&catalog, oid)?,
                    _ => {}
                }
                held_rows.push(object);
            }
            self.forget_own_catalog();
        }
        Err(Error::serialization(
            "could not serialize access: the catalog keeps changing",
        ))
    }

    /// 55006 for what is in use, and for tables that deferred constraints still look at.
    fn refuse_dropping_used(&self, catalog: &Catalog, dropped: &Dropped) -> Result<()> {
        for object in &dropped.objects {
            let Some(table) = table_of(catalog, *object) else {
                continue;
            };
            match object {
                // Whatever kind of relation it is, as in PostgreSQL.
                Object::Relation(oid) if *oid == table.oid => {
                    self.refuse_in_use(table, "DROP TABLE")?;
                }
                Object::Relation(oid) => {
                    let mut indexes = table.indexes.iter();
                    if let Some(index) = indexes.find(|index| index.oid == *oid) {
                        self.refuse_index_at_work(index, "DROP INDEX")?;
                    }
                }
                Object::Column(..) => self.refuse_at_work(table, "ALTER TABLE")?,
                _ => {}
            }
        }
        Ok(())
    }

    /// 42501 for an object of another role, unless its schema is this role's. What depends on it may
    /// be anybody's.
    fn must_own_object(&mut self, catalog: &Catalog, object: Object) -> Result<()> {
        if let Object::Schema(oid) = object {
            let own = self.current_role(catalog)?;
            let schema = catalog.schema_by_oid(oid);
            return match schema {
                Some(schema) if !catalog.has_privileges_of(own.oid, schema.owner) => {
                    Err(must_own("schema", &schema.name))
                }
                _ => Ok(()),
            };
        }
        let role = self.shared.settings.current_role();
        if let Some(made) = type_of(&object).and_then(|id| catalog.user_type(id)) {
            let schema = catalog.schema_by_oid(made.schema);
            return match schema {
                Some(schema) if catalog.has_privileges_of(role, schema.owner) => Ok(()),
                _ => self.must_own_type(catalog, made.id),
            };
        }
        if let Object::Routine(oid) = object {
            return match catalog.routine(oid) {
                Some(routine) => self.may_drop_routine(catalog, routine, &routine.name),
                None => Ok(()),
            };
        }
        if let Object::Cast(oid) = object {
            return match catalog.cast_by_oid(oid) {
                Some(cast) => self.must_own_cast(catalog, cast.source, cast.target),
                None => Ok(()),
            };
        }
        if let Object::Collation(oid) = object {
            return match catalog.collation(oid) {
                Some(known) => self.may_drop_collation(catalog, known, &known.name),
                None => Ok(()),
            };
        }
        if let Object::Operator(oid) = object {
            return match catalog.own_operator(oid) {
                Some(known) => self.may_drop_operator(catalog, known, &known.name),
                None => Ok(()),
            };
        }
        if let Object::Statistics(oid) = object {
            return match catalog.extended(oid) {
                Some(known) => self.may_drop_statistics(catalog, known, &known.name),
                None => Ok(()),
            };
        }
        if let Object::Extension(oid) = object {
            return match catalog.extension_by_oid(oid) {
                Some(found) => self.own_extension(catalog, &found.name).map(|_| ()),
                None => Ok(()),
            };
        }
        let Some(table) = table_of(catalog, object) else {
            return Ok(());
        };
        let schema = catalog.schema_by_oid(table.schema);
        if schema.is_some_and(|schema| catalog.has_privileges_of(role, schema.owner)) {
            return Ok(());
        }
        let index = table
            .indexes
            .iter()
            .find(|index| object == Object::Relation(index.oid));
        match index {
            Some(index) => self.must_own_index(table, index),
            None => self.must_own_relation(table),
        }
    }

    fn say_cascades(&mut self, dropped: &Dropped, sink: &mut dyn Sink) -> Result<()> {
        let state = SqlState::SUCCESSFUL_COMPLETION;
        let body = match dropped.cascaded.as_slice() {
            [] => return Ok(()),
            [one] => Error::new(state, format!("drop cascades to {one}")),
            many => {
                let message = format!("drop cascades to {} other objects", many.len());
                let lines: Vec<_> = many
                    .iter()
                    .map(|object| format!("drop cascades to {object}"))
                    .collect();
                Error::new(state, message).with_detail(listed(&lines))
            }
        };
        self.notice(NoticeSeverity::Notice, body, sink)
    }

    /// Removes everything that was planned and locked.
    fn carry_out(&mut self, catalog: &Catalog, dropped: &Dropped) -> Result<()> {
        let database = catalog.database.oid;
        let gone = |oid: u32| dropped.objects.contains(&Object::Relation(oid));
        let gone_type = |id| dropped.objects.contains(&Object::Type(id));
        let relations = dropped.objects.iter().filter_map(|object| match object {
            Object::Relation(oid) => Some(*oid),
            _ => None,
        });
        let relations: Vec<u32> = relations.collect();
        let mut changed = Session::forget_children(catalog, &relations);
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let txn = open.txn.as_mut();
        for object in &dropped.objects {
            match (*object, table_of(catalog, *object)) {
                (Object::Schema(oid), _) => {
                    if let Some(schema) = catalog.schema_by_oid(oid) {
                        store::drop_schema(txn, database, schema)?;
                    }
                }
                (Object::Type(id), _) => {
                    if let Some(made) = catalog.user_type(id) {
                        type_store::remove(txn, database, made)?;
                    }
                }
                (Object::Routine(oid), _) => {
                    if let Some(routine) = catalog.routine(oid) {
                        store::drop_routine(txn, database, routine)?;
                    }
                }
                (Object::Cast(oid), _) => {
                    if let Some(found) = catalog.cast_by_oid(oid) {
                        cast_store::remove(txn, database, found)?;
                    }
                }
                (Object::Collation(oid), _) => {
                    if let Some(known) = catalog.collation(oid) {
                        collation_store::remove(txn, database, known)?;
                    }
                }
                (Object::Operator(oid), _) => {
                    if let Some(known) = operator_store::newest(txn, database, oid)? {
                        operator_store::remove(txn, database, &known)?;
                    }
                }
                (Object::Statistics(oid), _) => {
                    if let Some(known) = catalog.extended(oid) {
                        match gone(known.table) {
                            true => statistics_store::free_extended(txn, database, known)?,
                            false => statistics_store::remove_extended(txn, database, known)?,
                        }
                    }
                }
                (Object::Extension(oid), _) => {
                    if let Some(found) = catalog.extension_by_oid(oid) {
                        extension_store::remove(txn, database, found)?;
                    }
                }
                (Object::Relation(oid), Some(table)) if table.oid == oid => {
                    store::drop_table(txn, database, table)?;
                }
                (Object::Column(oid, place), None) => {
                    let of = catalog
                        .composite_of_relation(oid)
                        .filter(|of| !gone_type(of.id));
                    if let Some(of) = of {
                        refuse_stored(catalog, of.id, &dropped.objects)?;
                        drop_attribute(txn, database, of.id, place)?;
                    }
                }
                (Object::Constraint(oid), None) => match catalog.domain_check(oid) {
                    Some((of, _)) if !gone_type(of.id) => {
                        drop_domain_check(txn, database, of, oid)?;
                    }
                    _ => cluster::forget_object(txn, database, Address::CONSTRAINT, oid)?,
                },
                (part, Some(table)) if !gone(table.oid) => {
                    let place = changed.iter().position(|known| known.oid == table.oid);
                    let place = place.unwrap_or_else(|| {
                        changed.push((**table).clone());
                        changed.len() - 1
                    });
                    let keeps_trees = loses_key(table, dropped);
                    remove_part(txn, database, &mut changed[place], part, keeps_trees)?;
                }
                _ => {}
            }
        }
        for new in &changed {
            let old = catalog.table_by_oid(new.oid);
            match old.filter(|old| loses_key(old, dropped)) {
                // Its rows get hidden numbers for keys, in trees of their own.
                Some(old) => {
                    let new = self.with_new_trees(new)?;
                    self.rekey(database, old, &new)?;
                }
                None => {
                    let Some(open) = &mut self.open else {
                        return Err(Error::internal("nothing is open"));
                    };
                    store::update_table(open.txn.as_mut(), database, new)?;
                }
            }
        }
        self.changed_catalog();
        Ok(())
    }

    /// What this transaction sees of the catalog is read again.
    pub(in crate::session) fn forget_own_catalog(&mut self) {
        if let Some(open) = &mut self.open {
            open.forget_own_catalog();
        }
    }
}

fn noun_of(catalog: &Catalog, found: RelationRef) -> &'static str {
    match found {
        RelationRef::Table(place) => catalog.tables[place].kind.noun(),
        RelationRef::Index(..) => "index",
    }
}

/// Takes a check from a domain, as the transaction has left that so far.
fn drop_domain_check(
    txn: &mut dyn Transaction,
    database: u32,
    of: &UserType,
    oid: u32,
) -> Result<()> {
    let Some(old) = type_store::newest(txn, database, of.id)? else {
        return Ok(());
    };
    let mut new = old.clone();
    if let TypeBody::Domain(domain) = &mut new.body {
        domain.checks.retain(|check| check.oid != oid);
    }
    type_store::update(txn, database, &old, &new)?;
    cluster::forget_object(txn, database, Address::CONSTRAINT, oid)
}

/// Takes an attribute from a composite type, as the transaction has left that so far.
fn drop_attribute(
    txn: &mut dyn Transaction,
    database: u32,
    id: TypeId,
    place: usize,
) -> Result<()> {
    let Some(old) = type_store::newest(txn, database, id)? else {
        return Ok(());
    };
    let mut new = old.clone();
    if let TypeBody::Composite(composite) = &mut new.body {
        if let Some(attribute) = composite.attributes.get_mut(place) {
            attribute.name.clear();
        }
    }
    type_store::update(txn, database, &old, &new)
}

fn type_of(object: &Object) -> Option<TypeId> {
    match object {
        Object::Type(id) => Some(*id),
        _ => None,
    }
}

/// The relation that holds an object, or is it.
fn table_of(catalog: &Catalog, object: Object) -> Option<&Arc<Table>> {
    match object {
        Object::Schema(_)
        | Object::Type(_)
        | Object::Routine(_)
        | Object::Extension(_)
        | Object::Collation(_)
        | Object::Operator(_)
        | Object::Cast(_) => None,
        Object::Relation(oid) => catalog
            .table_by_oid(oid)
            .or_else(|| catalog.index_by_oid(oid).map(|found| found.0)),
        Object::Column(oid, _) | Object::Default(oid, _) => catalog.table_by_oid(oid),
        Object::Constraint(oid) => {
            let table = catalog.constraint(oid)?.0.oid;
            catalog.table_by_oid(table)
        }
        Object::Policy(oid) => catalog.policy(oid).map(|found| found.0),
        Object::Trigger(oid) => catalog.trigger(oid).map(|found| found.0),
        Object::Rule(oid) => catalog.rule(oid).map(|found| found.0),
        Object::Statistics(oid) => catalog.table_by_oid(catalog.extended(oid)?.table),
    }
}

/// Whether a table stays and loses its primary key, so that all its trees are made anew.
fn loses_key(table: &Table, dropped: &Dropped) -> bool {
    let key = table.primary_key().filter(|_| table.kind.has_rows());
    key.is_some_and(|key| dropped.objects.contains(&Object::Relation(key.oid)))
}

fn forget_part(table: &mut Table, oid: u32) {
    if let Some(of) = &mut table.partition_of {
        of.parts.retain(|known| known.0 != oid);
    }
}

/// Removes a part of a table from its descriptor. Trees of its indexes are kept for whoever makes
/// all trees of the table anew.
fn remove_part(
    txn: &mut dyn base::engine::Transaction,
    database: u32,
    table: &mut Table,
    part: Object,
    keeps_trees: bool,
) -> Result<()> {
    match part {
        Object::Default(_, place) => {
            table.columns[place].default = None;
            table.columns[place].default_uses.clear();
            table.columns[place].generated = false;
            table.columns[place].generated_from.clear();
        }
        Object::Column(_, place) => {
            let column = &mut table.columns[place];
            column.name = format!("........pg.dropped.{}........", place + 1);
            column.default = None;
            column.default_uses.clear();
            column.generated = false;
            column.generated_from.clear();
            column.identity = Identity::None;
            column.not_null = false;
            column.missing = None;
            column.dropped = true;
            let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
            cluster::forget_column(txn, database, table.oid, number)?;
        }
        Object::Relation(oid) => {
            let Some(place) = table.indexes.iter().position(|index| index.oid == oid) else {
                return Ok(());
            };
            let index = table.indexes.remove(place);
            forget_part(table, oid);
            let class = store::NameClass::Relation;
            store::free_name(txn, class, database, table.schema, &index.name)?;
            if !keeps_trees && table.kind.has_rows() {
                store::drop_tree(txn, index.tree)?;
            }
        }
        Object::Constraint(oid) => {
            table.checks.retain(|check| check.oid != oid);
            table.foreign_keys.retain(|key| key.oid != oid);
            table.foreign_parts.retain(|part| part.key != oid);
            forget_part(table, oid);
        }
        Object::Policy(oid) => {
            table.policies.retain(|policy| policy.oid != oid);
            cluster::forget_object(txn, database, Address::POLICY, oid)?;
        }
        Object::Trigger(oid) => {
            table.triggers.retain(|trigger| trigger.oid != oid);
            forget_part(table, oid);
            cluster::forget_object(txn, database, Address::TRIGGER, oid)?;
        }
        Object::Rule(oid) => {
            table.rules.retain(|rule| rule.oid != oid);
            cluster::forget_object(txn, database, Address::REWRITE, oid)?;
        }
        Object::Schema(_)
        | Object::Type(_)
        | Object::Routine(_)
        | Object::Extension(_)
        | Object::Collation(_)
        | Object::Operator(_)
        | Object::Statistics(_)
        | Object::Cast(_) => {}
    }
    Ok(())
}
