//! What depends on what, and what a DROP takes with it.
//!
//! Dependencies are not kept: they follow from the descriptors, so that they can never disagree
//! with them ([`Catalog::dependencies`], which is also `pg_depend`).
//!
//! ```text
//! default of t.id ──normal──► sequence t_id_seq ──auto──► column t.id
//!        └───────────auto──► column t.id
//! view v ──normal──► column t.a        index t_pkey ──internal──► constraint t_pkey ──auto──► t.id
//! ```
//!
//! | kind | when what it depends on is dropped |
//! |---|---|
//! | normal | DROP fails, or says that it drops this too (CASCADE) |
//! | auto | it goes without a word |
//! | internal | it goes without a word, and cannot be dropped alone |
//! | member of an extension | as internal |
//!
//! # Who must see to what
//! Whoever adds a reference to a descriptor adds its edge in [`Catalog::dependencies`].

use std::sync::Arc;

use base::hash::HashSet;
use base::{Error, Result, SqlState};

use super::computed::KeySource;
use super::domain::Domain;
use super::extended::Extended;
use super::operator_class::extension_of;
use super::routine::{built_in_trigger, Language};
use super::view::named_by_oid;
use super::{Catalog, Index, OwnOperator, Policy, RelationRef, Routine, Table, Uses, PG_CATALOG};
use crate::layout::FIRST_USER_OID;
use crate::local::is_local;
use functions::strings::quote_identifier;
use types::{OwnKind, TypeId};

/// Something that can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A schema, by oid.
    Schema(u32),
    /// A table, index, view or sequence, by oid.
    Relation(u32),
    /// A column: its relation's oid and its place.
    Column(u32, usize),
    /// The default of a column, or what a generated column is computed from.
    Default(u32, usize),
    /// A constraint, by oid.
    Constraint(u32),
    /// A policy, by oid.
    Policy(u32),
    /// A trigger, by oid.
    Trigger(u32),
    /// A rule, by oid; the query of a view is none.
    Rule(u32),
    /// A type of one's own, by oid.
    Type(TypeId),
    /// A function or a procedure, by oid.
    Routine(u32),
    /// An extension, by oid.
    Extension(u32),
    /// A cast that a user has made, by oid.
    Cast(u32),
    /// A collation that a user has made, by oid.
    Collation(u32),
    /// An operator that a user has made, by oid.
    Operator(u32),
    /// Extended statistics, by oid.
    Statistics(u32),
}

/// How one object depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// It must not lose it.
    Normal,
    /// It goes with it.
    Auto,
    /// It is part of it.
    Internal,
    /// It is a member of it, an extension.
    Member,
}

/// One object needs another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// What needs.
    pub dependent: Object,
    /// What is needed.
    pub referenced: Object,
    /// How.
    pub kind: DependencyKind,
}

impl Object {
    /// Its oid; that of its relation, where it is part of one.
    fn oid(self) -> u32 {
        match self {
            Object::Schema(oid) | Object::Relation(oid) => oid,
            Object::Constraint(oid) | Object::Policy(oid) | Object::Routine(oid) => oid,
            Object::Trigger(oid) | Object::Extension(oid) | Object::Cast(oid) => oid,
            Object::Rule(oid) => oid,
            Object::Collation(oid) | Object::Operator(oid) | Object::Statistics(oid) => oid,
            Object::Column(oid, _) | Object::Default(oid, _) => oid,
            Object::Type(id) => id.0,
        }
    }

    /// The oid by which objects are put in order: what was made later has the higher one.
    fn made_when(self, catalog: &Catalog) -> u32 {
        match self {
            Object::Type(id) => catalog.made_when(id),
            _ => self.oid(),
        }
    }

    /// Whether dropping `self` drops `part`, which is no object of its own without it.
    fn holds(self, part: Object) -> bool {
        match (self, part) {
            (Object::Relation(relation), Object::Column(of, _)) => relation == of,
            _ => self == part,
        }
    }

