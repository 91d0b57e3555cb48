//! The nine tables, and their statements.

use crate::session::Statement;

/// Removes the tables of an earlier load.
pub const DROP: &str = "drop table if exists warehouse, district, customer, history, orders, \
                        new_order, order_line, item, stock";

/// Makes them, empty, with all their indexes.
pub const CREATE: [&str; 11] = [
    "create table warehouse (w_id int primary key, w_name varchar(10), w_street_1 varchar(20), \
     w_street_2 varchar(20), w_city varchar(20), w_state char(2), w_zip char(9), \
     w_tax numeric(4,4), w_ytd numeric(12,2))",
    "create table district (d_w_id int, d_id int, d_name varchar(10), d_street_1 varchar(20), \
     d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), \
     d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id int, primary key (d_w_id, d_id))",
    "create table customer (c_w_id int, c_d_id int, c_id int, c_first varchar(16), \
     c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), \
     c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, \
     c_credit char(2), c_credit_lim numeric(12,2), c_discount numeric(4,4), \
     c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, \
     c_delivery_cnt int, c_data varchar(500), primary key (c_w_id, c_d_id, c_id))",
    "create index customer_last on customer (c_w_id, c_d_id, c_last, c_first)",
    "create table history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, \
     h_date timestamp, h_amount numeric(6,2), h_data varchar(24))",
    "create table orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry_d timestamp, \
     o_carrier_id int, o_ol_cnt int, o_all_local int, primary key (o_w_id, o_d_id, o_id))",
    "create index orders_customer on orders (o_w_id, o_d_id, o_c_id, o_id)",
    "create table new_order (no_w_id int, no_d_id int, no_o_id int, \
     primary key (no_w_id, no_d_id, no_o_id))",
    "create table order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, \
     ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, \
     ol_amount numeric(6,2), ol_dist_info char(24), \
     primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "create table item (i_id int primary key, i_im_id int, i_name varchar(24), \
     i_price numeric(5,2), i_data varchar(50))",
    "create table stock (s_w_id int, s_i_id int, s_quantity int, s_dist_01 char(24), \
     s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), \
     s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), \
     s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50), \
     primary key (s_w_id, s_i_id))",
];

