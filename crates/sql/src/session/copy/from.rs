//! COPY FROM STDIN: rows of the client become rows of a table, in batches.

use std::cell::RefCell;

use base::{Error, Result, SqlState};
use pg_query::protobuf::CopyStmt;

use super::check_referenced;
use super::options::{Chosen, Options};
use super::rows::Rows;
use crate::session::in_use::Using;
use crate::session::{Format, Session, Sink};
use catalog::local::is_local;
use catalog::RelationKind;
use execution::exec::foreign;
use execution::exec::posted;
use execution::exec::program::Evaluate;
use execution::exec::write::InsertCursor;
use execution::exec::Exec;
use execution::system::Relations;
use planner::bind::copy::{CopyFrom, Source};
use planner::plan::{Insert, Row};
use syntax::parser::Statement;
use types::encoding::Encoding;
use types::Datum;

/// Rows that are written at once, at most.
const BATCH_ROWS_MAX: usize = 1_000;

/// Bytes of the lines of rows that are written at once, from which they are.
const BATCH_BYTES_MIN: usize = 65_535;

impl Session {
    pub(super) fn copy_from(
        &mut self,
        statement: &Statement,
        copy: &CopyStmt,
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        let how = RefCell::new(None);
        let plan = |session: &mut Session| {
            let (planned, copy_from) =
                session.plan_copy(statement, |binder| binder.copy_from(copy))?;
            *how.borrow_mut() = Some(copy_from);
            Ok(planned)
        };
        let planned = plan(self).or_else(|error: Error| {
            // As PostgreSQL, which asks for the data before it looks what the relation is.
            if error.state() == SqlState::WRONG_OBJECT_TYPE {
                sink.copy_in(copy.attlist.len(), Format::Text)?;
            }
            Err(error)
        })?;
        self.ensure_open()?;
        self.permitted(&planned)?;
        let shared = |relation: u32| !is_local(relation);
        let mut bound = planned.bound.iter();
        let is_shared = bound.any(|bound| bound.plan.changes().any(shared));
        if is_shared && self.is_read_only() {
            return Err(Error::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "cannot execute COPY FROM in a read-only transaction",
            ));
        }
        let options = Options::read(&copy.options, true, statement.text())?;
        let planned = self.settle_plan(planned, plan)?;
        let permitted = self.permitted(&planned)?;
        let (insert, writer) = InsertCursor::of(permitted)?;
        let Some(how) = how.into_inner() else {
            return Err(Error::internal("COPY FROM without its columns"));
        };
        let force = forced(&options, insert, &how)?;
        self.tell(sink)?;
        let format = match options.is_binary() {
            true => Format::Binary,
            false => Format::Text,
        };
        sink.copy_in(how.columns.len(), format)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.begun = true;
        open.txn.begin_statement()?;
        let table = insert.target.table.clone();
        let mut rows = Rows::new(&options, table, &how.columns, force);
        let (looked, written) = self.using(Using::Plan(planned.clone()), |session| {
            let eval = session.eval.clone();
            let mut cx = Exec::new(&Relations, session, permitted.permit(), &eval, &[]);
            let loaded = Loader::new(insert, &how, writer).run(&mut rows, sink, &mut cx);
            let looked = match loaded {
                Ok(()) => foreign::finish(&mut cx),
                Err(error) => {
                    if let Some(number) = cx.posted.failed {
                        rows.look_back(number);
                    }
                    Err(rows.explain(error))
                }
            };
            (looked, cx.written)
        });
        if let Some(open) = &mut self.open {
            open.wrote |= written > 0;
        }
        looked.map(|()| written)
    }
}

/// Which fields are FORCE_NOT_NULL, and which are FORCE_NULL.
fn forced(options: &Options, insert: &Insert, how: &CopyFrom) -> Result<Vec<(bool, bool)>> {
    let table = &insert.target.table;
    let columns = &table.columns;
    let names: Vec<_> = how
        .columns
        .iter()
        .map(|place| columns[*place].name.as_str())
        .collect();
    check_referenced(&options.force_not_null, "NOT_NULL", &names, Some(table))?;
    check_referenced(&options.force_null, "NULL", &names, Some(table))?;
    let has = |chosen: &Chosen, name: &str| match chosen {
        Chosen::All => true,
        Chosen::Named(chosen) => chosen.iter().any(|known| known == name),
    };
    let forced = names.iter().map(|name| {
        let not_null = has(&options.force_not_null, name);
        (not_null, has(&options.force_null, name))
    });
    Ok(forced.collect())
}

