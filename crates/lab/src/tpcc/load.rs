//! The initial population (clause 4.3.3), loaded by COPY over several sessions at once.
//!
//! Items are one piece of work, every warehouse another; sessions take pieces until none is left.
//! The rows of a piece follow from the seed and its number alone, whoever loads it.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::env::Env;
use base::SqlState;

use crate::client::Failure;
use crate::session::{Session, Target};
use crate::tpcc::random::{last_name, Random, LOADED_LAST_NAME};
use crate::tpcc::schema;
use crate::tpcc::{CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, ITEMS};

/// Bytes of rows that go into one message.
const MESSAGE_BYTES: usize = 64 << 10;

/// Orders of a district from this one on are not delivered yet.
const FIRST_UNDELIVERED: u64 = 2_101;

/// How often a COPY is tried.
const TRIES_MAX: usize = 5;

/// When everything in the initial population happened.
const LONG_AGO: &str = "2026-01-01 00:00:00";

/// Rows of one warehouse, about: lines of orders are 5 to 15.
pub const ROWS_PER_WAREHOUSE: u64 = 100_000 + 10 + 30_000 * 3 + 9_000 + 300_000 + 1;

/// What a load has done so far.
#[derive(Debug)]
pub struct Progress {
    /// Rows sent.
    pub rows: AtomicU64,
    /// Rows that there will be, about.
    pub rows_expected: u64,
    /// Warehouses.
    pub warehouses: u64,
    next: AtomicU64,
}

impl Progress {
    /// The beginning of a load.
    pub fn new(warehouses: u64) -> Arc<Progress> {
        Arc::new(Progress {
            rows: AtomicU64::new(0),
            rows_expected: warehouses * ROWS_PER_WAREHOUSE + ITEMS,
            warehouses,
            next: AtomicU64::new(0),
        })
    }
}

/// Makes the tables anew, empty.
///
/// # Errors
/// The server refuses something.
pub async fn create_tables(env: &dyn Env, target: &Target) -> Result<(), Failure> {
    let mut session = Session::connect(env, target).await?;
    session.query(schema::DROP).await?;
    for statement in schema::CREATE {
        session.query(statement).await?;
    }
    Ok(())
}

/// Loads pieces over one session until none is left.
///
/// # Errors
/// The server refuses something.
pub async fn load_pieces(
    env: &dyn Env,
    target: &Target,
    progress: &Progress,
    seed: u64,
) -> Result<(), Failure> {
    let mut session = Session::connect(env, target).await?;
    loop {
        let piece = progress.next.fetch_add(1, Ordering::Relaxed);
        if piece > progress.warehouses {
            return Ok(());
        }
        let mut loader = Loader {
            session: &mut session,
            progress,
            random: Random::new(seed ^ (piece << 32)),
            rows: Vec::with_capacity(MESSAGE_BYTES + 1_024),
            sent: 0,
            lines: Vec::new(),
        };
        let tables = match piece {
            0 => &[Table::Item][..],
            _ => &Table::OF_A_WAREHOUSE,
        };
        for table in tables {
            loader.load(*table, piece).await?;
        }
    }
}

struct Loader<'a> {
    session: &'a mut Session,
    progress: &'a Progress,
    random: Random,
    rows: Vec<u8>,
    /// Rows of the table that is being loaded.
    sent: u64,
    /// How many lines each order has.
    lines: Vec<u8>,
}

/// A table of a piece, one COPY.
#[derive(Clone, Copy, Debug)]
enum Table {
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    Orders,
    OrderLine,
    NewOrder,
}

impl Table {
    const OF_A_WAREHOUSE: [Table; 8] = [
        Table::Warehouse,
        Table::Stock,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Orders,
        Table::OrderLine,
        Table::NewOrder,
    ];
}

/// Writes to memory, which does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); };
}

