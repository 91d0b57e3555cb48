//! The twelve consistency conditions (clause 3.3.2), each a query that counts what breaks it.
//!
//! They are asked warehouse by warehouse, so that no query is larger than one of them. Condition 11
//! compares two counts that every delivery moves apart; it is checked with the customers' own count
//! of deliveries, which starts at 0.

use base::env::Env;
use serde::Serialize;

use crate::client::Failure;
use crate::session::{Session, Target};

/// One condition, and how many places break it; `{w}` stands for the warehouse.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Its clause.
    pub clause: &'static str,
    /// What must hold.
    pub text: &'static str,
    query: &'static str,
}

/// What a condition's check found.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The clause.
    pub clause: &'static str,
    /// What must hold.
    pub text: &'static str,
    /// Places where it does not.
    pub broken: u64,
}

/// All twelve.
pub const CONDITIONS: [Condition; 12] = [
    Condition {
        clause: "3.3.2.1",
        text: "w_ytd = sum(d_ytd)",
        query: "select count(*) from warehouse where w_id = {w} and w_ytd is distinct from \
                (select sum(d_ytd) from district where d_w_id = {w})",
    },
    Condition {
        clause: "3.3.2.2",
        text: "d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        query: "select count(*) from district \
                join (select o_d_id, max(o_id) o_max from orders where o_w_id = {w} \
                group by o_d_id) o on o_d_id = d_id \
                left join (select no_d_id, max(no_o_id) no_max from new_order where no_w_id = {w} \
                group by no_d_id) n on no_d_id = d_id \
                where d_w_id = {w} and (d_next_o_id - 1 <> o_max or no_max <> o_max)",
    },
    Condition {
        clause: "3.3.2.3",
        text: "max(no_o_id) - min(no_o_id) + 1 = rows of new_order",
        query: "select count(*) from (select no_d_id from new_order where no_w_id = {w} \
                group by no_d_id having max(no_o_id) - min(no_o_id) + 1 <> count(*)) broken",
    },
    Condition {
        clause: "3.3.2.4",
        text: "sum(o_ol_cnt) = rows of order_line",
        query: "select count(*) from (select o_d_id, sum(o_ol_cnt) lines from orders \
                where o_w_id = {w} group by o_d_id) o left join \
                (select ol_d_id, count(*) found from order_line where ol_w_id = {w} \
                group by ol_d_id) l on ol_d_id = o_d_id where found is distinct from lines",
    },
    Condition {
        clause: "3.3.2.5",
        text: "o_carrier_id is null where new_order has the order, and only there",
        query: "select count(*) from orders left join new_order \
                on no_w_id = {w} and no_d_id = o_d_id and no_o_id = o_id \
                where o_w_id = {w} and (o_carrier_id is null) <> (no_o_id is not null)",
    },
    Condition {
        clause: "3.3.2.6",
        text: "o_ol_cnt = the order's rows of order_line",
        query: "select count(*) from orders left join \
                (select ol_d_id, ol_o_id, count(*) found from order_line where ol_w_id = {w} \
                group by ol_d_id, ol_o_id) l on ol_d_id = o_d_id and ol_o_id = o_id \
                where o_w_id = {w} and found is distinct from o_ol_cnt",
    },
    Condition {
        clause: "3.3.2.7",
        text: "ol_delivery_d is null where o_carrier_id is, and only there",
        query: "select count(*) from order_line join orders \
                on o_w_id = {w} and o_d_id = ol_d_id and o_id = ol_o_id \
                where ol_w_id = {w} and (ol_delivery_d is null) <> (o_carrier_id is null)",
    },
    Condition {
        clause: "3.3.2.8",
        text: "w_ytd = sum(h_amount)",
        query: "select count(*) from warehouse where w_id = {w} and w_ytd is distinct from \
                (select sum(h_amount) from history where h_w_id = {w})",
    },
    Condition {
        clause: "3.3.2.9",
        text: "d_ytd = sum(h_amount)",
        query: "select count(*) from district left join (select h_d_id, sum(h_amount) paid \
                from history where h_w_id = {w} group by h_d_id) h on h_d_id = d_id \
                where d_w_id = {w} and paid is distinct from d_ytd",
    },
    Condition {
        clause: "3.3.2.10",
        text: "c_balance = sum(ol_amount) delivered - sum(h_amount)",
        query: "select count(*) from customer \
                left join (select o_d_id, o_c_id, sum(ol_amount) bought from orders \
                join order_line on ol_w_id = {w} and ol_d_id = o_d_id and ol_o_id = o_id \
                where o_w_id = {w} and ol_delivery_d is not null group by o_d_id, o_c_id) b \
                on o_d_id = c_d_id and o_c_id = c_id \
                left join (select h_c_d_id, h_c_id, sum(h_amount) paid from history \
                where h_c_w_id = {w} group by h_c_d_id, h_c_id) p \
                on h_c_d_id = c_d_id and h_c_id = c_id \
                where c_w_id = {w} and c_balance <> coalesce(bought, 0) - coalesce(paid, 0)",
    },
    Condition {
        clause: "3.3.2.11",
        text: "rows of orders - rows of new_order = 2100 + deliveries",
        query: "select count(*) from (select o_d_id, count(*) ordered from orders \
                where o_w_id = {w} group by o_d_id) o \
                left join (select no_d_id, count(*) waiting from new_order where no_w_id = {w} \
                group by no_d_id) n on no_d_id = o_d_id \
                join (select c_d_id, sum(c_delivery_cnt) delivered from customer \
                where c_w_id = {w} group by c_d_id) c on c_d_id = o_d_id \
                where ordered - coalesce(waiting, 0) <> 2100 + delivered",
    },
    Condition {
        clause: "3.3.2.12",
        text: "c_balance + c_ytd_payment = sum(ol_amount) delivered",
        query: "select count(*) from customer \
                left join (select o_d_id, o_c_id, sum(ol_amount) bought from orders \
                join order_line on ol_w_id = {w} and ol_d_id = o_d_id and ol_o_id = o_id \
                where o_w_id = {w} and ol_delivery_d is not null group by o_d_id, o_c_id) b \
                on o_d_id = c_d_id and o_c_id = c_id \
                where c_w_id = {w} and c_balance + c_ytd_payment <> coalesce(bought, 0)",
    },
];

