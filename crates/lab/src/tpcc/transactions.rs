//! The five transactions (clauses 2.4 to 2.8): what each is about is drawn first, so that a retry
//! asks for the same again; then it is carried out in as few round trips as its data allows.
//!
//! ```text
//! New-Order    BEGIN, district +1, customer, items, stock | order, lines, stock -n, COMMIT
//! Payment      BEGIN, warehouse, district, customer       | customer, history, COMMIT
//! Order-Status BEGIN, customer                            | last order | lines, COMMIT
//! Delivery     BEGIN, oldest ×10 | delete ×10 | order, lines, sum ×10 | customer ×10, COMMIT
//! Stock-Level  BEGIN, district                            | count, COMMIT
//! ```
//! `|` is where a statement needs an earlier one's answer. Without pipelining every statement is a
//! round trip of its own.

use crate::client::Failure;
use crate::session::{Arg, Session};
use crate::tpcc::random::{last_name, Constants, Random};
use crate::tpcc::schema as sql;
use crate::tpcc::{DISTRICTS_PER_WAREHOUSE, ITEMS};

/// Lines of one order at most.
const LINES_MAX: usize = 15;

/// An item that no one sells, for orders that are rolled back.
const UNUSED_ITEM: u64 = ITEMS + 1;

/// The five kinds, in the order of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A customer orders 5 to 15 items.
    NewOrder,
    /// A customer pays.
    Payment,
    /// A customer asks for his last order.
    OrderStatus,
    /// Ten orders, one of each district, are delivered.
    Delivery,
    /// How many items of recent orders are nearly sold out.
    StockLevel,
}

/// What clause 5.2.5.7 and 5.2.4 ask of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Its name.
    pub name: &'static str,
    /// Its share of all transactions, in percent.
    pub percent: u64,
    /// Seconds that a user types.
    pub keying_seconds: f64,
    /// Seconds that a user thinks, on average.
    pub think_seconds: f64,
    /// Nine in ten must be answered within so many seconds.
    pub limit_seconds: f64,
}

impl Kind {
    /// All, in order.
    pub const ALL: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    /// What the specification asks of it.
    pub const fn rules(self) -> Rules {
        let (name, percent, keying_seconds, think_seconds, limit_seconds) = match self {
            Kind::NewOrder => ("New-Order", 45, 18.0, 12.0, 5.0),
            Kind::Payment => ("Payment", 43, 3.0, 12.0, 5.0),
            Kind::OrderStatus => ("Order-Status", 4, 2.0, 10.0, 5.0),
            Kind::Delivery => ("Delivery", 4, 2.0, 5.0, 5.0),
            Kind::StockLevel => ("Stock-Level", 4, 2.0, 5.0, 20.0),
        };
        Rules {
            name,
            percent,
            keying_seconds,
            think_seconds,
            limit_seconds,
        }
    }

    /// Draws a kind by the shares.
    pub fn draw(random: &mut Random) -> Kind {
        let mut left = random.between(1, 100);
        for kind in Kind::ALL {
            match left.checked_sub(kind.rules().percent) {
                None | Some(0) => return kind,
                Some(rest) => left = rest,
            }
        }
        Kind::NewOrder
    }
}

/// A terminal's place: a warehouse, and a district of it; both from 1.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The warehouse.
    pub warehouse: u64,
    /// The district.
    pub district: u64,
    /// All warehouses there are.
    pub warehouses: u64,
}

