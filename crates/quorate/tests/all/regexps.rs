//! Random regular expressions, on PostgreSQL 15 and on one node: the same matches, groups and errors.
//!
//! Expressions and texts follow from a seed, over a small alphabet, so that much of what is written
//! matches somewhere. They hold every construct of advanced expressions; only parentheses that come
//! `{0}` times are left out, where PostgreSQL takes back references to them for impossible even in
//! branches that it does not take.

use postgres::{Client, NoTls, SimpleQueryMessage};

use lab::host::Endpoint;

use crate::shared;

const SEED: u64 = 20_240_229;
const CASES: usize = 600;

/// Pseudo-random numbers (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const SETS: [&str; 12] = [
    "[ab]",
    "[^a]",
    "[a-c]",
    ".",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    "[[:alpha:]]",
    r"[\da]",
    "[b-]",
    "[]a]",
];
const CONDITIONS: [&str; 8] = ["^", "$", r"\y", r"\Y", r"\m", r"\M", r"\A", r"\Z"];
const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
const QUANTIFIERS: [&str; 14] = [
    "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}", "{2,}", "{1,2}?", "{0,2}?", "{1,1}",
    "{1,1}?",
];

/// An expression that is being written.
struct Writer {
    random: Random,
    /// How many parentheses capture so far.
    groups: usize,
}

impl Writer {
    fn branches(&mut self, depth: usize, out: &mut String) {
        for number in 0..self.random.one_of(&[1, 1, 1, 2, 2, 3]) {
            if number > 0 {
                out.push('|');
            }
            for _ in 0..self.random.one_of(&[0, 1, 1, 2, 2, 3, 3, 4]) {
                self.item(depth, out);
            }
        }
    }

    fn item(&mut self, depth: usize, out: &mut String) {
        let kind = self.random.below(100);
        match kind {
            0..=44 => out.push_str(self.random.one_of(&["a", "a", "b", "b", "c"])),
            45..=54 => out.push_str(self.random.one_of(&SETS)),
            55..=74 if depth > 0 => {
                self.groups += 1;
                self.parentheses("(", depth, out);
            }
            75..=87 if depth > 0 => self.parentheses("(?:", depth, out),
            88..=91 if self.groups > 0 => {
                let group = 1 + self.random.below(self.groups);
                out.push_str(&format!("\\{group}"));
            }
            92..=94 => {
                let look = self.random.one_of(&LOOKS);
                return self.parentheses(look, 1, out);
            }
            95.. => return out.push_str(self.random.one_of(&CONDITIONS)),
            _ => out.push('b'),
        }
        if self.random.below(10) < 4 {
            out.push_str(self.random.one_of(&QUANTIFIERS));
        }
    }

    fn parentheses(&mut self, opening: &str, depth: usize, out: &mut String) {
        out.push_str(opening);
        let nested = if opening.starts_with("(?=")
            || opening.starts_with("(?!")
            || opening.starts_with("(?<")
        {
            0
        } else {
            depth - 1
        };
        self.branches(nested, out);
        out.push(')');
    }
}

/// What a server answers, as lines.
fn ask(client: &mut Client, sql: &str) -> Vec<String> {
    match client.simple_query(sql) {
        Err(error) => {
            let said = error.as_db_error().map(|said| said.message().to_owned());
            vec![said.unwrap_or_else(|| error.to_string())]
        }
        Ok(messages) => messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            })
            .collect(),
    }
}

fn connect(endpoint: &Endpoint) -> Client {
    let mut config = postgres::Config::new();
    config
        .host(&endpoint.host)
        .port(endpoint.port)
        .user("postgres")
        .dbname("postgres");
    config.connect(NoTls).expect("a session")
}

#[test]
fn random_regular_expressions_match_the_same() {
    let mut postgres = connect(shared::postgres());
    let mut quorate = connect(&shared::one_node().nodes()[0]);
    let mut writer = Writer {
        random: Random(SEED),
        groups: 0,
    };
    let mut wrong = Vec::new();
    for _ in 0..CASES {
        writer.groups = 0;
        let mut pattern = String::new();
        let depth = writer.random.one_of(&[1, 2, 2, 3]);
        writer.branches(depth, &mut pattern);
        let random = &mut writer.random;
        let length = random.one_of(&[0, 1, 3, 5, 8, 12, 16]);
        let letters = [
            "a", "a", "a", "b", "b", "b", "c", "c", "A", "B", "1", " ", "_", "\n",
        ];
        let text: String = (0..length).map(|_| random.one_of(&letters)).collect();
        let flags = random.one_of(&["g", "g", "gi", "gn", "gp", "gw", "gx"]);
        let sql = format!("select regexp_matches('{text}', '{pattern}', '{flags}')");
        let (theirs, ours) = (ask(&mut postgres, &sql), ask(&mut quorate, &sql));
        if theirs != ours {
            wrong.push(format!(
                "{sql}\n  PostgreSQL {theirs:?}\n  Quorate    {ours:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