    /// What messages call it.
    pub fn describe(self, catalog: &Catalog, search_path: &[u32]) -> String {
        let named = |oid: u32| relation_text(catalog, search_path, oid);
        match self {
            Object::Schema(oid) => match catalog.schema_by_oid(oid) {
                Some(schema) => format!("schema {}", quote_identifier(&schema.name)),
                None => format!("schema {oid}"),
            },
            Object::Relation(oid) => named(oid),
            Object::Column(oid, place) => {
                format!(
                    "column {} of {}",
                    column_name(catalog, oid, place),
                    named(oid)
                )
            }
            Object::Default(oid, place) => format!(
                "default value for column {} of {}",
                column_name(catalog, oid, place),
                named(oid)
            ),
            Object::Constraint(oid) => match catalog.constraint(oid) {
                Some((table, name)) => {
                    format!(
                        "constraint {} on {}",
                        quote_identifier(name),
                        named(table.oid)
                    )
                }
                None => match catalog.domain_check(oid) {
                    Some((_, check)) => format!("constraint {}", quote_identifier(&check.name)),
                    None => format!("constraint {oid}"),
                },
            },
            Object::Policy(oid) => match catalog.policy(oid) {
                Some((table, policy)) => {
                    format!(
                        "policy {} on {}",
                        quote_identifier(&policy.name),
                        named(table.oid)
                    )
                }
                None => format!("policy {oid}"),
            },
            Object::Trigger(oid) => match catalog.trigger(oid) {
                Some((table, trigger)) => {
                    let name = quote_identifier(&trigger.name);
                    format!("trigger {name} on {}", named(table.oid))
                }
                None => format!("trigger {oid}"),
            },
            Object::Rule(oid) => match catalog.rule(oid) {
                Some((table, rule)) => {
                    let name = quote_identifier(&rule.name);
                    format!("rule {name} on {}", named(table.oid))
                }
                None => format!("rule {oid}"),
            },
            Object::Type(id) => match catalog.shown_type(search_path, id) {
                Some(name) => format!("type {name}"),
                None => format!("type {}", id.0),
            },
            Object::Routine(oid) => match catalog.routine(oid) {
                // Whatever it is, as in PostgreSQL.
                Some(routine) => {
                    format!("function {}", routine_text(catalog, search_path, routine))
                }
                None => format!("function {oid}"),
            },
            Object::Extension(oid) => match catalog.extension_by_oid(oid) {
                Some(extension) => format!("extension {}", extension.name),
                None => format!("extension {oid}"),
            },
            Object::Cast(oid) => match catalog.types_of_cast(oid) {
                Some((source, target)) => {
                    let shown = |ty: TypeId| {
                        let own = catalog.shown_type(search_path, ty);
                        own.unwrap_or_else(|| ty.to_string())
                    };
                    format!("cast from {} to {}", shown(source), shown(target))
                }
                None => format!("cast {oid}"),
            },
            Object::Collation(oid) => match catalog.shown_collation(search_path, oid) {
                Some(name) => format!("collation {name}"),
                None => format!("collation {oid}"),
            },
            Object::Operator(oid) => match catalog.shown_operator(search_path, oid) {
                Some(name) => format!("operator {name}"),
                None => format!("operator {oid}"),
            },
            Object::Statistics(oid) => match catalog.shown_extended(search_path, oid) {
                Some(name) => format!("statistics object {name}"),
                None => format!("statistics object {oid}"),
            },
        }
    }
}

fn column_name(catalog: &Catalog, oid: u32, place: usize) -> String {
    let table = catalog.table_by_oid(oid);
    let column = table.and_then(|table| Some(&table.columns.get(place)?.name));
    let of_type = || {
        let composite = catalog.composite(catalog.composite_of_relation(oid)?.id)?;
        Some(&composite.attributes.get(place)?.name)
    };
    let name = column.or_else(of_type);
    name.map_or_else(|| (place + 1).to_string(), |name| quote_identifier(name))
}

/// `view v`, with its schema unless the search path finds it.
fn relation_text(catalog: &Catalog, search_path: &[u32], oid: u32) -> String {
    let noun = match catalog.table_by_oid(oid) {
        Some(table) => table.kind.noun(),
        None if catalog.composite_of_relation(oid).is_some() => "composite type",
        None => "index",
    };
    match shown_name(catalog, search_path, oid) {
        Some(name) => format!("{noun} {name}"),
        None => format!("relation {oid}"),
    }
}