macro_rules! statements {
    ($($number:literal $name:ident = $text:expr;)*) => {
        $(#[allow(missing_docs)] pub const $name: Statement = Statement { number: $number, text: $text };)*
        /// All of them, in the order of their numbers.
        pub const STATEMENTS: &[Statement] = &[$($name),*];
    };
}

statements! {
    0 BEGIN = "begin";
    1 BEGIN_READ_ONLY = "begin read only";
    2 COMMIT = "commit";
    3 ROLLBACK = "rollback";
    4 NEW_ORDER_CUSTOMER = "select c_discount, c_last, c_credit, w_tax from customer, warehouse \
        where w_id = $1 and c_w_id = $1 and c_d_id = $2 and c_id = $3";
    5 NEW_ORDER_DISTRICT = "update district set d_next_o_id = d_next_o_id + 1 \
        where d_w_id = $1 and d_id = $2 returning d_next_o_id - 1, d_tax";
    6 NEW_ORDER_ITEM = "select i_price, i_name, i_data from item where i_id = $1";
    // Columns 3 to 12 are s_dist_01 to s_dist_10, of which the district's is used.
    7 NEW_ORDER_STOCK = "select s_quantity, s_ytd, s_data, s_dist_01, s_dist_02, s_dist_03, \
        s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 from stock \
        where s_w_id = $1 and s_i_id = $2 for update";
    8 NEW_ORDER_INSERT_ORDER = "insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, \
        o_ol_cnt, o_all_local) values ($1, $2, $3, $4, localtimestamp, $5, $6)";
    9 NEW_ORDER_INSERT_NEW = "insert into new_order (no_w_id, no_d_id, no_o_id) values ($1, $2, $3)";
    10 NEW_ORDER_UPDATE_STOCK = "update stock set s_quantity = $3, s_ytd = s_ytd + $4, \
        s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $5 \
        where s_w_id = $1 and s_i_id = $2";
    11 NEW_ORDER_INSERT_LINE = "insert into order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, \
        ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    12 PAYMENT_WAREHOUSE = "update warehouse set w_ytd = w_ytd + $2 where w_id = $1 \
        returning w_name, w_street_1, w_street_2, w_city, w_state, w_zip";
    13 PAYMENT_DISTRICT = "update district set d_ytd = d_ytd + $3 where d_w_id = $1 and d_id = $2 \
        returning d_name, d_street_1, d_street_2, d_city, d_state, d_zip";
    14 PAYMENT_CUSTOMER_BY_ID = "select c_id, c_first, c_middle, c_last, c_credit, c_balance \
        from customer where c_w_id = $1 and c_d_id = $2 and c_id = $3 for update";
    15 CUSTOMERS_BY_NAME = "select c_id, c_first, c_middle, c_last, c_credit, c_balance \
        from customer where c_w_id = $1 and c_d_id = $2 and c_last = $3 order by c_first";
    16 PAYMENT_UPDATE_CUSTOMER = "update customer set c_balance = c_balance - $4, \
        c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1 \
        where c_w_id = $1 and c_d_id = $2 and c_id = $3";
    17 PAYMENT_UPDATE_BAD_CUSTOMER = "update customer set c_balance = c_balance - $4, \
        c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
        c_data = substr($5 || c_data, 1, 500) \
        where c_w_id = $1 and c_d_id = $2 and c_id = $3 returning c_data";
    18 PAYMENT_INSERT_HISTORY = "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, \
        h_date, h_amount, h_data) values ($1, $2, $3, $4, $5, localtimestamp, $6, $7)";
    19 CUSTOMER_BY_ID = "select c_id, c_first, c_middle, c_last, c_credit, c_balance \
        from customer where c_w_id = $1 and c_d_id = $2 and c_id = $3";
    20 ORDER_STATUS_ORDER = "select o_id, o_carrier_id, o_entry_d from orders where o_w_id = $1 \
        and o_d_id = $2 and o_c_id = $3 order by o_id desc limit 1";
    21 ORDER_STATUS_LINES = "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
        ol_delivery_d from order_line where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3";
    22 DELIVERY_OLDEST = "select no_o_id from new_order where no_w_id = $1 and no_d_id = $2 \
        order by no_o_id limit 1";
    23 DELIVERY_DELETE = "delete from new_order \
        where no_w_id = $1 and no_d_id = $2 and no_o_id = $3";
    24 DELIVERY_ORDER = "update orders set o_carrier_id = $4 \
        where o_w_id = $1 and o_d_id = $2 and o_id = $3 returning o_c_id";
    25 DELIVERY_LINES = "update order_line set ol_delivery_d = localtimestamp \
        where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3";
    26 DELIVERY_SUM = "select sum(ol_amount) from order_line \
        where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3";
    27 DELIVERY_CUSTOMER = "update customer set c_balance = c_balance + $4, \
        c_delivery_cnt = c_delivery_cnt + 1 where c_w_id = $1 and c_d_id = $2 and c_id = $3";
    28 STOCK_LEVEL_DISTRICT = "select d_next_o_id from district where d_w_id = $1 and d_id = $2";
    29 STOCK_LEVEL_COUNT = "select count(distinct s_i_id) from order_line, stock \
        where ol_w_id = $1 and ol_d_id = $2 and ol_o_id < $3 and ol_o_id >= $3 - 20 \
        and s_w_id = $1 and s_i_id = ol_i_id and s_quantity < $4";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_numbered_in_order() {
        for (index, statement) in STATEMENTS.iter().enumerate() {
            assert_eq!(statement.number, index, "{}", statement.text);
        }
    }
}
