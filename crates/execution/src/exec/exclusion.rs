//! Exclusion constraints: whether a row conflicts with another, and who waits for whom
//! ([`catalog::exclusion`]).
//!
//! ```text
//! insert (5, [3,6))    announce 5│[3,6)
//!                      what others had announced of 5 before: 5│[1,4) overlaps: wait, look again
//!                      the entries of 5, newest versions:     [1,4) is there now: 23P01
//! ```
//!
//! # Why no two rows that conflict are committed
//! Whoever writes a row announces it first ([`base::engine::Locking::announce`]), until its transaction
//! ends, and then looks for others: first among what is announced, then among the rows that are there.
//! Of two that conflict, the later one to announce finds the other among the announced, if that one's
//! transaction goes on, or among the rows, if it has committed. It looks at the newest versions, at
//! every isolation level. A row that another transaction is about to delete or to change is waited for
//! by its own lock. Announcements are locks, of one term as the commit is, so another leader makes no
//! difference; a rollback to a savepoint takes them back with what was written.
//!
//! Where the constraint can be deferred, nobody waits when a row is written: an event is queued if
//! something is in its way, and looked at when the statement, or the transaction, ends.
//!
//! # How far is looked
//! Only among the entries with the same keys under `=`, which come first in them. Of a constraint that
//! cannot be deferred, the rows that are there conflict with none of one another: so ranges that must
//! not overlap lie one behind the other, and it is the two neighbours alone that a new one may overlap.
//! Of one that can, all entries with the same keys are looked at.

use std::rc::Rc;
use std::sync::Arc;

use base::codec::{put_bytes, Reader};
use base::engine::{Announced, Direction, RowBatch, RowLock, Ticket};
use base::{Error, Key, KeyRange, Result, SqlState};

use super::foreign::newest_row;
use super::new_row::{about, is_shown, key_text};
use super::{entries, events, rows, Exec};
use crate::exec::program::Evaluate;
use crate::state::constraints::Event;
use catalog::{Index, Table};
use planner::plan::{EntryRule, ExclusionRule, Search};
use types::{Datum, TypeId, NO_TYPMOD};

/// Values of keys with their types, in the order of the index's keys.
type Values = Vec<(TypeId, Datum)>;

/// What a row conflicts with.
#[derive(Debug)]
pub struct Met {
    /// The key of the other row; none if its transaction has not ended.
    pub key: Option<Key>,
    /// The values of its keys.
    pub values: Values,
}

/// How a row is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It is about to be written: who is in doubt is waited for.
    Written,
    /// It was written, and is looked at again later if anything may be in its way.
    First,
    /// It is time to say.
    Due,
    /// It is there already, and nobody else writes the table.
    Built,
}

/// A row under one constraint.
struct Candidate<'r> {
    table: &'r Table,
    index: &'r Index,
    rule: &'r EntryRule,
    exclusion: &'r ExclusionRule,
    /// The key of the row.
    row: &'r [u8],
    /// The values of its keys, as its entry has them.
    values: Values,
    /// Its entry, without the key of the row.
    entry: Key,
    /// How much of that are keys with `=`.
    equal: usize,
}

impl<'r> Candidate<'r> {
    /// None if the row conflicts with none, whatever others there are.
    fn of(
        rule: &'r EntryRule,
        table: &'r Table,
        (key, row): (&'r [u8], &[Datum]),
        cx: &mut Exec<'_>,
    ) -> Result<Option<Candidate<'r>>> {
        let Some(exclusion) = &rule.exclusion else {
            return Ok(None);
        };
        if let Some(condition) = &rule.condition {
            if !condition.test(cx, row)? {
                return Ok(None);
            }
        }
        let values = entries::values(rule, row, cx)?;
        if values.iter().any(|(_, value)| value.is_null()) {
            return Ok(None);
        }
        let (mut entry, mut equal) = (Key::new(), 0);
        for (place, ((_, value), (_, order))) in values.iter().zip(&rule.keys).enumerate() {
            rows::put_key(*order, value, &mut entry)?;
            if place + 1 == exclusion.equal {
                equal = entry.len();
            }
        }
        let index = &table.indexes[rule.index];
        entries::check_length(index, &entry)?;
        Ok(Some(Candidate {
            table,
            index,
            rule,
            exclusion,
            row: key,
            values,
            entry,
            equal,
        }))
    }

    fn prefix(&self) -> &[u8] {
        &self.entry[..self.equal]
    }

    fn announce(&self, cx: &mut Exec<'_>) -> Result<Ticket> {
        let mut note = Vec::new();
        for (ty, value) in &self.values[self.exclusion.equal..] {
            let mut bytes = Vec::new();
            types::encode_column(*ty, NO_TYPMOD, value, &mut bytes)?;
            put_bytes(&mut note, &bytes);
        }
        let key = [&self.entry, self.row].concat();
        cx.host.txn().announce(self.index.tree, &key, &note)
    }

