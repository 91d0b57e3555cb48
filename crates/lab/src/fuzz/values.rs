//! Values of every type: those at the edges of what it holds, and those that repeat, so that keys
//! meet and groups form.

use crate::tpcc::random::Random;

/// Literals of a type, without quotes; none for a type that is not generated.
pub fn literals(of: &str) -> Option<&'static [&'static str]> {
    Some(match of {
        "bool" => &["true", "false"],
        "int2" => &["0", "1", "-1", "2", "7", "32767", "-32768"],
        "int4" => &[
            "0",
            "1",
            "-1",
            "2",
            "3",
            "10",
            "100",
            "2147483647",
            "-2147483648",
        ],
        "int8" => &[
            "0",
            "1",
            "-1",
            "5",
            "4294967296",
            "9223372036854775807",
            "-9223372036854775808",
        ],
        "oid" => &["0", "1", "16384", "4294967295"],
        "numeric" => &[
            "0",
            "1",
            "-1",
            "0.5",
            "-2.50",
            "3.14159265358979",
            "1e10",
            "-1e-10",
            "99999999999999999999",
            "0.00000000000000000001",
            "NaN",
            "Infinity",
            "-Infinity",
            "12.340",
        ],
        "float4" => &[
            "0",
            "-0",
            "1",
            "-1.5",
            "0.1",
            "3.4e38",
            "1e-45",
            "NaN",
            "Infinity",
            "-Infinity",
        ],
        "float8" => &[
            "0",
            "-0",
            "1",
            "-1",
            "0.1",
            "2.5",
            "-3.5",
            "1e300",
            "1e-300",
            "NaN",
            "Infinity",
            "-Infinity",
            "123456789.125",
        ],
        "text" => &[
            "",
            "a",
            "A",
            "b",
            "abc",
            "ABC",
            " a ",
            "a%c_",
            "\\",
            "12",
            "-3.5",
            "true",
            "2020-02-29",
            "ä",
            "ß€𝄞",
            "ab\ncd",
            "{1,2}",
            "Hello World",
            "aaa",
            "foo,bar",
        ],
        "varchar" => &["", "a", "abc", "Abc ", "é", "10"],
        "bpchar" => &["", "a", "a  ", "abc", "B"],
        "name" => &["", "a", "pg_class", "ABC"],
        "char" => &["", "a", "Z", "0"],
        "bytea" => &[
            "\\x",
            "\\x00",
            "\\x61",
            "\\xdeadbeef",
            "\\x616263",
            "\\xff00ff",
        ],
        "date" => &[
            "2020-02-29",
            "1999-12-31",
            "2000-01-01",
            "1970-01-01",
            "0044-03-15 BC",
            "infinity",
            "-infinity",
            "9999-12-31",
            "2024-03-31",
        ],
        "time" => &[
            "00:00:00",
            "12:34:56",
            "23:59:59.999999",
            "24:00:00",
            "01:02:03.4",
        ],
        "timetz" => &[
            "00:00:00+00",
            "12:34:56+02",
            "23:59:59.999999-12",
            "24:00:00+00",
        ],
        "timestamp" => &[
            "2020-02-29 12:34:56",
            "1999-12-31 23:59:59.999999",
            "2000-01-01 00:00:00",
            "1970-01-01 00:00:00",
            "infinity",
            "-infinity",
            "0001-01-01 00:00:00 BC",
            "2024-03-31 02:30:00",
        ],
        "timestamptz" => &[
            "2020-02-29 12:34:56+00",
            "1999-12-31 23:59:59.999999-08",
            "2000-01-01 00:00:00+00",
            "1970-01-01 00:00:00+00",
            "infinity",
            "-infinity",
            "2024-03-31 01:30:00+01",
        ],
        "interval" => &[
            "0",
            "1 day",
            "-1 day",
            "1 month",
            "1 year 2 mons 3 days 04:05:06.789",
            "-01:02:03",
            "36:00:00",
            "1 mon -1 day",
            "100 years",
        ],
        "uuid" => &[
            "00000000-0000-0000-0000-000000000000",
            "11111111-2222-3333-4444-555555555555",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ],
        "citext" => &[
            "",
            "a",
            "A",
            "abc",
            "Abc ",
            "É",
            "é",
            "12",
            "a%C_",
            "Hello World",
        ],
        "hstore" => &[
            "",
            "a=>1",
            "b=>NULL, a=>1",
            "aa=>\"x y\", a=>t",
            "\"\"=>\"\", \"q\\\"\"=>12",
            "a=>2, b=>abc, c=>null",
        ],
        "json" | "jsonb" => &[
            "null",
            "1",
            "\"a\"",
            "{}",
            "[]",
            "{\"a\": 1, \"b\": [1, 2, null]}",
            "[1, {\"a\": \"x\"}]",
            "true",
        ],
        "jsonpath" => &[
            "$",
            "$.a",
            "strict $[*]",
            "$.** ? (@ > 1)",
            "$.b[last].type()",
        ],
        "int4range" => &[
            "empty",
            "(,)",
            "[0,1)",
            "[1,5)",
            "[3,9]",
            "(5,)",
            "(,-1]",
            "[2147483646,2147483647)",
            "[-2147483648,0]",
        ],
        "int8range" => &["empty", "(,)", "[1,5)", "[5,9)", "(2,9223372036854775806]"],
        "numrange" => &[
            "empty",
            "(,)",
            "[1,2]",
            "(1,2)",
            "[2,2]",
            "(2,3.5]",
            "[NaN,NaN]",
            "[-Infinity,0)",
        ],
        "daterange" => &[
            "empty",
            "[2020-01-01,2020-02-01)",
            "(2020-01-15,]",
            "(-infinity,infinity)",
            "[2020-02-01,2020-02-01]",
        ],
        "tsrange" => &[
            "empty",
            "[2020-01-01,2020-01-02)",
            "(\"2020-01-01 12:00\",\"2020-01-03 00:00:00.5\"]",
            "(,)",
            "[-infinity,2020-01-01)",
        ],
        "tstzrange" => &["empty", "[2020-01-01 00:00+00,2020-01-02 00:00+00)", "(,)"],
        "int4multirange" => &["{}", "{(,)}", "{[1,3),[5,9)}", "{(,0),[2,4)}", "{[3,6)}"],
        "int8multirange" => &["{}", "{[1,3),[5,9)}", "{(,4)}"],
        "nummultirange" => &["{}", "{[1,2),(2,3]}", "{[1.5,1.5]}", "{(,1],(4,)}"],
        "datemultirange" => &["{}", "{[2020-01-01,2020-01-10),(2020-02-01,)}"],
        "tsmultirange" => &["{}", "{(,2020-01-01),[2020-01-02,2020-01-03]}"],
        "tstzmultirange" => &["{}", "{[2020-01-01 00:00+00,2020-01-02 00:00+00)}"],
        "inet" => &[
            "10.0.0.1",
            "10.0.0.0/8",
            "10.1.2.3/16",
            "0.0.0.0",
            "255.255.255.255",
            "::1",
            "2001:db8::1/64",
            "::ffff:1.2.3.4",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ],
        "cidr" => &[
            "10.0.0.0/8",
            "10.1",
            "0.0.0.0/0",
            "192.168.1.0/25",
            "::/0",
            "2001:db8::/32",
        ],
        "macaddr" => &[
            "08:00:2b:01:02:03",
            "00:00:00:00:00:00",
            "ff:ff:ff:ff:ff:ff",
        ],
        "macaddr8" => &[
            "08:00:2b:01:02:03:04:05",
            "08:00:2b:ff:fe:01:02:03",
            "08002b010203",
        ],
        "varbit" => &[
            "",
            "0",
            "1",
            "101",
            "00000000",
            "111111111",
            "x1f",
            "10000000000000001",
        ],
        "point" => &[
            "(0,0)",
            "(1,1)",
            "(3,4)",
            "(-1.5,2)",
            "(1,1.0000005)",
            "(NaN,1)",
            "(Infinity,-Infinity)",
            "(1e300,1e-300)",
        ],
        "line" => &["{1,-1,0}", "{0,1,-2}", "{1,0,3}", "{3,4,-10}", "{NaN,1,2}"],
        "lseg" => &[
            "[(0,0),(2,2)]",
            "[(0,2),(2,0)]",
            "[(1,1),(1,1)]",
            "[(-1,3),(4,3)]",
            "[(NaN,0),(1,1)]",
        ],
        "box" => &[
            "(2,2),(0,0)",
            "(3,3),(1,1)",
            "(1,1),(1,1)",
            "(NaN,1),(0,0)",
            "(Infinity,Infinity),(-1,-1)",
        ],
        "path" => &[
            "[(1,1)]",
            "((1,1))",
            "[(0,0),(3,0),(3,4)]",
            "((0,0),(3,0),(3,4))",
            "[(NaN,1),(2,2)]",
        ],
        "polygon" => &[
            "((1,1))",
            "((0,0),(0,4),(4,4),(4,0))",
            "((0,0),(4,0),(4,4),(2,1),(0,4))",
            "((1,1),(1,2),(2,2),(2,1))",
            "((NaN,0),(1,1),(2,0))",
        ],
        "circle" => &[
            "<(0,0),1>",
            "<(0,0),0>",
            "<(1,1),2>",
            "<(0,0),NaN>",
            "<(5,5),Infinity>",
        ],
        "money" => &[
            "0",
            "1",
            "-1",
            "0.01",
            "-$1,234.56",
            "99.99",
            "92233720368547758.07",
            "-92233720368547758.08",
        ],
        "xid" | "cid" => &["0", "1", "4294967295"],
        "pg_lsn" => &["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"],
        _ => return None,
    })
}