/// Checks all conditions for all warehouses that are there.
///
/// # Errors
/// The server refuses a query, or there is no warehouse.
pub async fn check(env: &dyn Env, target: &Target) -> Result<Vec<Checked>, Failure> {
    let mut session = Session::connect(env, target).await?;
    session.query("select max(w_id) from warehouse").await?;
    let warehouses = session.int(0, 0, 0).unwrap_or(0);
    if warehouses == 0 {
        let message = "there is no warehouse to check";
        return Err(Failure::Refused(base::Error::corrupted(message)));
    }
    let mut checked = Vec::new();
    for condition in &CONDITIONS {
        let mut broken = 0;
        for warehouse in 1..=warehouses {
            let query = condition.query.replace("{w}", &warehouse.to_string());
            session.query(&query).await?;
            broken += session.int(0, 0, 0).unwrap_or(1) as u64;
        }
        checked.push(Checked {
            clause: condition.clause,
            text: condition.text,
            broken,
        });
    }
    Ok(checked)
}

/// A sentence: whether all hold, or which do not.
pub fn verdict(checked: &[Checked]) -> String {
    let broken: Vec<String> = checked
        .iter()
        .filter(|one| one.broken > 0)
        .map(|one| {
            format!(
                "{} ({}) is broken {} times",
                one.clause, one.text, one.broken
            )
        })
        .collect();
    match broken.is_empty() {
        true => format!("all {} consistency conditions hold", checked.len()),
        false => broken.join("; "),
    }
}
