//! Whether two answers are the same, and the rules that explain those that are not.
//!
//! Columns' names and types, rows (in order where the statement orders them wholly), command tags
//! and SQLSTATEs are compared; the texts of errors are not. A rule covers a difference that
//! PostgreSQL's manual leaves to the server, never a kind of statement.

use super::servers::{Answer, ARRAY, EXTENSIONS};
use super::statement::Statement;

/// A difference that is explained.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name in reports.
    pub name: &'static str,
    /// Why either answer is right.
    pub why: &'static str,
    explains: fn(&Statement, &str, &Answer, &Answer) -> bool,
}

/// All rules.
pub const RULES: [Rule; 14] = [
    Rule {
        name: "time limit",
        why: "either server may take longer than the time limit",
        explains: |_, _, ours, theirs| state(ours) == "57014" || state(theirs) == "57014",
    },
    Rule {
        name: "order of evaluation",
        why: "the order in which conditions, outputs and rows are evaluated is not defined \
              (manual, 4.2.14), so that one server may meet an error that the other does not reach, \
              or another one first",
        explains: |statement, sql, ours, theirs| {
            let (one, other) = (state(ours), state(theirs));
            let is_of_value = |answer: &Answer| is_of_value(answer, sql) || state(answer).is_empty();
            let is_refused = !one.is_empty() || !other.is_empty();
            let are_refused = !one.is_empty() && !other.is_empty();
            let has_choice = [" where ", " on (", " limit "]
                .iter()
                .any(|word| sql.contains(word));
            let has_choice = has_choice && (!statement.is_change || sql.contains(" where "));
            is_refused
                && (has_choice || are_refused)
                && is_of_value(ours)
                && is_of_value(theirs)
        },
    },
    Rule {
        name: "last digits of sums",
        why: "sums of binary floating point depend on the order of rows",
        explains: |_, sql, ours, theirs| {
            let sums = ["avg", "sum", "stddev", "var", "regr_", "corr", "covar_"];
            sums.iter().any(|name| sql.contains(&format!("\"{name}")) )
                && rows_agree(ours, theirs, |a, b| a == b || nearly_equal(a, b))
        },
    },
    Rule {
        name: "any of equal values",
        why: "of values that are equal and are written differently (1.0 and 1.00, -0 and 0, 'a' and \
              'a  ' of bpchar, one month and thirty days, arrays of such) any may stand for the group",
        explains: |_, sql, ours, theirs| {
            let groups = [
                "distinct", "group by", "union", "intersect", "except", "min", "max", "order by",
                "mode", "greatest", "least",
            ];
            groups.iter().any(|word| sql.contains(word))
                && rows_agree(&as_equal(ours), &as_equal(theirs), |a, b| a == b)
        },
    },
    Rule {
        name: "which of several errors",
        why: "of several rows or constraints that are violated, either server may meet another one \
              first",
        explains: |statement, _, ours, theirs| {
            let is_of_data = |answer: &Answer| {
                let state = state(answer);
                state.starts_with("23") || state.starts_with("22") || is_of_flags(answer)
            };
            statement.is_change && is_of_data(ours) && is_of_data(theirs)
        },
    },
    Rule {
        name: "serialization failures",
        why: "the servers may refuse different transactions for the sake of one order",
        explains: |_, _, ours, theirs| state(ours) == "40001" || state(theirs) == "40001",
    },
    Rule {
        name: "not there yet",
        why: "what Quorate does not do it says with 0A000; what is missing stands in CONFORMANCE.md",
        explains: |_, _, ours, _| match ours {
            Answer::Refused(state, message) => {
                state == "0A000" && !message.starts_with("cannot ")
            }
            _ => false,
        },
    },
    Rule {
        name: "strict functions",
        why: "where one argument of a strict function is NULL, the others need not be evaluated \
              (manual, 38.5); one server may meet an error in them",
        // Whether an argument is NULL takes questions: see `may_be_strict`.
        explains: |_, _, _, _| false,
    },
    Rule {
        name: "sign of a comparison",
        why: "functions that compare for an index (btint4cmp) are defined by the sign of their result, \
              of which a quotient may be 0",
        explains: |_, sql, ours, theirs| {
            let sign = |text: &str| text.parse::<i64>().map(i64::signum).ok();
            let agree = |a: &str, b: &str| match (sign(a), sign(b)) {
                (Some(a), Some(b)) => a == b || sql.contains(" / ") && a * b == 0,
                _ => a == b,
            };
            sql.contains("cmp\"(") && rows_agree(ours, theirs, agree)
        },
    },
    Rule {
        name: "missing comparisons",
        why: "PostgreSQL looks for what compares the arguments of GREATEST and LEAST when a statement \
              begins, after all other errors of its text, and not in an arm of CASE that it has left out \
              when it planned",
        explains: |_, sql, ours, theirs| {
            let is_missing = matches!(ours, Answer::Refused(_, message)
                if message.starts_with("could not identify a comparison function"));
            let has_choice = sql.contains("greatest(") || sql.contains("least(");
            is_missing && has_choice && (!state(theirs).is_empty() || sql.contains("case "))
        },
    },
    Rule {
        name: "rows to fill",
        why: "json_populate_record and its kin look at the type of their first argument when they are \
              called; whether and when that is so is not defined (manual, 4.2.14), nor where another \
              argument of a strict function is NULL",
        explains: |_, sql, ours, theirs| {
            let is_no_row = |answer: &Answer| match answer {
                Answer::Refused(state, message) => {
                    state == "42804" && message.ends_with("must be a row type")
                }
                _ => false,
            };
            let is_of_names = |answer: &Answer| match answer {
                Answer::Refused(state, message) => {
                    let is_found_late = message.ends_with("of jsonpath input")
                        || message.starts_with("could not identify a comparison")
                        || is_of_flags(answer);
                    state.starts_with("42") && !is_found_late
                }
                _ => false,
            };
            sql.contains("_populate_record")
                && (is_no_row(ours) && !is_of_names(theirs)
                    || is_no_row(theirs) && !is_of_names(ours))
        },
    },
    Rule {
        name: "overflow of seconds",
        why: "seconds of make_interval that no interval holds are refused here; in PostgreSQL 15 the \
              conversion is undefined in C, and the interval is any",
        explains: |_, sql, ours, _| {
            let is_refused = matches!(ours, Answer::Refused(state, message)
                if state == "22008" && message == "interval out of range");
            is_refused && sql.contains("make_interval")
        },
    },
    Rule {
        name: "mended later",
        why: "what PostgreSQL 15.18 answers and a later minor version has mended: right() and left() of \
              the smallest integer give all of the text, to_char() of an integer that V makes too large \
              gives signs of overflow, and a weight that is none is an internal error",
        explains: |_, sql, ours, theirs| {
            let is_weight = |answer: &Answer| match answer {
                Answer::Refused(_, message) => message.starts_with("unrecognized weight"),
                _ => false,
            };
            let is_part = sql.contains("\"right\"(") || sql.contains("\"left\"(");
            let is_shifted = sql.contains("\"to_char\"(") && sql.contains('V');
            is_part && sql.contains("-2147483648")
                || is_shifted && state(ours) == "22003"
                || is_weight(theirs) && state(theirs) == "XX000" && state(ours).starts_with('2')
        },
    },
    Rule {
        name: "constants are folded",
        why: "PostgreSQL evaluates constant parts when it plans, also those that no row needs; \
              evaluated by itself, one such part is refused here with the same SQLSTATE",
        // Whether it is so takes a question: see `may_be_folded`.
        explains: |_, _, _, _| false,
    },
];