    /// Whether it conflicts with a row whose keys with `=` are the same.
    fn conflicts_with(&self, others: &[(TypeId, Datum)], cx: &mut Exec<'_>) -> Result<bool> {
        let both = others.iter().chain(&self.values);
        let both: Vec<_> = both.map(|(_, value)| value.clone()).collect();
        for holds in &self.exclusion.others {
            if !holds.test(cx, &both)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The values of what another transaction has announced, if it conflicts.
    fn met_announced(&self, other: &Announced, cx: &mut Exec<'_>) -> Result<Option<Met>> {
        cx.tick()?;
        let Some(note) = &other.note else {
            return Ok(Some(Met {
                key: None,
                values: Values::new(),
            }));
        };
        let mut reader = Reader::new(note);
        let mut values = self.values[..self.exclusion.equal].to_vec();
        for (ty, _) in &self.values[self.exclusion.equal..] {
            let value = types::decode_column(*ty, NO_TYPMOD, reader.bytes()?)?;
            values.push((*ty, value));
        }
        let conflicts = self.conflicts_with(&values, cx)?;
        Ok(conflicts.then(|| Met {
            key: None,
            values: self.shown(values),
        }))
    }

    /// Values in the order of the index's keys.
    fn shown(&self, values: Values) -> Values {
        let mut placed: Vec<_> = self.index.stored_order().into_iter().zip(values).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, value)| value).collect()
    }

    /// A row that is there and conflicts.
    fn met_row(&self, search: Search, cx: &mut Exec<'_>) -> Result<Option<Met>> {
        use Direction::{Backward, Forward};
        let all = KeyRange::prefix(self.prefix());
        match search {
            Search::All => self.met_in(&all, Forward, false, cx),
            Search::Any => self.met_in(&all, Forward, true, cx),
            Search::Neighbours => {
                let before = KeyRange {
                    start: all.start,
                    end: Some(self.entry.clone()),
                };
                if let Some(met) = self.met_in(&before, Backward, true, cx)? {
                    return Ok(Some(met));
                }
                let after = KeyRange {
                    start: self.entry.clone(),
                    end: all.end,
                };
                self.met_in(&after, Forward, true, cx)
            }
        }
    }