/// Sends what triggers have said.
fn hand_on_notices(sink: &mut dyn Sink, cx: &mut Exec<'_>) -> Result<()> {
    if cx.host.shared().notices.is_empty() {
        return Ok(());
    }
    let durability = cx.host.shared().settings.parsed().durability;
    sink.owe(cx.host.txn().debt(), durability);
    cx.host.session().send_notices(sink)
}

/// What the client sends, as UTF-8.
struct Reader {
    encoding: Encoding,
    /// What was sent and not converted: at most the beginning of a character, once more was asked for.
    sent: Vec<u8>,
}

impl Reader {
    fn of(encoding: Encoding) -> Reader {
        Reader {
            encoding,
            sent: Vec::new(),
        }
    }

    /// Appends more data; false where it has ended.
    fn more(&mut self, data: &mut Vec<u8>, sink: &mut dyn Sink) -> Result<bool> {
        if self.encoding.is_kept() {
            return sink.copy_data(data);
        }
        if !sink.copy_data(&mut self.sent)? {
            return match self.sent.is_empty() {
                true => Ok(false),
                false => Err(self.encoding.invalid(&self.sent)),
            };
        }
        let (text, used) = self.encoding.decode_some(&self.sent)?;
        data.extend_from_slice(text.as_bytes());
        self.sent.drain(..used);
        Ok(true)
    }
}

/// Rows that were read and checked, and are to be written.
struct Loader<'p> {
    insert: &'p Insert,
    how: &'p CopyFrom,
    writer: InsertCursor<'p>,
    /// Each with the number of its line.
    batch: Vec<(Row, u64)>,
    batch_bytes: usize,
}

impl<'p> Loader<'p> {
    fn new(insert: &'p Insert, how: &'p CopyFrom, writer: InsertCursor<'p>) -> Loader<'p> {
        Loader {
            insert,
            how,
            writer,
            batch: Vec::new(),
            batch_bytes: 0,
        }
    }

    fn run(&mut self, rows: &mut Rows<'_>, sink: &mut dyn Sink, cx: &mut Exec<'_>) -> Result<()> {
        let mut values = Vec::new();
        let context = cx.context;
        let mut reader = Reader::of(rows.encoding(context.encoding));
        let one_by_one = InsertCursor::fires_before_rows(self.insert);
        self.writer.begin(cx)?;
        hand_on_notices(sink, cx)?;
        while rows.next(context, &mut values, &mut |data| reader.more(data, sink))? {
            cx.tick()?;
            let row = self.complete(&mut values, cx)?;
            if let Some(filter) = &self.how.filter {
                if !filter.test(cx, &row)? {
                    continue;
                }
            }
            let Some(mut row) = InsertCursor::before(self.insert, row, cx)? else {
                continue;
            };
            if self.insert.target.table.kind == RelationKind::View {
                cx.note_written();
                continue;
            }
            InsertCursor::check(self.insert, &mut row, cx)?;
            self.batch.push((row, rows.number()));
            self.batch_bytes += rows.line_bytes();
            let is_full = self.batch.len() >= BATCH_ROWS_MAX || self.batch_bytes >= BATCH_BYTES_MIN;
            if is_full || one_by_one {
                self.write(rows, cx)?;
                hand_on_notices(sink, cx)?;
            }
        }
        self.write(rows, cx)?;
        posted::settle(cx)?;
        self.writer.end(cx)
    }

    /// The whole row of the fields that were read.
    fn complete(&self, values: &mut [Datum], cx: &mut Exec<'_>) -> Result<Row> {
        let mut row = Vec::with_capacity(self.how.row.len());
        for source in &self.how.row {
            row.push(match source {
                Source::Field(field) => std::mem::replace(&mut values[*field], Datum::Null),
                Source::Computed(program) => program.eval(cx, values)?,
            });
        }
        Ok(row)
    }

    /// Writes what has gathered.
    fn write(&mut self, rows: &mut Rows<'_>, cx: &mut Exec<'_>) -> Result<()> {
        self.batch_bytes = 0;
        for (row, number) in self.batch.drain(..) {
            // What is written at once is the line that was read last.
            if number != rows.number() || !InsertCursor::fires_before_rows(self.insert) {
                rows.look_back(number);
            }
            cx.posted.label = number;
            if self.writer.write_checked(row, cx)?.is_some() {
                cx.note_written();
                cx.tick()?;
            }
        }
        Ok(())
    }
}
