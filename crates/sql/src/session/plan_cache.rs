//! Plans by the shape of their text, for the sessions of one reactor.
//!
//! ```text
//! select v from t where k = 17     miss: parse, bind, keep   plan: … k = ⟨literal 0⟩
//! select v from t where k = 4711   hit: literal 0 = 4711     neither parsed nor bound
//! select v from t where k = 5000000000   another plan: the literal is no int4
//! ```
//! An entry holds for one *world*: whatever besides the text and the catalog has a say in what a
//! statement means, that is the database, the role, the search path and the settings by which
//! constants are read. It holds for one catalog version: with the first look-up at another, all
//! entries go.
//!
//! # Invariants
//! - What a hit gives is what parsing and binding the text would give, up to the values of literals
//!   that the plan leaves open ([`planner::bind::literals`]). A literal that cannot be read as the
//!   plan wants it is a miss, so that the error comes from where it always does.
//! - At most [`PLANS_MAX`] entries, and [`PLANS_TEXT_BYTES_MAX`]. Beyond, the quarter that was used
//!   least lately goes.
//!
//! # What it leaves out
//! Utility statements, of which only short texts are kept with their parse trees (`BEGIN`,
//! `COMMIT`), and texts without a shape ([`syntax::parser::shape`]). A transaction that has
//! changed the catalog plans for itself.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use base::engine::{CatalogVersion, Engine};
use base::hash::HashMap;

use execution::state::prepared::Planned;
use planner::plan::Taken;
use syntax::parser::{Literal, LiteralKind, Shape, Statement};
use types::{self, Datum, EvalContext, TypeId, NO_TYPMOD};

/// Plans that a reactor keeps.
pub const PLANS_MAX: usize = 1_024;

/// Bytes of the texts of these plans. A plan with its parse tree takes some fifty times its text.
pub const PLANS_TEXT_BYTES_MAX: usize = 1 << 20;

/// Parse trees of other statements that a reactor keeps, by their text.
pub const PARSED_MAX: usize = 256;

/// Longer texts of other statements are parsed each time.
pub const PARSED_BYTES_MAX: usize = 64;

/// Plans of one shape that differ in their fixed literals.
const PLANS_OF_SHAPE_MAX: usize = 16;

/// Worlds that are told apart; beyond, everything is forgotten.
const WORLDS_MAX: usize = 1_024;

/// Names a world within one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct World(u64);

/// A plan that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// The plan.
    pub planned: Rc<Planned>,
    /// The statement it was made of, whose literals may have other values.
    pub statement: Statement,
    /// The types of its parameters.
    pub params: Rc<[TypeId]>,
}

/// What an entry wants of one literal.
#[derive(Debug)]
enum Slot {
    /// A value of a type.
    Open { ty: TypeId, negated: bool },
    /// The very same text.
    Fixed(Box<str>),
}

#[derive(Debug)]
struct Entry {
    world: World,
    /// The parameter types that the client gave; none in the simple protocol, which has none.
    given: Option<Rc<[TypeId]>>,
    slots: Box<[Slot]>,
    kept: Rc<Kept>,
    used: u64,
}

#[derive(Debug, Default)]
struct Inner {
    version: CatalogVersion,
    shapes: HashMap<Box<[u8]>, Vec<Entry>>,
    count: usize,
    /// Bytes of their texts.
    bytes: usize,
    /// Counts look-ups.
    clock: u64,
    worlds: HashMap<String, World>,
    next_world: u64,
    parsed: HashMap<Box<str>, Statement>,
}

/// The plans of a reactor.
#[derive(Debug, Default)]
pub(super) struct PlanCache {
    inner: RefCell<Inner>,
}

/// A cache, and the engine of the node whose sessions share it.
type OfEngine = (Rc<PlanCache>, Weak<Engine>);

thread_local! {
    /// The caches of this thread: one for each node that has had sessions on it.
    static CACHES: RefCell<Vec<OfEngine>> = const { RefCell::new(Vec::new()) };
}

impl PlanCache {
    /// The cache that this thread's sessions of a node share.
    pub(super) fn of_thread(engine: &Arc<Engine>) -> Rc<PlanCache> {
        CACHES.with(|caches| {
            let mut caches = caches.borrow_mut();
            caches.retain(|known| known.1.strong_count() > 0);
            let engine = Arc::downgrade(engine);
            if let Some(known) = caches.iter().find(|known| known.1.ptr_eq(&engine)) {
                return known.0.clone();
            }
            let cache = Rc::new(PlanCache::default());
            caches.push((cache.clone(), engine));
            cache
        })
    }