/// The name of a relation, quoted where it must be, with its schema unless the search path finds
/// it.
pub fn shown_name(catalog: &Catalog, search_path: &[u32], oid: u32) -> Option<String> {
    let (schema, name) = catalog.relation_name(oid)?;
    let found = std::iter::once(PG_CATALOG)
        .chain(search_path.iter().copied())
        .find(|schema| catalog.has_relation(*schema, name));
    match (found == Some(schema), catalog.schema_by_oid(schema)) {
        (false, Some(schema)) => Some(format!(
            "{}.{}",
            quote_identifier(&schema.name),
            quote_identifier(name)
        )),
        _ => Some(quote_identifier(name)),
    }
}

/// `f(integer,text)`, with its schema unless the search path finds it.
pub fn routine_text(catalog: &Catalog, search_path: &[u32], routine: &Routine) -> String {
    let types: Vec<_> = routine
        .input_types()
        .iter()
        .map(|ty| {
            let shown = catalog.shown_type(search_path, *ty);
            shown.unwrap_or_else(|| ty.to_string())
        })
        .collect();
    let name = routine_name(catalog, search_path, routine);
    format!("{name}({})", types.join(","))
}

/// The schemas of a search path in which routines are looked for: temporary ones only their schema finds.
pub fn routine_path(search_path: &[u32]) -> Vec<u32> {
    let schemas = search_path.iter().copied();
    schemas.filter(|oid| !is_local(*oid)).collect()
}

/// Whether a search path finds the routines of a schema.
pub fn finds_routines(search_path: &[u32], schema: u32) -> bool {
    search_path.contains(&schema) && !is_local(schema)
}

/// The name of a routine, with its schema unless the search path finds it.
pub fn routine_name(catalog: &Catalog, search_path: &[u32], routine: &Routine) -> String {
    let name = quote_identifier(&routine.name);
    match catalog.schema_by_oid(routine.schema) {
        Some(schema)
            if routine.schema != PG_CATALOG && !finds_routines(search_path, routine.schema) =>
        {
            format!("{}.{name}", quote_identifier(&schema.name))
        }
        _ => name,
    }
}

impl RelationRef {
    /// The oid of what it refers to.
    pub fn oid(self, catalog: &Catalog) -> u32 {
        match self {
            RelationRef::Table(table) => catalog.tables[table].oid,
            RelationRef::Index(table, index) => catalog.tables[table].indexes[index].oid,
        }
    }
}

impl Catalog {
    /// The table and the name of a constraint.
    pub fn constraint(&self, oid: u32) -> Option<(&Table, &str)> {
        self.tables.iter().find_map(|table| {
            let mut indexes = table.indexes.iter();
            let index = indexes.find(|index| index.constraint == oid && oid != 0);
            let check = table.checks.iter().find(|check| check.oid == oid);
            let foreign = table.foreign_keys.iter().find(|key| key.oid == oid);
            let part = table.foreign_parts.iter().find(|part| part.oid == oid);
            let name = index
                .map(|index| index.name.as_str())
                .or(check.map(|check| check.name.as_str()))
                .or(foreign.map(|key| key.name.as_str()))
                .or(part.map(|part| part.name.as_str()))?;
            Some((&**table, name))
        })
    }

    /// The policy of that oid, with its table.
    pub fn policy(&self, oid: u32) -> Option<(&Arc<Table>, &Policy)> {
        self.tables.iter().find_map(|table| {
            let mut policies = table.policies.iter();
            Some((table, policies.find(|policy| policy.oid == oid)?))
        })
    }

