//! Random histories, checked against models.

use super::*;

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// The entries that an index on `column` should have.
fn entries_of(rows: &BTreeMap<Key, Vec<u8>>, column: usize) -> Vec<Key> {
    let index = index_on(column, false);
    let mut entries: Vec<_> = rows
        .iter()
        .map(|(key, row)| index_key(&index, &Row::parse(row).unwrap(), key).unwrap())
        .collect();
    entries.sort();
    entries
}

fn has_second(rows: &BTreeMap<Key, Vec<u8>>, but: &[u8], second: &str) -> bool {
    let mut others = rows.iter().filter(|(key, _)| *key != but);
    others.any(|(_, row)| Row::parse(row).unwrap().column(1) == Some(second.as_bytes()))
}

/// One transaction after another, with savepoints: rows and indexes are as in a map.
#[test]
fn rows_and_indexes_are_as_in_a_map() {
    for seed in 1..60 {
        let mut random = Random::new(seed);
        let leader = Alone::with_table();
        let client = Client::new(&leader, Isolation::ReadCommitted);
        let mut committed = BTreeMap::new();
        for _txn in 0..12 {
            let mut rows = committed.clone();
            let mut savepoints: Vec<(Savepoint, BTreeMap<Key, Vec<u8>>)> = Vec::new();
            for _step in 0..25 {
                match random.below(14) {
                    0 => {
                        let savepoint = client.run(|txn| Ok(txn.savepoint())).end().unwrap();
                        savepoints.push((savepoint, rows.clone()));
                    }
                    1 if !savepoints.is_empty() => {
                        let place = random.below(savepoints.len());
                        savepoints.truncate(place + 1);
                        let (savepoint, before) = savepoints[place].clone();
                        rows = before;
                        client.now(move |txn| {
                            txn.rollback_to(savepoint);
                            Ok(())
                        });
                    }
                    2 if !savepoints.is_empty() => {
                        let place = random.below(savepoints.len());
                        let savepoint = savepoints[place].0;
                        savepoints.truncate(place);
                        client.now(move |txn| {
                            txn.release(savepoint);
                            Ok(())
                        });
                    }
                    _ => write(&client, &mut rows, &mut random),
                }
                check(&client, &rows, &mut random);
            }
            if random.below(4) == 0 {
                client.rollback();
            } else {
                client.commit().unwrap();
                committed = rows;
            }
            assert_eq!(leader.all(TABLE), committed);
            for (tree, column) in [(INDEX, 0), (UNIQUE, 1)] {
                let entries: Vec<_> = leader.all(tree).into_keys().collect();
                assert_eq!(entries, entries_of(&committed, column), "seed {seed}");
            }
            assert!(leader.0.locks.is_empty());
        }
    }
}

fn write(client: &Client, rows: &mut BTreeMap<Key, Vec<u8>>, random: &mut Random) {
    let key = ["a", "b", "c", "d", "e", "f", "g"][random.below(7)];
    let first = ["1", "2", "3"][random.below(3)];
    let second = ["", "", "x", "y", "z"][random.below(5)];
    let (new, bytes) = (row(first, second), key.as_bytes().to_vec());
    let is_duplicate = !second.is_empty() && has_second(rows, &bytes, second);
    match random.below(3) {
        0 => {
            let deleted = client.delete(key).end();
            assert_eq!(deleted, Ok(rows.remove(&bytes).is_some()));
            return;
        }
        1 => {
            let expected = match (rows.contains_key(&bytes), is_duplicate) {
                (true, _) => Inserted::Duplicate(TABLE),
                (false, true) => Inserted::Duplicate(UNIQUE),
                (false, false) => Inserted::Done,
            };
            assert_eq!(client.insert(key, new.clone()).end(), Ok(expected));
            if expected != Inserted::Done {
                return;
            }
        }
        _ => {
            let expected = rows.contains_key(&bytes).then_some(match is_duplicate {
                true => Inserted::Duplicate(UNIQUE),
                false => Inserted::Done,
            });
            let wanted = new.clone();
            let updated = client.update(key, move |_| wanted.clone());
            assert_eq!(updated.end(), Ok(expected));
            if expected != Some(Inserted::Done) {
                return;
            }
        }
    }
    rows.insert(bytes, new);
}