/// How a customer is found.
#[derive(Clone, Debug)]
enum Customer {
    Number(u64),
    /// The number of a last name.
    Name(u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    item: u64,
    supplier: u64,
    quantity: u64,
}

/// One transaction, drawn and not yet carried out.
#[derive(Clone, Debug)]
pub enum Input {
    /// See [`Kind::NewOrder`].
    NewOrder(Box<NewOrder>),
    /// See [`Kind::Payment`].
    Payment(Payment),
    /// See [`Kind::OrderStatus`].
    OrderStatus(OrderStatus),
    /// See [`Kind::Delivery`].
    Delivery(Delivery),
    /// See [`Kind::StockLevel`].
    StockLevel(StockLevel),
}

/// An order.
#[derive(Clone, Debug)]
pub struct NewOrder {
    place: Place,
    customer: u64,
    lines: [Line; LINES_MAX],
    count: usize,
}

/// A payment.
#[derive(Clone, Debug)]
pub struct Payment {
    place: Place,
    customer_warehouse: u64,
    customer_district: u64,
    customer: Customer,
    cents: i64,
}

/// A question for an order.
#[derive(Clone, Debug)]
pub struct OrderStatus {
    place: Place,
    customer: Customer,
}

/// A delivery for one warehouse.
#[derive(Clone, Debug)]
pub struct Delivery {
    warehouse: u64,
    carrier: u64,
}

/// A question for stock.
#[derive(Clone, Debug)]
pub struct StockLevel {
    place: Place,
    threshold: u64,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It was rolled back on purpose, as one order in a hundred is.
    RolledBack,
}

impl Input {
    /// Draws what a transaction is about.
    pub fn draw(kind: Kind, place: Place, constants: Constants, random: &mut Random) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(Box::new(NewOrder::draw(place, constants, random))),
            Kind::Payment => Input::Payment(Payment::draw(place, constants, random)),
            Kind::OrderStatus => Input::OrderStatus(OrderStatus {
                place,
                customer: Customer::draw(constants, random),
            }),
            Kind::Delivery => Input::Delivery(Delivery {
                warehouse: place.warehouse,
                carrier: random.between(1, 10),
            }),
            Kind::StockLevel => Input::StockLevel(StockLevel {
                place,
                threshold: random.between(10, 20),
            }),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Input::NewOrder(_) => Kind::NewOrder,
            Input::Payment(_) => Kind::Payment,
            Input::OrderStatus(_) => Kind::OrderStatus,
            Input::Delivery(_) => Kind::Delivery,
            Input::StockLevel(_) => Kind::StockLevel,
        }
    }

    /// Carries it out, to its COMMIT. After a failure the block may be open still.
    ///
    /// # Errors
    /// See [`Failure`]. What a correct database cannot answer is `Broken`.
    pub async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        match self {
            Input::NewOrder(order) => order.run(session).await,
            Input::Payment(payment) => payment.run(session).await,
            Input::OrderStatus(question) => question.run(session).await,
            Input::Delivery(delivery) => delivery.run(session).await,
            Input::StockLevel(question) => question.run(session).await,
        }
    }
}

/// What the tables of TPC-C rule out.
fn absurd(what: &str) -> Failure {
    Failure::Broken(base::Error::corrupted(format!("TPC-C: {what}")))
}

fn int(value: u64) -> Arg<'static> {
    Arg::Int(value as i64)
}

/// Another warehouse, where there is one.
fn elsewhere(place: Place, random: &mut Random) -> u64 {
    if place.warehouses == 1 {
        return place.warehouse;
    }
    let other = random.between(1, place.warehouses - 1);
    other + u64::from(other >= place.warehouse)
}

impl Customer {
    /// By last name in 60 of 100 cases.
    fn draw(constants: Constants, random: &mut Random) -> Customer {
        match random.percent(60) {
            true => Customer::Name(random.last_name(constants.last_name)),
            false => Customer::Number(random.customer(constants)),
        }
    }
}

/// The customer among those of the result: the middle one by first name, rounded up.
fn middle(session: &Session, result: usize) -> Result<usize, Failure> {
    match session.rows(result) {
        0 => Err(absurd("there is no such customer")),
        count => Ok((count - 1) / 2),
    }
}

impl NewOrder {
    fn draw(place: Place, constants: Constants, random: &mut Random) -> NewOrder {
        let count = random.between(5, LINES_MAX as u64) as usize;
        let mut lines = [Line::default(); LINES_MAX];
        for line in &mut lines[..count] {
            *line = Line {
                item: random.item(constants),
                supplier: match random.percent(1) {
                    true => elsewhere(place, random),
                    false => place.warehouse,
                },
                quantity: random.between(1, 10),
            };
        }
        if random.percent(1) {
            lines[count - 1].item = UNUSED_ITEM;
        }
        NewOrder {
            place,
            customer: random.customer(constants),
            lines,
            count,
        }
    }

    fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        let (w, d) = (int(self.place.warehouse), int(self.place.district));
        session.queue(sql::BEGIN, &[]);
        // What is locked comes before what is only read, and may then not have changed.
        session.queue(sql::NEW_ORDER_DISTRICT, &[w, d]);
        session.queue(sql::NEW_ORDER_CUSTOMER, &[w, d, int(self.customer)]);
        // In one order everywhere, so that two orders never wait for each other in a circle.
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_unstable_by_key(|index| (self.lines[*index].supplier, self.lines[*index].item));
        for index in &order {
            let line = &self.lines[*index];
            let item = int(line.item);
            session.queue(sql::NEW_ORDER_ITEM, &[item]);
            session.queue(sql::NEW_ORDER_STOCK, &[int(line.supplier), item]);
        }
        session.run().await?;