    /// The first row that conflicts among some entries; or only whether the first one does.
    fn met_in(
        &self,
        range: &KeyRange,
        direction: Direction,
        first: bool,
        cx: &mut Exec<'_>,
    ) -> Result<Option<Met>> {
        let (mut batch, tree) = (RowBatch::default(), self.index.tree);
        let most = if first { 1 } else { usize::MAX };
        let mut rest = Some(range.clone());
        while let Some(range) = rest {
            let txn = cx.host.txn();
            rest = txn.scan_newest_in(tree, &range, direction, most, &mut batch)?;
            for entry in batch.iter() {
                cx.tick()?;
                let key = rows::row_key_of_entry(self.table, self.index, entry)?;
                if key == self.row {
                    continue;
                }
                let Some(values) = self.values_of(entry.0, key, cx)? else {
                    continue;
                };
                let has_null = values.iter().any(|(_, value)| value.is_null());
                if !has_null && self.conflicts_with(&values, cx)? {
                    return Ok(Some(Met {
                        key: Some(key.to_vec()),
                        values: self.shown(values),
                    }));
                }
                if first {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// The values of a row that has an entry; none if it has changed since, when whoever has changed it
    /// has announced what it has become.
    fn values_of(&self, entry: &[u8], key: &[u8], cx: &mut Exec<'_>) -> Result<Option<Values>> {
        let Some(row) = newest_row(self.table, key, cx)? else {
            return Ok(None);
        };
        let values = entries::values(self.rule, &row, cx)?;
        let mut own = Key::new();
        for ((_, value), (_, order)) in values.iter().zip(&self.rule.keys) {
            rows::put_key(*order, value, &mut own)?;
        }
        own.extend_from_slice(key);
        Ok((own == entry).then_some(values))
    }

    /// What it conflicts with.
    fn look(&self, look: Look, cx: &mut Exec<'_>) -> Result<Option<Met>> {
        let search = match self.exclusion.deferrable && look != Look::Built {
            true => Search::All,
            false => self.exclusion.search,
        };
        if look == Look::Built {
            return self.met_row(search, cx);
        }
        let ticket = self.announce(cx)?;
        let met = self.look_announced((look, search), ticket, cx)?;
        if met.is_some() && look == Look::Written {
            cx.host.txn().withdraw(ticket);
        }
        Ok(met)
    }

    fn look_announced(
        &self,
        (look, search): (Look, Search),
        ticket: Ticket,
        cx: &mut Exec<'_>,
    ) -> Result<Option<Met>> {
        let mut waited_for = None;
        'again: loop {
            cx.tick()?;
            let txn = cx.host.txn();
            for other in txn.announced(self.index.tree, self.prefix(), ticket)? {
                let Some(met) = self.met_announced(&other, cx)? else {
                    continue;
                };
                if look == Look::First {
                    return Ok(Some(met));
                }
                cx.host.txn().wait_for_announced(&other)?;
                continue 'again;
            }
            let Some(met) = self.met_row(search, cx)? else {
                return Ok(None);
            };
            if look == Look::First || met.key == waited_for {
                return Ok(Some(met));
            }
            // Whoever is about to take it away or to change it has it locked.
            if let Some(key) = &met.key {
                let tree = self.table.tree;
                cx.host.txn().wait_for_key(tree, key, RowLock::Share)?;
            }
            waited_for = met.key;
        }
    }
}

/// What a row conflicts with that is about to be written, under a constraint that cannot be deferred.
///
/// # Errors
/// What computing its keys raises; 55P03; 40P01.
pub(super) fn met(
    rule: &EntryRule,
    table: &Table,
    row_key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Met>> {
    if rule.exclusion.as_ref().is_none_or(|own| own.deferrable) {
        return Ok(None);
    }
    match Candidate::of(rule, table, (row_key, row), cx)? {
        Some(candidate) => candidate.look(Look::Written, cx),
        None => Ok(None),
    }
}

/// A row was written: queues what a constraint that can be deferred has to look at. `old` is what it
/// was before, with its key.
///
/// # Errors
/// As [`met`]; 53200.
pub(super) fn written(
    rules: &Rc<[EntryRule]>,
    place: usize,
    table: &Arc<Table>,
    old: Option<(&[u8], &[Datum])>,
    (key, row): (&[u8], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    let rule = &rules[place];
    let Some(candidate) = Candidate::of(rule, table, (key, row), cx)? else {
        return Ok(());
    };
    if let Some(old) = old.filter(|(old_key, _)| *old_key == key) {
        let before = Candidate::of(rule, table, old, cx)?;
        if before.is_some_and(|before| before.entry == candidate.entry) {
            return Ok(());
        }
    }
    if candidate.look(Look::First, cx)?.is_none() {
        return Ok(());
    }
    let event = Event::Excluded {
        table: table.clone(),
        rules: rules.clone(),
        rule: place,
        row: key.to_vec(),
    };
    match cx
        .host
        .shared()
        .constraints
        .is_deferred_index(candidate.index)
    {
        true => cx.defer(event),
        false => events::wait(event, cx),
    }
}

/// Looks whether a row that was written conflicts with another. If it is gone, there is nothing to look
/// for.
///
/// # Errors
/// 23P01.
pub(super) fn check(table: &Table, rule: &EntryRule, row: &[u8], cx: &mut Exec<'_>) -> Result<()> {
    let Some(now) = newest_row(table, row, cx)? else {
        return Ok(());
    };
    let Some(candidate) = Candidate::of(rule, table, (row, &now), cx)? else {
        return Ok(());
    };
    match candidate.look(Look::Due, cx)? {
        None => Ok(()),
        Some(met) => {
            let values = candidate.shown(candidate.values.clone());
            Err(conflicting(
                table,
                candidate.index,
                &values,
                &met.values,
                cx,
            ))
        }
    }
}

/// Looks at a row of a table that nobody else writes.
///
/// # Errors
/// 23P01 if it conflicts with another.
pub fn check_built(
    rule: &EntryRule,
    table: &Table,
    key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    let Some(candidate) = Candidate::of(rule, table, (key, row), cx)? else {
        return Ok(());
    };
    let Some(met) = candidate.look(Look::Built, cx)? else {
        return Ok(());
    };
    let index = candidate.index;
    let message = format!("could not create exclusion constraint \"{}\"", index.name);
    let own = key_text(table, index, &candidate.shown(candidate.values.clone()), cx);
    let other = key_text(table, index, &met.values, cx);
    let detail = format!("{own} conflicts with {}.", lower(&other));
    let mut error = Error::new(SqlState::EXCLUSION_VIOLATION, message).with_detail(detail);
    error.fields_mut().constraint = Some(index.name.clone());
    Err(about(error, table, cx))
}

/// The values of a row's keys, in the order of the index's.
///
/// # Errors
/// What computing them raises.
pub(super) fn values(
    rule: &EntryRule,
    index: &Index,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Values> {
    let values = entries::values(rule, row, cx)?;
    let mut placed: Vec<_> = index.stored_order().into_iter().zip(values).collect();
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, value)| value).collect())
}

/// 23P01 for a row that conflicts with another.
pub(super) fn conflicting(
    table: &Table,
    index: &Index,
    values: &[(TypeId, Datum)],
    others: &[(TypeId, Datum)],
    cx: &Exec<'_>,
) -> Error {
    let message = format!(
        "conflicting key value violates exclusion constraint \"{}\"",
        index.name
    );
    let detail = match is_shown(table, index, cx) {
        true => format!(
            "{} conflicts with existing {}.",
            key_text(table, index, values, cx),
            lower(&key_text(table, index, others, cx))
        ),
        false => "Key conflicts with existing key.".to_owned(),
    };
    let mut error = Error::new(SqlState::EXCLUSION_VIOLATION, message).with_detail(detail);
    error.fields_mut().constraint = Some(index.name.clone());
    about(error, table, cx)
}

/// `Key …` in the middle of a sentence.
fn lower(key: &str) -> String {
    key.replacen("Key", "key", 1)
}