/// Texts that mean something to functions that read them: patterns, formats, units, names.
const MEANINGFUL: [&str; 39] = [
    "^a",
    "b.*c",
    "(a)(b)?",
    "[[:alpha:]]+",
    "a|b",
    "x*",
    "%b%",
    "a_c",
    "YYYY-MM-DD",
    "HH24:MI:SS.US",
    "FM999.99",
    "9990.00",
    "S999",
    "RN",
    "Mon DD, YYYY",
    "day",
    "hour",
    "month",
    "epoch",
    "year",
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "hex",
    "base64",
    "escape",
    "g",
    "i",
    ",",
    "%s and %I",
    "%L",
    "UTF8",
    "NFC",
    "sha256",
    "The fat cats & rats",
    "\"fat cats\" or -rat",
    "http://a.com/b?c a-b-c x@y.org",
    "default",
    "MinWords=1, MaxWords=3",
];

/// Numbers for arguments that say how much there shall be.
pub const SMALL: [&str; 7] = ["0", "1", "2", "3", "5", "-1", "12"];

/// A literal of a type, quoted and cast; NULL now and then.
pub fn literal(random: &mut Random, of: &str) -> String {
    if random.percent(6) {
        return format!("null::{}", quoted_type(of));
    }
    let Some(all) = literals(of) else {
        return format!("null::{of}");
    };
    let text = match of {
        "text" if random.percent(35) => pick(random, &MEANINGFUL).to_owned(),
        "int4" | "int8" | "int2" if random.percent(40) => {
            (random.between(0, 40) as i64 - 20).to_string()
        }
        "numeric" if random.percent(40) => {
            let digits = random.between(0, 100_000_000_000) as i64 - 50_000_000_000;
            let scale = random.between(0, 12) as usize;
            decimal(digits, scale)
        }
        "float8" | "float4" if random.percent(40) => {
            decimal(random.between(0, 2_000_000) as i64 - 1_000_000, 4)
        }
        "text" if random.percent(20) => {
            let length = random.between(1, 6);
            (0..length)
                .map(|_| pick(random, &['a', 'b', 'c', 'A', ' ', '1']))
                .collect()
        }
        "date" if random.percent(40) => random_date(random),
        "timestamp" if random.percent(40) => {
            format!("{} {}", random_date(random), random_time(random))
        }
        "timestamptz" if random.percent(40) => {
            format!("{} {}+00", random_date(random), random_time(random))
        }
        _ => pick(random, all).to_owned(),
    };
    format!("{}::{}", quote(&text), quoted_type(of))
}