        let number = session.int(1, 0, 0);
        let number = number.ok_or_else(|| absurd("a district is missing"))?;
        if session.rows(2) != 1 {
            return Err(absurd("a customer is missing"));
        }
        let stock = match self.read_stock(session, &order)? {
            Some(stock) => stock,
            None => {
                session.queue(sql::ROLLBACK, &[]);
                session.run().await?;
                return Ok(End::RolledBack);
            }
        };
        self.write(session, number, &order, &stock);
        session.run().await?;
        Ok(End::Committed)
    }

    /// What the answers say of each line, in the order asked; none when an item is unused.
    fn read_stock(
        &self,
        session: &Session,
        order: &[usize],
    ) -> Result<Option<Vec<Stock>>, Failure> {
        let mut stocks: Vec<Stock> = Vec::with_capacity(self.count);
        for (place, index) in order.iter().enumerate() {
            let line = &self.lines[*index];
            let (item, stock) = (3 + 2 * place, 4 + 2 * place);
            let Some(price) = session.cents(item, 0, 0) else {
                return match line.item == UNUSED_ITEM {
                    true => Ok(None),
                    false => Err(absurd("an item is missing")),
                };
            };
            let district = self.place.district as usize;
            let (Some(mut quantity), Some(info)) = (
                session.int(stock, 0, 0),
                session.text(stock, 0, 2 + district),
            ) else {
                return Err(absurd("a row of stock is missing"));
            };
            // The same item twice in an order: the first line has changed it already.
            let earlier = order[..place]
                .iter()
                .zip(&stocks)
                .rev()
                .find(|(earlier, _)| {
                    let earlier = &self.lines[**earlier];
                    (earlier.supplier, earlier.item) == (line.supplier, line.item)
                });
            if let Some((_, stock)) = earlier {
                quantity = stock.quantity;
            }
            let left = quantity - line.quantity as i64;
            stocks.push(Stock {
                quantity: if left >= 10 { left } else { left + 91 },
                cents: price * line.quantity as i64,
                info: info.to_owned(),
            });
        }
        Ok(Some(stocks))
    }

    fn write(&self, session: &mut Session, number: i64, order: &[usize], stocks: &[Stock]) {
        let (w, d) = (int(self.place.warehouse), int(self.place.district));
        let number = Arg::Int(number);
        let is_home = |line: &Line| line.supplier == self.place.warehouse;
        let all_home = self.lines().iter().all(is_home);
        let (customer, count) = (int(self.customer), int(self.count as u64));
        session.queue(
            sql::NEW_ORDER_INSERT_ORDER,
            &[w, d, number, customer, count, int(u64::from(all_home))],
        );
        session.queue(sql::NEW_ORDER_INSERT_NEW, &[w, d, number]);
        for (index, stock) in order.iter().zip(stocks) {
            let line = &self.lines[*index];
            let (supplier, item) = (int(line.supplier), int(line.item));
            let (quantity, remote) = (int(line.quantity), int(u64::from(!is_home(line))));
            session.queue(
                sql::NEW_ORDER_UPDATE_STOCK,
                &[supplier, item, Arg::Int(stock.quantity), quantity, remote],
            );
            let (amount, info) = (Arg::Cents(stock.cents), Arg::Text(&stock.info));
            let line_number = int(*index as u64 + 1);
            session.queue(
                sql::NEW_ORDER_INSERT_LINE,
                &[
                    w,
                    d,
                    number,
                    line_number,
                    item,
                    supplier,
                    quantity,
                    amount,
                    info,
                ],
            );
        }
        session.queue(sql::COMMIT, &[]);
    }
}

/// A line's row of stock after the order, and what the line costs.
struct Stock {
    quantity: i64,
    cents: i64,
    info: String,
}

impl Payment {
    fn draw(place: Place, constants: Constants, random: &mut Random) -> Payment {
        let (customer_warehouse, customer_district) = match random.percent(85) {
            true => (place.warehouse, place.district),
            false => (
                elsewhere(place, random),
                random.between(1, DISTRICTS_PER_WAREHOUSE),
            ),
        };
        Payment {
            place,
            customer_warehouse,
            customer_district,
            customer: Customer::draw(constants, random),
            cents: random.between(100, 500_000) as i64,
        }
    }