    /// How many plans are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.inner.borrow().count
    }

    /// The world of that description.
    pub(super) fn world(&self, description: &str) -> World {
        let inner = &mut *self.inner.borrow_mut();
        if let Some(world) = inner.worlds.get(description) {
            return *world;
        }
        if inner.worlds.len() >= WORLDS_MAX {
            inner.worlds.clear();
            inner.clear();
        }
        inner.next_world += 1;
        let world = World(inner.next_world);
        inner.worlds.insert(description.to_owned(), world);
        world
    }

    /// The plan for a text of this shape, if there is one; `values` receives the values of the
    /// literals that it leaves open.
    pub(super) fn find(
        &self,
        (text, shape): (&str, &Shape),
        version: CatalogVersion,
        world: World,
        given: Option<&[TypeId]>,
        eval: &EvalContext,
        values: &mut Vec<Datum>,
    ) -> Option<Rc<Kept>> {
        let inner = &mut *self.inner.borrow_mut();
        if inner.version != version {
            inner.clear();
            inner.version = version;
            return None;
        }
        inner.clock += 1;
        let clock = inner.clock;
        let entries = inner.shapes.get_mut(shape.key.as_slice())?;
        let entry = entries.iter_mut().find(|entry| {
            entry.world == world
                && entry.given.as_deref() == given
                && entry.read(text, &shape.literals, eval, values)
        })?;
        entry.used = clock;
        Some(entry.kept.clone())
    }

    /// Keeps a plan; `taken` says what was made of each literal.
    pub(super) fn keep(
        &self,
        (text, shape): (&str, &Shape),
        world: World,
        given: Option<&[TypeId]>,
        taken: &[Option<Taken>],
        kept: &Rc<Kept>,
    ) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.version != kept.planned.catalog.version {
            return;
        }
        inner.make_room();
        let literals = shape.literals.iter().zip(taken);
        let slots = literals
            .map(|(literal, taken)| match taken {
                Some(taken) => Slot::Open {
                    ty: taken.ty,
                    negated: taken.negated,
                },
                None => Slot::Fixed(literal.text(text).into()),
            })
            .collect();
        let entry = Entry {
            world,
            given: given.map(Rc::from),
            slots,
            kept: kept.clone(),
            used: inner.clock,
        };
        let entries = inner.shapes.entry(shape.key.as_slice().into()).or_default();
        if entries.len() >= PLANS_OF_SHAPE_MAX {
            let oldest = (0..entries.len()).min_by_key(|place| entries[*place].used);
            if let Some(oldest) = oldest {
                let gone = entries.swap_remove(oldest);
                inner.count -= 1;
                inner.bytes -= gone.bytes();
            }
        }
        inner.count += 1;
        inner.bytes += entry.bytes();
        entries.push(entry);
    }

    /// The parse tree of a short text that is a utility statement, if it is kept.
    pub(super) fn parsed(&self, text: &str) -> Option<Statement> {
        match text.len() {
            0..=PARSED_BYTES_MAX => self.inner.borrow().parsed.get(text).cloned(),
            _ => None,
        }
    }

    /// Keeps the parse tree of a utility statement whose text is short.
    pub(super) fn keep_parsed(&self, text: &str, statement: &Statement) {
        if text.len() > PARSED_BYTES_MAX {
            return;
        }
        let parsed = &mut self.inner.borrow_mut().parsed;
        if parsed.len() >= PARSED_MAX {
            parsed.clear();
        }
        parsed.insert(text.into(), statement.clone());
    }
}

impl Inner {
    fn clear(&mut self) {
        self.shapes.clear();
        self.count = 0;
        self.bytes = 0;
    }

    /// Forgets the quarter of the entries that was used least lately, once there are too many.
    fn make_room(&mut self) {
        if self.count < PLANS_MAX && self.bytes < PLANS_TEXT_BYTES_MAX {
            return;
        }
        let entries = self.shapes.values().flatten();
        let mut used: Vec<_> = entries.map(|entry| entry.used).collect();
        let quarter = used.len() / 4;
        let limit = *used.select_nth_unstable(quarter).1;
        self.shapes.retain(|_, entries| {
            entries.retain(|entry| entry.used > limit);
            !entries.is_empty()
        });
        let left = || self.shapes.values().flatten();
        (self.count, self.bytes) = (left().count(), left().map(Entry::bytes).sum());
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.kept.statement.text().len()
    }

    /// Whether the plan serves these literals; reads their values.
    fn read(
        &self,
        text: &str,
        literals: &[Literal],
        eval: &EvalContext,
        values: &mut Vec<Datum>,
    ) -> bool {
        values.clear();
        literals.iter().zip(&self.slots).all(|(literal, slot)| {
            let value = match slot {
                Slot::Fixed(wanted) if **wanted == *literal.text(text) => Some(Datum::Null),
                Slot::Fixed(_) => None,
                Slot::Open { ty, negated } => value_of(text, *literal, *ty, *negated, eval),
            };
            value.map(|value| values.push(value)).is_some()
        })
    }
}

/// The value of a literal as a constant of a type, if it is one.
pub(super) fn value_of(
    text: &str,
    literal: Literal,
    ty: TypeId,
    negated: bool,
    eval: &EvalContext,
) -> Option<Datum> {
    let own = literal.text(text);
    match literal.kind {
        LiteralKind::String => {
            if ty == TypeId::TEXT && !own.contains('\'') {
                return Some(Datum::text(own));
            }
            let plain = own.replace("''", "'");
            types::input(eval, ty, NO_TYPMOD, &plain).ok()
        }
        LiteralKind::Number => number(own, ty, negated, eval),
    }
}

/// A number is int4 if it fits, else int8 if it fits, else numeric.
fn number(digits: &str, ty: TypeId, negated: bool, eval: &EvalContext) -> Option<Datum> {
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let whole = match is_whole {
        true => digits.bytes().try_fold(0_i64, |value, byte| {
            value.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))
        }),
        false => None,
    };
    // Counted downwards, because there is one more below zero.
    let whole = match negated {
        true => whole,
        false => whole.and_then(i64::checked_neg),
    };
    let small = whole.and_then(|value| i32::try_from(value).ok());
    match (ty, small, whole) {
        (TypeId::INT4, Some(value), _) => Some(Datum::Int4(value)),
        (TypeId::INT8, None, Some(value)) => Some(Datum::Int8(value)),
        (TypeId::NUMERIC, None, None) => {
            let signed = match negated {
                true => format!("-{digits}"),
                false => digits.to_owned(),
            };
            types::input(eval, ty, NO_TYPMOD, &signed).ok()
        }
        _ => None,
    }
}