fn random_date(random: &mut Random) -> String {
    let (year, month) = (random.between(1890, 2050), random.between(1, 12));
    format!("{year}-{month:02}-{:02}", random.between(1, 28))
}

fn random_time(random: &mut Random) -> String {
    let (hour, minute) = (random.between(0, 23), random.between(0, 59));
    format!(
        "{hour:02}:{minute:02}:{:02}.{:03}",
        random.between(0, 59),
        random.between(0, 999)
    )
}

fn decimal(digits: i64, scale: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let text = format!("{:0width$}", digits.abs(), width = scale + 1);
    let (whole, rest) = text.split_at(text.len() - scale);
    match rest {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{rest}"),
    }
}

/// One of several.
pub fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.between(0, all.len() as u64 - 1) as usize]
}

/// A text as SQL writes it.
pub fn quote(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match doubled.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

/// A type's name as a cast needs it: `char` is another type without quotes.
pub fn quoted_type(of: &str) -> String {
    match of {
        "char" => "\"char\"".to_owned(),
        "bpchar" => "bpchar".to_owned(),
        _ => match of.strip_prefix('_') {
            Some(element) => format!("{}[]", quoted_type(element)),
            None => of.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_numbers_written() {
        assert_eq!(quote("it's"), "'it''s'");
        assert_eq!(quote("a\\b"), "E'a\\\\b'");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(1234, 2), "12.34");
        assert_eq!(decimal(7, 0), "7");
        assert_eq!(quoted_type("_char"), "\"char\"[]");
    }
}