    async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        let (w, d, amount) = (
            int(self.place.warehouse),
            int(self.place.district),
            Arg::Cents(self.cents),
        );
        let (cw, cd) = (int(self.customer_warehouse), int(self.customer_district));
        session.queue(sql::BEGIN, &[]);
        session.queue(sql::PAYMENT_WAREHOUSE, &[w, amount]);
        session.queue(sql::PAYMENT_DISTRICT, &[w, d, amount]);
        match &self.customer {
            Customer::Number(number) => {
                session.queue(sql::PAYMENT_CUSTOMER_BY_ID, &[cw, cd, int(*number)]);
            }
            Customer::Name(number) => {
                let name = last_name(*number);
                session.queue(sql::CUSTOMERS_BY_NAME, &[cw, cd, Arg::Text(&name)]);
            }
        }
        session.run().await?;

        let row = middle(session, 3)?;
        let number = session.int(3, row, 0);
        let number = number.ok_or_else(|| absurd("a customer has no number"))?;
        let is_bad = session.text(3, row, 4) == Some("BC");
        let (Some(warehouse), Some(district)) = (session.text(1, 0, 0), session.text(2, 0, 0))
        else {
            return Err(absurd("a warehouse or a district is missing"));
        };
        let data = format!("{warehouse}    {district}");
        let customer = Arg::Int(number);
        if is_bad {
            let cents = self.cents;
            let note = format!(
                "{number} {} {} {} {} {}.{:02}|",
                self.customer_district,
                self.customer_warehouse,
                self.place.district,
                self.place.warehouse,
                cents / 100,
                cents % 100
            );
            session.queue(
                sql::PAYMENT_UPDATE_BAD_CUSTOMER,
                &[cw, cd, customer, amount, Arg::Text(&note)],
            );
        } else {
            session.queue(sql::PAYMENT_UPDATE_CUSTOMER, &[cw, cd, customer, amount]);
        }
        session.queue(
            sql::PAYMENT_INSERT_HISTORY,
            &[customer, cd, cw, d, w, amount, Arg::Text(&data)],
        );
        session.queue(sql::COMMIT, &[]);
        session.run().await?;
        Ok(End::Committed)
    }
}

impl OrderStatus {
    async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        let (w, d) = (int(self.place.warehouse), int(self.place.district));
        session.queue(sql::BEGIN_READ_ONLY, &[]);
        match &self.customer {
            Customer::Number(number) => {
                session.queue(sql::CUSTOMER_BY_ID, &[w, d, int(*number)]);
            }
            Customer::Name(number) => {
                let name = last_name(*number);
                session.queue(sql::CUSTOMERS_BY_NAME, &[w, d, Arg::Text(&name)]);
            }
        }
        session.run().await?;
        let row = middle(session, 1)?;
        let number = session.int(1, row, 0);
        let number = number.ok_or_else(|| absurd("a customer has no number"))?;
        session.queue(sql::ORDER_STATUS_ORDER, &[w, d, Arg::Int(number)]);
        session.run().await?;
        let order = session.int(0, 0, 0);
        let order = order.ok_or_else(|| absurd("a customer has never ordered"))?;
        session.queue(sql::ORDER_STATUS_LINES, &[w, d, Arg::Int(order)]);
        session.queue(sql::COMMIT, &[]);
        session.run().await?;
        match session.rows(0) {
            0 => Err(absurd("an order has no lines")),
            _ => Ok(End::Committed),
        }
    }
}