/// Whether an error comes of a value; templates are read when they are used.
fn is_of_value(answer: &Answer, sql: &str) -> bool {
    let Answer::Refused(state, message) = answer else {
        return false;
    };
    let is_template = state == "42601" && sql.contains("to_char");
    // "cannot convert infinity to bigint" is about a value.
    let is_conversion = state == "0A000" && message.starts_with("cannot ");
    // Elements of arrays are found to have no order when they are compared.
    let is_comparison = state == "42883" && message.starts_with("could not identify a comparison");
    // "array size exceeds the maximum allowed" is about what is made of values.
    let is_limit = state == "54000" && message.starts_with("array ");
    state.starts_with("22")
        || is_template
        || is_conversion
        || is_comparison
        || is_limit
        || is_of_flags(answer)
}

/// Whether a text says no bounds of a range, or is no `hstore`: errors of a value, whatever their class.
fn is_of_flags(answer: &Answer) -> bool {
    let Answer::Refused(_, message) = answer else {
        return false;
    };
    let is_of_hstore =
        message.starts_with("Unexpected end of string") || message.starts_with("Syntax error near");
    message == "invalid range bound flags" || is_of_hstore
}

/// The place of the rule of strict functions.
pub const STRICT: usize = 7;

/// Whether one server may have met an error beside a NULL with which the other ended.
pub fn may_be_strict(sql: &str, ours: &Answer, theirs: &Answer) -> bool {
    let (one, other) = (state(ours), state(theirs));
    is_of_value(ours, sql) && other.is_empty() || is_of_value(theirs, sql) && one.is_empty()
}