    /// Everything that depends on something, of what users have made.
    pub fn dependencies(&self) -> Vec<Dependency> {
        let mut edges = Edges(Vec::new());
        for table in &self.tables {
            if table.schema != PG_CATALOG {
                table_dependencies(table, &mut edges);
            }
        }
        for made in self.user_types.iter() {
            let (own, schema) = (Object::Type(made.id), Object::Schema(made.schema));
            edges.add(own, DependencyKind::Normal, schema);
            if let Some(array) = made.id.array_of() {
                edges.add(Object::Type(array), DependencyKind::Internal, own);
            }
            if let Some(domain) = made.domain() {
                domain_dependencies(own, domain, &mut edges);
            }
            if let Some(range) = made.id.multirange_range() {
                edges.add(own, DependencyKind::Internal, Object::Type(range));
            }
            if let Some(of) = made.range() {
                edges.add_type(own, made.id.range_element().unwrap_or_default());
                edges.add_collation(own, of.collation);
                if self.routine(of.difference).is_some() {
                    let difference = Object::Routine(of.difference);
                    edges.add(own, DependencyKind::Normal, difference);
                }
            }
            let Some(composite) = self.composite(made.id) else {
                continue;
            };
            let rows = Object::Relation(composite.relation);
            edges.add(rows, DependencyKind::Internal, own);
            for (place, attribute) in composite.attributes.iter().enumerate() {
                if !attribute.name.is_empty() {
                    let column = Object::Column(composite.relation, place);
                    edges.add_type(column, attribute.ty);
                    edges.add_collation(column, attribute.collation);
                }
            }
        }
        for routine in self.routines.iter() {
            routine_dependencies(routine, &mut edges);
        }
        for table in self.tables.iter().filter(|table| table.kind.has_rows()) {
            for index in &table.indexes {
                self.class_dependencies(table, index, &mut edges);
            }
        }
        for extension in &self.extensions {
            let own = Object::Extension(extension.oid);
            let schema = Object::Schema(extension.schema);
            edges.add(own, DependencyKind::Normal, schema);
            for name in extension.requires() {
                if let Some(required) = self.extension(name) {
                    let required = Object::Extension(required.oid);
                    edges.add(own, DependencyKind::Normal, required);
                }
            }
            for member in &extension.members {
                let member = match self.routine(*member) {
                    Some(_) => Object::Routine(*member),
                    None => Object::Relation(*member),
                };
                edges.add(member, DependencyKind::Member, own);
            }
            for id in extension.types() {
                edges.add(Object::Type(*id), DependencyKind::Member, own);
            }
        }
        for cast in self.casts.iter() {
            let own = Object::Cast(cast.oid);
            edges.add_type(own, cast.source);
            edges.add_type(own, cast.target);
            if self.routine(cast.function()).is_some() {
                let function = Object::Routine(cast.function());
                edges.add(own, DependencyKind::Normal, function);
            }
        }
        for collation in self.collations.iter() {
            let schema = Object::Schema(collation.schema);
            edges.add(
                Object::Collation(collation.oid),
                DependencyKind::Normal,
                schema,
            );
        }
        for operator in self.operators.iter() {
            operator_dependencies(operator, &mut edges);
        }
        for made in self.all_extended() {
            extended_dependencies(made, &mut edges);
        }
        // Stored text names relations, routines, casts, collations, operators and constraints alike by oid.
        for edge in &mut edges.0 {
            if let Object::Relation(oid) = edge.referenced {
                if self.routine(oid).is_some() {
                    edge.referenced = Object::Routine(oid);
                } else if self.cast_by_oid(oid).is_some() {
                    edge.referenced = Object::Cast(oid);
                } else if self.collations.iter().any(|known| known.oid == oid) {
                    edge.referenced = Object::Collation(oid);
                } else if self.own_operator(oid).is_some() {
                    edge.referenced = Object::Operator(oid);
                } else if self.table_by_oid(oid).is_none() && self.constraint(oid).is_some() {
                    edge.referenced = Object::Constraint(oid);
                }
            }
        }
        edges.0
    }
}

impl Catalog {
    /// An index needs the extensions that have its operator classes.
    fn class_dependencies(&self, table: &Table, index: &Index, edges: &mut Edges) {
        for place in 0..index.key_count() {
            let ty = index.key_order(table, place).map(|order| order.type_id);
            let class = ty.map_or(0, |ty| index.form.class_for(place, ty));
            let extension = extension_of(class).and_then(|name| self.extension(name));
            if let Some(extension) = extension {
                let extension = Object::Extension(extension.oid);
                let index = Object::Relation(index.oid);
                edges.add(index, DependencyKind::Normal, extension);
            }
        }
    }
}

struct Edges(Vec<Dependency>);

impl Edges {
    fn add(&mut self, dependent: Object, kind: DependencyKind, referenced: Object) {
        self.0.push(Dependency {
            dependent,
            referenced,
            kind,
        });
    }

    /// Whether one leads to an object that a session has to itself; types are no such.
    fn reach_local(&self) -> bool {
        let local = |edge: &Dependency| match edge.referenced {
            Object::Type(_) => false,
            referenced => is_local(referenced.oid()),
        };
        self.0.iter().any(local)
    }