impl Delivery {
    async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        let w = int(self.warehouse);
        session.queue(sql::BEGIN, &[]);
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            session.queue(sql::DELIVERY_OLDEST, &[w, int(district)]);
        }
        session.run().await?;
        // A district without open orders is skipped (clause 2.7.4.2).
        let oldest: Vec<(u64, i64)> = (1..=DISTRICTS_PER_WAREHOUSE)
            .filter_map(|district| Some((district, session.int(district as usize, 0, 0)?)))
            .collect();
        for (district, order) in &oldest {
            session.queue(sql::DELIVERY_DELETE, &[w, int(*district), Arg::Int(*order)]);
        }
        session.run().await?;
        // Below SERIALIZABLE another delivery may have been faster.
        let taken: Vec<(u64, i64)> = oldest
            .into_iter()
            .enumerate()
            .filter(|(place, _)| session.affected(*place) == 1)
            .map(|(_, order)| order)
            .collect();
        for (district, order) in &taken {
            let (district, order) = (int(*district), Arg::Int(*order));
            session.queue(
                sql::DELIVERY_ORDER,
                &[w, district, order, int(self.carrier)],
            );
            session.queue(sql::DELIVERY_LINES, &[w, district, order]);
            session.queue(sql::DELIVERY_SUM, &[w, district, order]);
        }
        session.run().await?;
        let mut customers = Vec::with_capacity(taken.len());
        for (place, (district, _)) in taken.iter().enumerate() {
            let customer = session.int(3 * place, 0, 0);
            let sum = session.cents(3 * place + 2, 0, 0);
            let (Some(customer), Some(sum)) = (customer, sum) else {
                return Err(absurd("an order or its lines are missing"));
            };
            customers.push((*district, customer, sum));
        }
        for (district, customer, sum) in customers {
            let (district, customer) = (int(district), Arg::Int(customer));
            session.queue(
                sql::DELIVERY_CUSTOMER,
                &[w, district, customer, Arg::Cents(sum)],
            );
        }
        session.queue(sql::COMMIT, &[]);
        session.run().await?;
        Ok(End::Committed)
    }
}

impl StockLevel {
    async fn run(&self, session: &mut Session) -> Result<End, Failure> {
        let (w, d) = (int(self.place.warehouse), int(self.place.district));
        session.queue(sql::BEGIN_READ_ONLY, &[]);
        session.queue(sql::STOCK_LEVEL_DISTRICT, &[w, d]);
        session.run().await?;
        let next = session.int(1, 0, 0);
        let next = next.ok_or_else(|| absurd("a district is missing"))?;
        session.queue(
            sql::STOCK_LEVEL_COUNT,
            &[w, d, Arg::Int(next), int(self.threshold)],
        );
        session.queue(sql::COMMIT, &[]);
        session.run().await?;
        Ok(End::Committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            warehouse: 2,
            district: 3,
            warehouses: 5,
        }
    }

    #[test]
    fn shares_are_those_of_the_specification() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 5];
        for _ in 0..100_000 {
            counts[Kind::draw(&mut random) as usize] += 1;
        }
        for (kind, count) in Kind::ALL.iter().zip(counts) {
            let expected = kind.rules().percent as f64 * 1_000.0;
            let off = (f64::from(count) - expected).abs();
            assert!(off < 600.0, "{}: {count} of 100,000", kind.rules().name);
        }
        let whole: u64 = Kind::ALL.iter().map(|kind| kind.rules().percent).sum();
        assert_eq!(whole, 100);
    }

    #[test]
    fn orders_are_drawn_by_the_rules() {
        let mut random = Random::new(2);
        let (mut lines, mut remote, mut unused, mut orders) = (0u32, 0u32, 0u32, 0u32);
        for _ in 0..20_000 {
            let order = NewOrder::draw(place(), Constants::RUN, &mut random);
            orders += 1;
            assert!((5..=15).contains(&order.count), "{}", order.count);
            for line in order.lines() {
                lines += 1;
                remote += u32::from(line.supplier != 2);
                unused += u32::from(line.item == UNUSED_ITEM);
                assert!((1..=5).contains(&line.supplier), "{}", line.supplier);
            }
        }
        let (remote, unused) = (
            f64::from(remote) / f64::from(lines),
            f64::from(unused) / f64::from(orders),
        );
        assert!((0.008..0.012).contains(&remote), "{remote}");
        assert!((0.007..0.013).contains(&unused), "{unused}");
    }

    #[test]
    fn payments_are_drawn_by_the_rules() {
        let mut random = Random::new(3);
        let (mut remote, mut by_name) = (0u32, 0u32);
        for _ in 0..20_000 {
            let payment = Payment::draw(place(), Constants::RUN, &mut random);
            remote += u32::from(payment.customer_warehouse != 2);
            by_name += u32::from(matches!(payment.customer, Customer::Name(_)));
            assert!(
                (100..=500_000).contains(&payment.cents),
                "{}",
                payment.cents
            );
        }
        assert!((2_800..3_200).contains(&remote), "{remote}");
        assert!((11_700..12_300).contains(&by_name), "{by_name}");
        let lone = Place {
            warehouses: 1,
            warehouse: 1,
            district: 1,
        };
        assert_eq!(elsewhere(lone, &mut random), 1);
    }
}