impl Loader<'_> {
    /// Loads one table of a piece. A failover may take a COPY back; then it is done again, with the
    /// same rows.
    async fn load(&mut self, table: Table, w: u64) -> Result<(), Failure> {
        let random = self.random.clone();
        for _ in 1..TRIES_MAX {
            match self.copy(table, w).await {
                Err(Failure::Refused(error))
                    if error.state() == SqlState::SERIALIZATION_FAILURE =>
                {
                    self.random = random.clone();
                    self.rows.clear();
                    self.progress.rows.fetch_sub(self.sent, Ordering::Relaxed);
                }
                done => return done,
            }
        }
        self.copy(table, w).await
    }

    async fn copy(&mut self, table: Table, w: u64) -> Result<(), Failure> {
        self.sent = 0;
        match table {
            Table::Item => self.items().await,
            Table::Warehouse => self.warehouse(w).await,
            Table::Stock => self.stock(w).await,
            Table::District => self.districts(w).await,
            Table::Customer => self.customers(w).await,
            Table::History => self.history(w).await,
            Table::Orders => self.orders(w).await,
            Table::OrderLine => self.order_lines(w).await,
            Table::NewOrder => self.new_orders(w).await,
        }
    }

    /// Ends a row, and sends what has gathered where it is enough.
    async fn end_row(&mut self) -> Result<(), Failure> {
        // The tab after the last column makes way for the end of the line.
        self.rows.pop();
        self.rows.push(b'\n');
        self.sent += 1;
        self.progress.rows.fetch_add(1, Ordering::Relaxed);
        match self.rows.len() >= MESSAGE_BYTES {
            true => self.send().await,
            false => Ok(()),
        }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        self.session.copy_rows(&self.rows).await?;
        self.rows.clear();
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Failure> {
        self.send().await?;
        self.session.copy_end().await
    }

    /// A column of letters and digits.
    fn letters(&mut self, low: u64, high: u64) {
        self.random.letters(&mut self.rows, low, high);
        self.rows.push(b'\t');
    }

    /// Data in which one row of ten holds `ORIGINAL`.
    fn data(&mut self) {
        let start = self.rows.len();
        self.random.letters(&mut self.rows, 26, 50);
        if self.random.percent(10) {
            let room = self.rows.len() - start - 8;
            let at = start + self.random.between(0, room as u64) as usize;
            self.rows[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
        self.rows.push(b'\t');
    }

    /// Two streets, a city, a state and a zip code.
    fn address(&mut self) {
        for _ in 0..3 {
            self.letters(10, 20);
        }
        self.letters(2, 2);
        self.random.digits(&mut self.rows, 4);
        self.rows.extend_from_slice(b"11111\t");
    }

    /// A fraction of 0 to `most` ten-thousandths.
    fn fraction(&mut self, most: u64) {
        let value = self.random.between(0, most);
        put!(self.rows, "0.{value:04}\t");
    }

    async fn items(&mut self) -> Result<(), Failure> {
        self.session.copy_begin("copy item from stdin").await?;
        for item in 1..=ITEMS {
            let image = self.random.between(1, 10_000);
            put!(self.rows, "{item}\t{image}\t");
            self.letters(14, 24);
            let cents = self.random.between(100, 10_000);
            put!(self.rows, "{}.{:02}\t", cents / 100, cents % 100);
            self.data();
            self.end_row().await?;
        }
        self.end().await
    }

    async fn warehouse(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy warehouse from stdin").await?;
        put!(self.rows, "{w}\t");
        self.letters(6, 10);
        self.address();
        self.fraction(2_000);
        put!(self.rows, "300000.00\t");
        self.end_row().await?;
        self.end().await
    }

    async fn stock(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy stock from stdin").await?;
        for item in 1..=ITEMS {
            let quantity = self.random.between(10, 100);
            put!(self.rows, "{w}\t{item}\t{quantity}\t");
            for _ in 0..DISTRICTS_PER_WAREHOUSE {
                self.letters(24, 24);
            }
            put!(self.rows, "0\t0\t0\t");
            self.data();
            self.end_row().await?;
        }
        self.end().await
    }

    async fn districts(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy district from stdin").await?;
        for d in 1..=DISTRICTS_PER_WAREHOUSE {
            put!(self.rows, "{w}\t{d}\t");
            self.letters(6, 10);
            self.address();
            self.fraction(2_000);
            put!(self.rows, "30000.00\t{}\t", CUSTOMERS_PER_DISTRICT + 1);
            self.end_row().await?;
        }
        self.end().await
    }

    async fn customers(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy customer from stdin").await?;
        for d in 1..=DISTRICTS_PER_WAREHOUSE {
            for c in 1..=CUSTOMERS_PER_DISTRICT {
                put!(self.rows, "{w}\t{d}\t{c}\t");
                self.letters(8, 16);
                let name = match c {
                    1..=1_000 => c - 1,
                    _ => self.random.last_name(LOADED_LAST_NAME),
                };
                put!(self.rows, "OE\t{}\t", last_name(name));
                self.address();
                self.random.digits(&mut self.rows, 16);
                let credit = if self.random.percent(10) { "BC" } else { "GC" };
                put!(self.rows, "\t{LONG_AGO}\t{credit}\t50000.00\t");
                self.fraction(5_000);
                put!(self.rows, "-10.00\t10.00\t1\t0\t");
                self.letters(300, 500);
                self.end_row().await?;
            }
        }
        self.end().await
    }

    async fn history(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy history from stdin").await?;
        for d in 1..=DISTRICTS_PER_WAREHOUSE {
            for c in 1..=CUSTOMERS_PER_DISTRICT {
                put!(self.rows, "{c}\t{d}\t{w}\t{d}\t{w}\t{LONG_AGO}\t10.00\t");
                self.letters(12, 24);
                self.end_row().await?;
            }
        }
        self.end().await
    }

    /// Orders, whose numbers of lines are kept for [`Loader::order_lines`].
    async fn orders(&mut self, w: u64) -> Result<(), Failure> {
        let customers = CUSTOMERS_PER_DISTRICT as usize;
        self.lines.clear();
        self.session.copy_begin("copy orders from stdin").await?;
        for d in 1..=DISTRICTS_PER_WAREHOUSE {
            // Every customer has ordered once, in random order.
            let mut order_of: Vec<u64> = (1..=CUSTOMERS_PER_DISTRICT).collect();
            for index in (1..customers).rev() {
                order_of.swap(index, self.random.between(0, index as u64) as usize);
            }
            for (o, customer) in (1..).zip(order_of) {
                let count = self.random.between(5, 15);
                self.lines.push(count as u8);
                put!(self.rows, "{w}\t{d}\t{o}\t{customer}\t{LONG_AGO}\t");
                match o < FIRST_UNDELIVERED {
                    true => {
                        let carrier = self.random.between(1, 10);
                        put!(self.rows, "{carrier}\t{count}\t1\t");
                    }
                    false => {
                        put!(self.rows, "\\N\t{count}\t1\t");
                    }
                }
                self.end_row().await?;
            }
        }
        self.end().await
    }

    async fn new_orders(&mut self, w: u64) -> Result<(), Failure> {
        self.session.copy_begin("copy new_order from stdin").await?;
        for d in 1..=DISTRICTS_PER_WAREHOUSE {
            for o in FIRST_UNDELIVERED..=CUSTOMERS_PER_DISTRICT {
                put!(self.rows, "{w}\t{d}\t{o}\t");
                self.end_row().await?;
            }
        }
        self.end().await
    }

    async fn order_lines(&mut self, w: u64) -> Result<(), Failure> {
        let lines = self.lines.clone();
        self.session
            .copy_begin("copy order_line from stdin")
            .await?;
        for (index, count) in lines.iter().enumerate() {
            let d = index as u64 / CUSTOMERS_PER_DISTRICT + 1;
            let o = index as u64 % CUSTOMERS_PER_DISTRICT + 1;
            for line in 1..=*count {
                let item = self.random.between(1, ITEMS);
                put!(self.rows, "{w}\t{d}\t{o}\t{line}\t{item}\t{w}\t");
                match o < FIRST_UNDELIVERED {
                    true => {
                        put!(self.rows, "{LONG_AGO}\t5\t0.00\t");
                    }
                    false => {
                        let cents = self.random.between(1, 999_999);
                        put!(self.rows, "\\N\t5\t{}.{:02}\t", cents / 100, cents % 100);
                    }
                }
                self.letters(24, 24);
                self.end_row().await?;
            }
        }
        self.end().await
    }
}