/// The place of the last rule.
pub const FOLDED: usize = RULES.len() - 1;

/// Whether PostgreSQL may have met an error where it folded constants: one that depends on values,
/// which is any but those of names and syntax.
pub fn may_be_folded(ours: &Answer, theirs: &Answer) -> bool {
    // What stands in a value may have a grammar and limits of its own.
    let is_of_data = |answer: &Answer| match answer {
        Answer::Refused(state, message) => {
            state.starts_with("22")
                || state.starts_with("23")
                || message.starts_with("array size exceeds")
                || message.ends_with("of jsonpath input")
                || is_of_flags(answer)
        }
        _ => false,
    };
    // 42883: array elements that cannot be compared are found when they are.
    let is_of_text = |state: &str| state.starts_with("42") && state != "42883";
    let is_of_value = is_of_data(theirs) || !state(theirs).is_empty() && !is_of_text(state(theirs));
    is_of_value && (state(ours).is_empty() || is_of_data(ours))
}

/// The SQLSTATE of an answer; empty for rows.
pub fn state(answer: &Answer) -> &str {
    match answer {
        Answer::Refused(state, _) => state,
        _ => "",
    }
}

/// Whether they are the same.
pub fn same(statement: &Statement, ours: &Answer, theirs: &Answer) -> bool {
    match (ours, theirs) {
        (Answer::Refused(one, _), Answer::Refused(other, _)) => one == other,
        (Answer::Rows(columns, rows, tag), Answer::Rows(other_columns, other_rows, other_tag)) => {
            let same_rows = match statement.is_ordered {
                true => rows == other_rows,
                false => sorted(rows) == sorted(other_rows),
            };
            columns == other_columns && tag == other_tag && same_rows
        }
        _ => false,
    }
}

/// The place of the rule that explains a difference.
pub fn explained(statement: &Statement, ours: &Answer, theirs: &Answer) -> Option<usize> {
    let sql = statement.tree.sql();
    let is_broken = |answer: &Answer| matches!(answer, Answer::Broken(_));
    if is_broken(ours) || is_broken(theirs) {
        return None;
    }
    let mut rules = RULES.iter();
    rules.position(|rule| (rule.explains)(statement, &sql, ours, theirs))
}

type RowsOf = [Vec<Option<String>>];

fn sorted(rows: &RowsOf) -> Vec<&Vec<Option<String>>> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort();
    rows
}

/// Whether the rows agree value by value, in order.
fn rows_agree(ours: &Answer, theirs: &Answer, agree: impl Fn(&str, &str) -> bool) -> bool {
    let (Answer::Rows(_, ours, _), Answer::Rows(_, theirs, _)) = (ours, theirs) else {
        return false;
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    let values_agree = |one: &Option<String>, other: &Option<String>| match (one, other) {
        (Some(one), Some(other)) => agree(one, other),
        (one, other) => one == other,
    };
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(one, other)| {
            one.len() == other.len() && one.iter().zip(*other).all(|(a, b)| values_agree(a, b))
        })
}

fn nearly_equal(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => {
            let larger = one.abs().max(other.abs());
            (one - other).abs() <= larger * 1e-9 || one.is_nan() && other.is_nan()
        }
        _ => false,
    }
}