    /// What needs a type of one's own, or the array over one.
    fn add_type(&mut self, dependent: Object, id: TypeId) -> bool {
        if id.is_own() {
            self.add(dependent, DependencyKind::Normal, Object::Type(id));
        }
        id.is_own()
    }

    /// What has a collation of one's own.
    fn add_collation(&mut self, dependent: Object, oid: u32) {
        if oid >= FIRST_USER_OID {
            self.add(dependent, DependencyKind::Normal, Object::Collation(oid));
        }
    }

    /// What stored text names whose uses are kept nowhere else.
    fn add_named(&mut self, dependent: Object, text: &str) {
        let mut named = named_by_oid(text);
        named.sort_unstable();
        named.dedup();
        for oid in named {
            if !self.add_type(dependent, TypeId(oid)) {
                self.add(dependent, DependencyKind::Normal, Object::Relation(oid));
            }
        }
    }

    /// What stored text names.
    fn add_uses(&mut self, dependent: Object, all: &[Uses]) {
        for uses in all {
            if self.add_type(dependent, TypeId(uses.relation)) {
                continue;
            }
            // Its own table takes a policy along without a word.
            if uses.columns.is_empty() {
                let relation = Object::Relation(uses.relation);
                self.add(dependent, DependencyKind::Normal, relation);
            }
            for column in &uses.columns {
                let column = Object::Column(uses.relation, *column);
                self.add(dependent, DependencyKind::Normal, column);
            }
        }
    }
}

/// Whether a table needs something that one session has to itself.
pub(super) fn table_needs_local(table: &Table) -> bool {
    let mut edges = Edges(Vec::new());
    table_dependencies(table, &mut edges);
    edges.reach_local()
}

/// Whether a domain needs something that one session has to itself.
pub(super) fn domain_needs_local(id: TypeId, domain: &Domain) -> bool {
    let mut edges = Edges(Vec::new());
    domain_dependencies(Object::Type(id), domain, &mut edges);
    edges.reach_local()
}

/// Whether a routine needs something that one session has to itself.
pub(super) fn routine_needs_local(routine: &Routine) -> bool {
    if is_local(routine.result_relation) {
        return true;
    }
    let mut edges = Edges(Vec::new());
    routine_dependencies(routine, &mut edges);
    edges.reach_local()
}

/// Whether extended statistics need something that one session has to itself.
pub(super) fn extended_need_local(made: &Extended) -> bool {
    let mut edges = Edges(Vec::new());
    extended_dependencies(made, &mut edges);
    edges.reach_local()
}

/// The expressions and the condition of an index.
fn texts_of(index: &Index) -> Vec<&str> {
    let Some(computed) = &index.computed else {
        return Vec::new();
    };
    let keys = computed.keys.iter().filter_map(|key| match &key.source {
        KeySource::Expression { text, .. } => Some(text.as_str()),
        KeySource::Column(_) => None,
    });
    keys.chain(computed.condition.as_deref()).collect()
}