fn check(client: &Client, rows: &BTreeMap<Key, Vec<u8>>, random: &mut Random) {
    let direction = [Direction::Forward, Direction::Backward][random.below(2)];
    let limit = 1 + random.below(5);
    let (column, index) = [(0, INDEX), (1, UNIQUE)][random.below(2)];
    let mut expected: Vec<_> = rows.clone().into_iter().collect();
    let mut entries = entries_of(rows, column);
    if direction == Direction::Backward {
        expected.reverse();
        entries.reverse();
    }
    client.now(move |txn| {
        let found = scan_all(txn, TABLE, KeyRange::all(), direction, limit)?;
        assert_eq!(found, expected);
        let found = scan_all(txn, index, KeyRange::all(), direction, limit)?;
        let found: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, entries);
        Ok(())
    });
}

const ACCOUNTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What a client of the bank does next.
enum Doing {
    Idle,
    /// Takes from the first, then gives to the second.
    Taking(Statement<Option<Inserted>>, &'static str, i64),
    Giving(Statement<Option<Inserted>>),
}

fn add(amount: i64) -> impl Fn(&[u8]) -> Vec<u8> {
    move |old| {
        row(
            &(first_of(old).parse::<i64>().unwrap() + amount).to_string(),
            "",
        )
    }
}

fn sum(rows: &[(Key, Vec<u8>)]) -> i64 {
    rows.iter()
        .map(|(_, row)| first_of(row).parse::<i64>().unwrap())
        .sum()
}

/// Transfers between accounts by many clients in every order: the sum stays, also as readers see
/// it, and nobody waits for ever.
#[test]
fn transfers_keep_the_sum() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (mut done, mut failed) = (0, 0);
        for seed in 1..40 {
            let (commits, errors) = bank(&mut Random::new(seed), isolation);
            done += commits;
            failed += errors;
        }
        assert!(done > 1_000 && failed > 50, "{done} done, {failed} failed");
    }
}

fn bank(random: &mut Random, isolation: Isolation) -> (usize, usize) {
    let leader = Alone::with_table();
    let setup = Client::new(&leader, isolation);
    for account in ACCOUNTS {
        setup.insert(account, row("100", "")).end().unwrap();
    }
    setup.commit().unwrap();
    let reader = Client::new(&leader, isolation);
    let mut clients: Vec<_> = (0..6)
        .map(|_| (Client::new(&leader, isolation), Doing::Idle))
        .collect();
    let (mut commits, mut errors) = (0, 0);
    for _step in 0..600 {
        let (client, doing) = &mut clients[random.below(6)];
        step(client, doing, random, &mut commits, &mut errors);
        if random.below(10) == 0 {
            let all =
                |txn: &mut Txn<Alone>| scan_all(txn, TABLE, KeyRange::all(), Direction::Forward, 2);
            assert_eq!(sum(&reader.now(all)), 500);
            reader.rollback();
        }
    }
    drop(clients);
    assert!(leader.0.locks.is_empty());
    assert_eq!(sum(&leader.all(TABLE).into_iter().collect::<Vec<_>>()), 500);
    (commits, errors)
}

fn step(
    client: &Client,
    doing: &mut Doing,
    random: &mut Random,
    commits: &mut usize,
    errors: &mut usize,
) {
    let failed = |error: Error| {
        let expected = [SqlState::DEADLOCK_DETECTED, SqlState::SERIALIZATION_FAILURE];
        assert!(expected.contains(&error.state()), "{error}");
        client.rollback();
    };
    *doing = match std::mem::replace(doing, Doing::Idle) {
        Doing::Idle => {
            let (from, to) = (ACCOUNTS[random.below(5)], ACCOUNTS[random.below(5)]);
            let amount = random.below(50) as i64;
            Doing::Taking(client.update(from, add(-amount)), to, amount)
        }
        Doing::Taking(mut taking, to, amount) => match taking.poll() {
            false => Doing::Taking(taking, to, amount),
            true => match taking.end() {
                Ok(taken) => {
                    assert_eq!(taken, Some(Inserted::Done));
                    Doing::Giving(client.update(to, add(amount)))
                }
                Err(error) => {
                    *errors += 1;
                    failed(error);
                    Doing::Idle
                }
            },
        },
        Doing::Giving(mut giving) => {
            if !giving.poll() {
                *doing = Doing::Giving(giving);
                return;
            }
            match giving.end() {
                Ok(given) => {
                    assert_eq!(given, Some(Inserted::Done));
                    client.commit().unwrap();
                    *commits += 1;
                }
                Err(error) => {
                    *errors += 1;
                    failed(error);
                }
            }
            Doing::Idle
        }
    };
}