/// The OIDs of types whose equal values may be written differently, besides numbers.
mod oid {
    pub const BPCHAR: u32 = 1042;
    pub const INTERVAL: u32 = 1186;
    pub const CITEXT: u32 = super::EXTENSIONS[0].1;
    pub const NUMBERS: [u32; 3] = [700, 701, 1700];
    /// Types of arrays, and those of their elements.
    pub const ARRAYS: [(u32, u32); 6] = [
        (CITEXT + super::ARRAY, CITEXT),
        (1014, BPCHAR),
        (1187, INTERVAL),
        (1021, 700),
        (1022, 701),
        (1231, 1700),
    ];
}

/// An answer in which equal values are written alike.
fn as_equal(answer: &Answer) -> Answer {
    let Answer::Rows(columns, rows, tag) = answer else {
        return answer.clone();
    };
    let alike = |(value, (_, of)): (&Option<String>, &(String, u32))| {
        let value = value.as_deref()?;
        let array = oid::ARRAYS.iter().find(|(array, _)| array == of);
        Some(match array {
            Some((_, element)) => each_element(value, |value| value_alike(*element, value)),
            None => value_alike(*of, value),
        })
    };
    let row = |row: &Vec<Option<String>>| row.iter().zip(columns).map(alike).collect();
    Answer::Rows(columns.clone(), rows.iter().map(row).collect(), tag.clone())
}

/// A value of a type, written as all that are equal to it.
fn value_alike(of: u32, value: &str) -> String {
    match of {
        oid::BPCHAR => value.trim_end_matches(' ').to_owned(),
        oid::CITEXT => value.to_lowercase(),
        oid::INTERVAL => microseconds(value).map_or_else(|| value.to_owned(), |n| n.to_string()),
        of if oid::NUMBERS.contains(&of) => plain_number(value),
        _ => value.to_owned(),
    }
}

/// The text of an array with other elements, all of them in quotes but NULL.
fn each_element(text: &str, change: impl Fn(&str) -> String) -> String {
    let (mut out, mut element) = (String::new(), String::new());
    let (mut in_quotes, mut was_quoted) = (false, false);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                in_quotes = !in_quotes;
                was_quoted = true;
            }
            '\\' => element.extend(characters.next()),
            '{' | '}' | ',' if !in_quotes => {
                if element == "NULL" && !was_quoted {
                    out.push_str(&element);
                } else if was_quoted || !element.is_empty() {
                    out.push_str(&format!("{:?}", change(&element)));
                }
                out.push(c);
                element.clear();
                was_quoted = false;
            }
            c => element.push(c),
        }
    }
    out
}

/// A number without what does not change it.
fn plain_number(text: &str) -> String {
    let text = match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    match text {
        "-0" => "0".to_owned(),
        _ => text.to_owned(),
    }
}