fn table_dependencies(table: &Table, edges: &mut Edges) {
    use DependencyKind::{Auto, Internal, Normal};
    let own = Object::Relation(table.oid);
    edges.add(own, Normal, Object::Schema(table.schema));
    if let Some(rows) = table.row_type().filter(|_| table.has_row_type()) {
        edges.add(Object::Type(rows), Internal, own);
        if let Some(array) = rows.array_of() {
            edges.add(Object::Type(array), Internal, Object::Type(rows));
        }
    }
    for index in &table.indexes {
        let relation = Object::Relation(index.oid);
        let keyed = match index.constraint {
            0 => relation,
            constraint => {
                edges.add(relation, Internal, Object::Constraint(constraint));
                Object::Constraint(constraint)
            }
        };
        for place in index.uses() {
            edges.add(keyed, Auto, Object::Column(table.oid, place));
        }
        for text in texts_of(index) {
            edges.add_named(keyed, text);
        }
        for collation in &index.form.collations {
            edges.add_collation(keyed, *collation);
        }
    }
    for check in &table.checks {
        let constraint = Object::Constraint(check.oid);
        if check.columns.is_empty() {
            edges.add(constraint, Auto, own);
        }
        for column in &check.columns {
            edges.add(constraint, Auto, Object::Column(table.oid, *column));
        }
        edges.add_named(constraint, &check.condition);
    }
    for key in &table.foreign_keys {
        let constraint = Object::Constraint(key.oid);
        for column in &key.columns {
            edges.add(constraint, Auto, Object::Column(table.oid, *column));
        }
        for column in &key.referenced {
            edges.add(constraint, Normal, Object::Column(key.table, *column));
        }
        edges.add(constraint, Normal, Object::Relation(key.index));
    }
    for part in &table.foreign_parts {
        let constraint = Object::Constraint(part.key);
        edges.add(constraint, Normal, Object::Relation(part.partition));
    }
    for (place, column) in table.columns.iter().enumerate() {
        let default = Object::Default(table.oid, place);
        if !column.dropped {
            edges.add_type(Object::Column(table.oid, place), column.declared().0);
            edges.add_collation(Object::Column(table.oid, place), column.collation);
        }
        if column.default.is_some() && !column.dropped {
            edges.add(default, Auto, Object::Column(table.oid, place));
            for oid in &column.default_uses {
                if edges.add_type(default, TypeId(*oid)) {
                    continue;
                }
                edges.add(default, Normal, Object::Relation(*oid));
            }
            let generated = Object::Column(table.oid, place);
            for from in &column.generated_from {
                edges.add(generated, Normal, Object::Column(table.oid, *from));
            }
            if column.generated {
                edges.add_named(generated, column.default.as_deref().unwrap_or_default());
            }
        }
    }
    if let Some(owner) = table.sequence.as_ref().and_then(|sequence| sequence.owner) {
        let kind = if owner.identity { Internal } else { Auto };
        edges.add(own, kind, Object::Column(owner.table, owner.column));
    }
    if let Some(view) = &table.view {
        edges.add_uses(own, &view.uses);
    }
    for parent in table.inherits_from() {
        edges.add(own, DependencyKind::Normal, Object::Relation(*parent));
    }
    edges.add_type(own, table.of_type);
    if let Some(of) = &table.partition_of {
        edges.add(own, Auto, Object::Relation(of.parent));
        for (own, above) in &of.parts {
            let mut indexes = table.indexes.iter();
            let (part, above) = match indexes.find(|known| known.oid == *own) {
                Some(index) if index.constraint != 0 => {
                    let constraint = Object::Constraint(index.constraint);
                    (constraint, Object::Relation(*above))
                }
                Some(_) => (Object::Relation(*own), Object::Relation(*above)),
                None if table.foreign_keys.iter().any(|key| key.oid == *own) => {
                    (Object::Constraint(*own), Object::Constraint(*above))
                }
                None => (Object::Trigger(*own), Object::Trigger(*above)),
            };
            edges.add(part, Auto, above);
        }
    }
    for part in table.partition_key.iter().flat_map(|key| &key.parts) {
        edges.add_type(own, part.type_id(table));
        if let KeySource::Expression { text, .. } = &part.source {
            edges.add_named(own, text);
        }
    }
    trigger_dependencies(table, edges);
    let rules = table.rules.iter();
    let rules = rules.map(|rule| (Object::Rule(rule.oid), &rule.uses));
    let policies = table.policies.iter();
    let policies = policies.map(|policy| (Object::Policy(policy.oid), &policy.uses));
    for (object, all) in rules.chain(policies) {
        edges.add(object, Auto, own);
        for uses in all {
            // On its own table it depends anyway.
            if uses.relation != table.oid || !uses.columns.is_empty() {
                edges.add_uses(object, std::slice::from_ref(uses));
            }
        }
    }
}

/// What stands in a domain needs; its default and its checks go with what they need, by CASCADE.
fn domain_dependencies(own: Object, domain: &Domain, edges: &mut Edges) {
    edges.add_type(own, domain.over);
    edges.add_collation(own, domain.collation);
    for oid in &domain.default_uses {
        if !edges.add_type(own, TypeId(*oid)) {
            edges.add(own, DependencyKind::Normal, Object::Relation(*oid));
        }
    }
    for check in &domain.checks {
        let constraint = Object::Constraint(check.oid);
        edges.add(constraint, DependencyKind::Auto, own);
        edges.add_named(constraint, &check.condition);
    }
}

