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
//!
//! # Who must see to what
//! Whoever adds a reference to a descriptor adds its edge in [`Catalog::dependencies`].

use std::sync::Arc;

use base::hash::HashSet;
use base::{Error, Result, SqlState};

use super::{Catalog, Policy, RelationRef, Table, Uses, PG_CATALOG};
use functions::strings::quote_identifier;

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
    /// The oid by which objects are put in order.
    fn oid(self) -> u32 {
        match self {
            Object::Schema(oid) | Object::Relation(oid) => oid,
            Object::Constraint(oid) | Object::Policy(oid) => oid,
            Object::Column(oid, _) | Object::Default(oid, _) => oid,
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
                None => format!("constraint {oid}"),
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
        }
    }
}

fn column_name(catalog: &Catalog, oid: u32, place: usize) -> String {
    let column = catalog
        .table_by_oid(oid)
        .and_then(|table| table.columns.get(place));
    column.map_or_else(
        || (place + 1).to_string(),
        |column| quote_identifier(&column.name),
    )
}

/// `view v`, with its schema unless the search path finds it.
fn relation_text(catalog: &Catalog, search_path: &[u32], oid: u32) -> String {
    let noun = match catalog.table_by_oid(oid) {
        Some(table) => table.kind.noun(),
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
        .find(|schema| catalog.relation(*schema, name).is_some());
    match (found == Some(schema), catalog.schema_by_oid(schema)) {
        (false, Some(schema)) => Some(format!(
            "{}.{}",
            quote_identifier(&schema.name),
            quote_identifier(name)
        )),
        _ => Some(quote_identifier(name)),
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
            let name = index
                .map(|index| index.name.as_str())
                .or(check.map(|check| check.name.as_str()))
                .or(foreign.map(|key| key.name.as_str()))?;
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
        edges.0
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

    /// What stored text names.
    fn add_uses(&mut self, dependent: Object, all: &[Uses]) {
        for uses in all {
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

fn table_dependencies(table: &Table, edges: &mut Edges) {
    use DependencyKind::{Auto, Internal, Normal};
    let own = Object::Relation(table.oid);
    edges.add(own, Normal, Object::Schema(table.schema));
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
    }
    for check in &table.checks {
        let constraint = Object::Constraint(check.oid);
        if check.columns.is_empty() {
            edges.add(constraint, Auto, own);
        }
        for column in &check.columns {
            edges.add(constraint, Auto, Object::Column(table.oid, *column));
        }
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
    for (place, column) in table.columns.iter().enumerate() {
        let default = Object::Default(table.oid, place);
        if column.default.is_some() && !column.dropped {
            edges.add(default, Auto, Object::Column(table.oid, place));
            for oid in &column.default_uses {
                edges.add(default, Normal, Object::Relation(*oid));
            }
            for from in &column.generated_from {
                let generated = Object::Column(table.oid, place);
                edges.add(generated, Normal, Object::Column(table.oid, *from));
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
    for policy in &table.policies {
        let object = Object::Policy(policy.oid);
        edges.add(object, Auto, own);
        for uses in &policy.uses {
            // On its own table it depends anyway.
            if uses.relation != table.oid || !uses.columns.is_empty() {
                edges.add_uses(object, std::slice::from_ref(uses));
            }
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
        next.sort_by_key(|(dependent, _)| std::cmp::Reverse(dependent.oid()));
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
        let internal =
            |edge: &&Dependency| edge.dependent == object && edge.kind == DependencyKind::Internal;
        let edge = self.edges.iter().find(internal)?;
        let going = |known: &Object| known.holds(edge.referenced);
        let gone = self.stack.iter().any(going) || self.seen.iter().any(going);
        (!gone && !self.roots.iter().any(going)).then_some(edge.referenced)
    }
}