/// The length that intervals are compared by: months of thirty days, days of 24 hours.
fn microseconds(text: &str) -> Option<i128> {
    const DAY: i128 = 86_400_000_000;
    let mut total = 0;
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            let (sign, clock) = match word.strip_prefix('-') {
                Some(clock) => (-1, clock),
                None => (1, word),
            };
            let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
            let mut seconds: i128 = 0;
            for part in whole.split(':') {
                seconds = seconds * 60 + part.parse::<i128>().ok()?;
            }
            let fraction: i128 = format!("{fraction:0<6}").parse().ok()?;
            total += sign * (seconds * 1_000_000 + fraction);
            continue;
        }
        let count: i128 = word.parse().ok()?;
        total += count
            * match words.next()?.trim_end_matches('s') {
                "year" => 360 * DAY,
                "mon" => 30 * DAY,
                "day" => DAY,
                _ => return None,
            };
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Kind, Tree};
    use super::*;

    fn rows(values: &[&str]) -> Answer {
        let rows = values.iter().map(|value| vec![Some((*value).to_owned())]);
        Answer::Rows(
            vec![("v".to_owned(), 23)],
            rows.collect(),
            "SELECT".to_owned(),
        )
    }

    fn statement(sql: &str, is_ordered: bool) -> Statement {
        Statement {
            is_ordered,
            ..Statement::change(Tree::of(Kind::Fixed, sql))
        }
    }

    #[test]
    fn order_matters_where_there_is_one() {
        let (one, other) = (rows(&["1", "2"]), rows(&["2", "1"]));
        assert!(same(&statement("select", false), &one, &other));
        assert!(!same(&statement("select", true), &one, &other));
        assert!(!same(&statement("select", false), &one, &rows(&["1"])));
    }

    fn refused(state: &str) -> Answer {
        Answer::Refused(state.to_owned(), String::new())
    }

    fn typed(of: u32, values: &[&str]) -> Answer {
        let Answer::Rows(_, all, tag) = rows(values) else {
            unreachable!()
        };
        Answer::Rows(vec![("v".to_owned(), of)], all, tag)
    }

    /// Which rule explains it, by name.
    fn rule(sql: &str, ours: &Answer, theirs: &Answer) -> Option<&'static str> {
        let place = explained(&statement(sql, false), ours, theirs)?;
        Some(RULES[place].name)
    }

    #[test]
    fn there_are_few_rules() {
        assert!(RULES.len() <= 20);
    }

    #[test]
    fn a_broken_connection_is_never_explained() {
        let broken = Answer::Broken("gone".to_owned());
        assert_eq!(
            rule("select distinct a from t where b", &broken, &rows(&["1"])),
            None
        );
        assert_eq!(rule("select a", &rows(&["1"]), &broken), None);
    }

    #[test]
    fn a_time_limit_is_no_other_cancel() {
        let found = rule("select a", &refused("57014"), &rows(&["1"]));
        assert_eq!(found, Some("time limit"));
        assert_eq!(rule("select a", &refused("57P01"), &rows(&["1"])), None);
    }

    #[test]
    fn order_of_evaluation_needs_conditions_and_errors_of_values() {
        let (error, row) = (refused("22012"), rows(&["1"]));
        let found = rule("select a from t where b", &error, &row);
        assert_eq!(found, Some("order of evaluation"));
        assert_eq!(rule("select a", &error, &row), None);
        assert_eq!(
            rule("select a from t where b", &refused("42883"), &row),
            None
        );
        assert_eq!(rule("select a from t where b", &rows(&["2"]), &row), None);
        // A change of every row evaluates for every row.
        assert_eq!(rule("update t set a = b", &error, &row), None);
    }

    #[test]
    fn sums_differ_in_last_digits_only() {
        let sql = "select \"sum\"(a)";
        let found = rule(sql, &rows(&["0.30000000000000004"]), &rows(&["0.3"]));
        assert_eq!(found, Some("last digits of sums"));
        assert_eq!(rule(sql, &rows(&["0.3001"]), &rows(&["0.3"])), None);
        assert_eq!(
            rule("select a", &rows(&["0.30000000000000004"]), &rows(&["0.3"])),
            None
        );
    }

    #[test]
    fn equal_values_are_equal_by_their_type() {
        let of = |of, one, other| {
            rule(
                "select distinct a",
                &typed(of, &[one]),
                &typed(of, &[other]),
            )
        };
        let name = Some("any of equal values");
        assert_eq!(of(1700, "1.0", "1.00"), name);
        assert_eq!(of(1700, "1.0", "1.01"), None);
        assert_eq!(of(1700, "10", "1"), None);
        assert_eq!(of(701, "-0", "0"), name);
        assert_eq!(of(1042, "a", "a  "), name);
        assert_eq!(of(1042, "a", " a"), None);
        assert_eq!(of(25, "a", "a  "), None);
        assert_eq!(of(25, "1.0", "1.00"), None);
        assert_eq!(of(1186, "1 mon -1 day", "29 days"), name);
        assert_eq!(of(1186, "1 mon", "30 days 00:00:00.5"), None);
        assert_eq!(of(1014, "{\"a  \",b}", "{a,b}"), name);
        assert_eq!(of(1014, "{\"a,b\"}", "{a,b}"), None);
        assert_eq!(of(1014, "{\"NULL \"}", "{NULL}"), None);
        assert_eq!(of(1014, "{{a},{\"\"}}", "{{\"a \"},{\"  \"}}"), name);
        assert_eq!(of(1231, "{1.0,NULL}", "{1.00,NULL}"), name);
        assert_eq!(of(1231, "{1.0}", "{1.0,1.0}"), None);
        assert_eq!(of(1009, "{a}", "{\"a  \"}"), None);
        let plain = (typed(1700, &["1.0"]), typed(1700, &["1.00"]));
        assert_eq!(rule("select a", &plain.0, &plain.1), None);
    }

    #[test]
    fn of_several_errors_all_are_of_data() {
        let sql = "insert into t values (1)";
        let found = rule(sql, &refused("23505"), &refused("23503"));
        assert_eq!(found, Some("which of several errors"));
        assert_eq!(rule(sql, &refused("23505"), &rows(&[])), None);
        assert_eq!(rule(sql, &refused("23505"), &refused("42703")), None);
    }

    #[test]
    fn a_serialization_failure_is_no_deadlock() {
        let found = rule("commit", &refused("40001"), &rows(&[]));
        assert_eq!(found, Some("serialization failures"));
        assert_eq!(rule("commit", &refused("40P01"), &rows(&[])), None);
    }

    #[test]
    fn comparisons_may_be_missing_in_arms_that_are_left_out() {
        let message = "could not identify a comparison function for type lseg";
        let is_missing = Answer::Refused("42883".to_owned(), message.to_owned());
        let known = Some("missing comparisons");
        let sql = "select case 1 when 2 then greatest(a) end";
        assert_eq!(rule(sql, &is_missing, &rows(&["1"])), known);
        assert_eq!(rule("select greatest(a)", &is_missing, &rows(&["1"])), None);
    }

    #[test]
    fn what_a_function_fills_is_looked_at_when_it_is_called() {
        let message = "first argument of json_populate_record must be a row type";
        let of_row = Answer::Refused("42804".to_owned(), message.to_owned());
        let sql = "select \"json_populate_record\"(a, b) from t";
        let known = Some("rows to fill");
        for other in [refused("22012"), refused("23505"), rows(&["1"])] {
            assert_eq!(rule(sql, &of_row, &other), known);
            assert_eq!(rule(sql, &other, &of_row), known);
            assert_eq!(rule("select a", &of_row, &other), None);
        }
        assert_eq!(rule(sql, &of_row, &refused("42703")), None);
    }

    #[test]
    fn what_is_not_there_yet_is_refused_by_us_alone() {
        let found = rule("select a", &refused("0A000"), &rows(&["1"]));
        assert_eq!(found, Some("not there yet"));
        assert_eq!(rule("select a", &rows(&["1"]), &refused("0A000")), None);
        assert_eq!(rule("select a", &refused("42883"), &rows(&["1"])), None);
        let of_value = Answer::Refused("0A000".to_owned(), "cannot convert NaN".to_owned());
        assert_eq!(rule("select a", &of_value, &rows(&["1"])), None);
    }

    #[test]
    fn strict_functions_need_a_null() {
        assert_eq!(RULES[STRICT].name, "strict functions");
        let may_be = |ours: &Answer, theirs: &Answer| {
            may_be_strict("select f(null::int4, g())", ours, theirs)
        };
        let row = rows(&["1"]);
        assert!(may_be(&refused("22012"), &row) && may_be(&row, &refused("22012")));
        assert!(!may_be(&refused("42883"), &row) && !may_be(&refused("42601"), &row));
        assert!(!may_be(&rows(&["2"]), &row));
        // It explains nothing until a NULL has been found.
        assert_eq!(
            rule("select f(null::int4, g())", &refused("22012"), &row),
            None
        );
    }

    #[test]
    fn the_sign_of_a_comparison_counts() {
        let sql = "select \"bttextcmp\"(a, b)";
        assert_eq!(
            rule(sql, &rows(&["-3"]), &rows(&["-1"])),
            Some("sign of a comparison")
        );
        assert_eq!(rule(sql, &rows(&["3"]), &rows(&["-1"])), None);
        assert_eq!(rule("select a", &rows(&["-3"]), &rows(&["-1"])), None);
    }

    #[test]
    fn only_errors_of_values_may_come_of_folding() {
        let row = rows(&[]);
        for state in ["22012", "0A000", "XX000", "54000", "42883"] {
            assert!(may_be_folded(&row, &refused(state)), "{state}");
            assert_eq!(rule("select a", &row, &refused(state)), None);
        }
        assert!(!may_be_folded(&row, &refused("42703")));
        assert!(!may_be_folded(&row, &row));
        assert!(!may_be_folded(&refused("42883"), &refused("22012")));
    }
}