fn routine_dependencies(routine: &Routine, edges: &mut Edges) {
    use DependencyKind::Normal;
    let own = Object::Routine(routine.oid);
    edges.add(own, Normal, Object::Schema(routine.schema));
    match (
        routine.result_relation,
        TypeId::own(OwnKind::Row, routine.result_relation),
    ) {
        (0, _) => {}
        (_, Some(rows)) => {
            edges.add_type(own, rows);
        }
        (relation, None) => edges.add(own, Normal, Object::Relation(relation)),
    }
    edges.add_type(own, routine.result);
    if routine.language == Language::Internal {
        edges.add(own, DependencyKind::Internal, Object::Type(routine.result));
    }
    for argument in &routine.arguments {
        edges.add_type(own, argument.type_id);
    }
    edges.add_uses(own, &routine.uses);
    if let Some(parts) = &routine.aggregate {
        edges.add_type(own, parts.state);
        let functions = [parts.transition, parts.last, parts.combine];
        for function in functions.into_iter().filter(|oid| *oid >= FIRST_USER_OID) {
            edges.add(own, Normal, Object::Routine(function));
        }
    }
}

/// What an operator needs; what it is linked to, it does not.
fn operator_dependencies(operator: &OwnOperator, edges: &mut Edges) {
    let own = Object::Operator(operator.oid);
    let schema = Object::Schema(operator.schema);
    edges.add(own, DependencyKind::Normal, schema);
    let types = [operator.left, operator.right, operator.result];
    for (place, ty) in types.iter().enumerate() {
        if !types[..place].contains(ty) {
            edges.add_type(own, *ty);
        }
    }
    if operator.function >= FIRST_USER_OID {
        let function = Object::Routine(operator.function);
        edges.add(own, DependencyKind::Normal, function);
    }
}

/// Extended statistics go with any of their columns, and with their table if they have none.
fn extended_dependencies(made: &Extended, edges: &mut Edges) {
    use DependencyKind::{Auto, Normal};
    let own = Object::Statistics(made.oid);
    edges.add(own, Normal, Object::Schema(made.schema));
    let mut places = made.columns.clone();
    places.extend(made.expressions.iter().flat_map(|known| &known.uses));
    places.sort_unstable();
    places.dedup();
    for place in &places {
        edges.add(own, Auto, Object::Column(made.table, *place));
    }
    if places.is_empty() {
        edges.add(own, Auto, Object::Relation(made.table));
    }
    for known in &made.expressions {
        edges.add_named(own, &known.text);
    }
}

fn trigger_dependencies(table: &Table, edges: &mut Edges) {
    use DependencyKind::{Auto, Normal};
    for trigger in &table.triggers {
        let object = Object::Trigger(trigger.oid);
        edges.add(object, Auto, Object::Relation(table.oid));
        if built_in_trigger(trigger.function).is_none() {
            edges.add(object, Normal, Object::Routine(trigger.function));
        }
        let condition = trigger.condition.as_ref();
        let looked_at = condition.map_or(&[][..], |condition| &condition.columns);
        for column in trigger.columns.iter().chain(looked_at) {
            edges.add(object, Normal, Object::Column(table.oid, *column));
        }
        if let Some(condition) = condition {
            edges.add_named(object, &condition.text);
        }
        let from = trigger
            .constraint
            .as_ref()
            .map_or(0, |constraint| constraint.table);
        if from != 0 {
            edges.add(object, Auto, Object::Relation(from));
        }
    }
}

/// What a DROP takes with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Everything that goes, dependents first.
    pub objects: Vec<Object>,
    /// What CASCADE drops and the user did not name, in the order in which messages list it.
    pub cascaded: Vec<String>,
}

/// At most so many objects are listed in a message.
const LISTED_MAX: usize = 100;

/// One object on the way through the graph.
struct Visit<'c> {
    catalog: &'c Catalog,
    search_path: &'c [u32],
    edges: Vec<Dependency>,
    roots: &'c [Object],
    stack: Vec<Object>,
    seen: HashSet<Object>,
    /// What goes, dependents first: why, and the message's line if it is one.
    out: Vec<(Object, Reached)>,
}

/// How an object was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Named,
    Silently,
    Because(Object),
}

/// What dropping these objects drops.
///
/// # Errors
/// 2BP01 when something else needs one of them and it is not CASCADE, or when one is part of
/// something that must be dropped instead.
pub fn plan_drop(
    catalog: &Catalog,
    search_path: &[u32],
    roots: &[Object],
    cascade: bool,
) -> Result<Dropped> {
    let mut visit = Visit {
        catalog,
        search_path,
        edges: catalog.dependencies(),
        roots,
        stack: Vec::new(),
        seen: HashSet::default(),
        out: Vec::new(),
    };
    for root in roots {
        visit.object(*root, Reached::Named)?;
    }
    let describe = |object: Object| object.describe(catalog, search_path);
    let mut lines = Vec::new();
    let mut cascaded = Vec::new();
    let whole = |object: &Object| match object {
        Object::Column(oid, _) => visit.seen.contains(&Object::Relation(*oid)),
        _ => false,
    };
    for (object, reached) in visit.out.iter().rev() {
        // A column goes with its table, and without a word.
        if let (Reached::Because(needed), false) = (reached, whole(object)) {
            lines.push(format!(
                "{} depends on {}",
                describe(*object),
                describe(*needed)
            ));
            cascaded.push(describe(*object));
        }
    }
    if !lines.is_empty() && !cascade {
        let message = match roots {
            [one] => format!(
                "cannot drop {} because other objects depend on it",
                describe(*one)
            ),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        return Err(Error::new(SqlState::of("2BP01"), message)
            .with_detail(listed(&lines))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    let kept = visit.out.iter().filter(|entry| !whole(&entry.0));
    Ok(Dropped {
        objects: kept.map(|entry| entry.0).collect(),
        cascaded,
    })
}

/// Lines of a detail, not too many of them.
pub fn listed(lines: &[String]) -> String {
    let shown = lines.len().min(LISTED_MAX);
    let mut text = lines[..shown].join("\n");
    if lines.len() > shown {
        let more = lines.len() - shown;
        let noun = if more == 1 { "object" } else { "objects" };
        text.push_str(&format!(
            "\nand {more} other {noun} (see server log for list)"
        ));
    }
    text
}

impl Visit<'_> {
    fn object(&mut self, object: Object, reached: Reached) -> Result<()> {
        if self.stack.contains(&object) {
            return Ok(());
        }
        if self.seen.contains(&object) {
            self.reached_again(object, reached);
            return Ok(());
        }
        if let Some(whole) = self.whole_of(object) {
            if reached == Reached::Named {
                let describe = |object: Object| object.describe(self.catalog, self.search_path);
                let (part, whole) = (describe(object), describe(whole));
                let message = format!("cannot drop {part} because {whole} requires it");
                return Err(Error::new(SqlState::of("2BP01"), message)
                    .with_hint(format!("You can drop {whole} instead.")));
            }
            return self.object(whole, reached);
        }
        self.stack.push(object);
        let mut next: Vec<_> = self
            .edges
            .iter()
            .filter(|edge| object.holds(edge.referenced))
            .map(|edge| (edge.dependent, edge.kind))
            .collect();
        // Newer objects first.
        let catalog = self.catalog;
        next.sort_by_key(|(dependent, _)| std::cmp::Reverse(dependent.made_when(catalog)));
        for (dependent, kind) in next {
            let reached = match kind {
                _ if self.roots.contains(&dependent) => Reached::Named,
                DependencyKind::Normal => Reached::Because(object),
                _ => Reached::Silently,
            };
            self.object(dependent, reached)?;
        }
        self.stack.pop();
        self.seen.insert(object);
        self.out.push((object, reached));
        Ok(())
    }

    /// What goes silently for one reason goes silently for all.
    fn reached_again(&mut self, object: Object, reached: Reached) {
        let silent = matches!(reached, Reached::Silently | Reached::Named);
        let known = self.out.iter_mut().find(|known| known.0 == object);
        if let (Some(known), true) = (known, silent) {
            known.1 = reached;
        }
    }

    /// The object that this one is a part of, unless that is being dropped.
    fn whole_of(&self, object: Object) -> Option<Object> {
        let part = [DependencyKind::Internal, DependencyKind::Member];
        let is_part = |edge: &&Dependency| edge.dependent == object && part.contains(&edge.kind);
        let edge = self.edges.iter().find(is_part)?;
        let going = |known: &Object| known.holds(edge.referenced);
        let gone = self.stack.iter().any(going) || self.seen.iter().any(going);
        (!gone && !self.roots.iter().any(going)).then_some(edge.referenced)
    }
}
