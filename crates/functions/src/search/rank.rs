//! How well a document meets a query.
//!
//! ```text
//! ts_rank     how often the words are there, and, if all are wanted, how near to one another
//! ts_rank_cd  the stretches of text that meet the query: the shorter, the better
//! ```
//! The arithmetic is PostgreSQL's, single and double precision where it has them, so that the last
//! digits are the same.
//!
//! Source: PostgreSQL 15 manual, section 12.3.3, and the server's answers.

use base::memory::Reservation;
use base::{coro, Error, Result, SqlState};

use super::matching::{counts, is_met, Document, Lexemes, Met, Places};
use types::search::{Entry, Node, Operand, Position, Query, POSITION_END};
use types::{Array, Datum};

/// What `D`, `C`, `B` and `A` weigh if nothing else is said.
pub(super) const WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];

const BY_LOG_LENGTH: i32 = 1;
const BY_LENGTH: i32 = 2;
const BY_DISTANCE: i32 = 4;
const BY_LEXEMES: i32 = 8;
const BY_LOG_LEXEMES: i32 = 16;
const BY_ITSELF: i32 = 32;

/// The weights of an array.
///
/// # Errors
/// 2202E, 22004, 22023.
pub(super) fn weights_of(array: &Array) -> Result<[f32; 4]> {
    let bad = |message: &str| Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
    if array.dimensions.len() != 1 {
        return Err(bad("array of weight must be one-dimensional"));
    }
    if array.elements.len() < WEIGHTS.len() {
        return Err(bad("array of weight is too short"));
    }
    if array.elements.iter().any(Datum::is_null) {
        let message = "array of weight must not contain nulls";
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let mut weights = WEIGHTS;
    for (weight, given) in weights.iter_mut().zip(&array.elements) {
        if let Datum::Float4(given) = given {
            if *given >= 0.0 {
                *weight = *given;
            }
        }
        if *weight > 1.0 {
            let message = "weight out of range";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok(weights)
}

fn weight_of(weights: &[f32; 4], position: Position) -> f32 {
    weights[usize::from(position.weight())]
}

/// How many words a document has: places, and lexemes without any.
fn length_of(lexemes: &Lexemes<'_>) -> usize {
    let counts = lexemes.0.iter().map(|entry| entry.count().max(1));
    counts.sum()
}

fn nearness(distance: i32) -> f32 {
    match distance > 100 {
        true => 1e-30,
        false => {
            let far = (f64::from(distance as f32 / 1.5) - 2.0).exp();
            (1.0 / (1.005 + 0.05 * far)) as f32
        }
    }
}

/// The operands of a query, each lexeme once, in byte order.
fn distinct(query: &Query) -> Vec<&Operand> {
    let mut operands: Vec<&Operand> = query.operands().map(|(_, operand)| operand).collect();
    operands.sort_by(|a, b| a.text.cmp(&b.text));
    operands.dedup_by(|a, b| a.text == b.text);
    operands
}

fn rank_or(weights: &[f32; 4], lexemes: &Lexemes<'_>, query: &Query) -> Result<f32> {
    let operands = distinct(query);
    let mut sum = 0f32;
    for operand in &operands {
        for entry in lexemes.asked(operand) {
            coro::work(4 + 4 * entry.count())?;
            let (mut own, mut best, mut best_at) = (0f32, -1f32, 0i32);
            let known = entry.positions();
            let unknown = (entry.count() == 0).then_some(Position(0));
            for (at, position) in (0i32..).zip(known.chain(unknown)) {
                let weight = weight_of(weights, position);
                own += weight / ((at + 1) * (at + 1)) as f32;
                if weight > best {
                    (best, best_at) = (weight, at);
                }
            }
            let part = best + own - best / ((best_at + 1) * (best_at + 1)) as f32;
            sum = (f64::from(sum) + f64::from(part) / 1.644_934_066_85) as f32;
        }
    }
    if !operands.is_empty() {
        sum /= operands.len() as f32;
    }
    Ok(sum)
}

fn rank_and(weights: &[f32; 4], lexemes: &Lexemes<'_>, query: &Query) -> Result<f32> {
    let operands = distinct(query);
    if operands.len() < 2 {
        return rank_or(weights, lexemes, query);
    }
    let nowhere = (vec![Position::new(POSITION_END - 1, 0)], false);
    // Of each operand the last lexeme's places, and whether they are known.
    let mut all: Vec<Option<(Vec<Position>, bool)>> = vec![None; operands.len()];
    let mut rank = -1f32;
    for (number, operand) in operands.iter().enumerate() {
        for entry in lexemes.asked(operand) {
            let own: (Vec<Position>, bool) = match entry.count() {
                0 => nowhere.clone(),
                _ => (entry.positions().collect(), true),
            };
            for other in all[..number].iter().flatten() {
                for position in &own.0 {
                    coro::work(8 * other.0.len())?;
                    for there in &other.0 {
                        let apart = i32::from(position.place()) - i32::from(there.place());
                        let mut distance = apart.abs();
                        if distance == 0 && own.1 && other.1 {
                            continue;
                        }
                        if distance == 0 {
                            distance = i32::from(POSITION_END);
                        }
                        let product = weight_of(weights, *position)
                            * weight_of(weights, *there)
                            * nearness(distance);
                        let near = f64::from(product).sqrt() as f32;
                        rank = match rank < 0.0 {
                            true => near,
                            false => {
                                let missing = 1.0 - f64::from(rank);
                                (1.0 - missing * (1.0 - f64::from(near))) as f32
                            }
                        };
                    }
                }
            }
            all[number] = Some(own);
        }
    }
    Ok(rank)
}

/// `ts_rank`.
///
/// # Errors
/// The pending interrupt.
pub(super) fn rank(
    weights: &[f32; 4],
    lexemes: &Lexemes<'_>,
    query: &Query,
    method: i32,
) -> Result<f32> {
    let count = lexemes.0.len();
    let Some(first) = query.nodes().first().filter(|_| count > 0) else {
        return Ok(0.0);
    };
    let mut rank = match first {
        Node::And | Node::Phrase(_) => rank_and(weights, lexemes, query)?,
        _ => rank_or(weights, lexemes, query)?,
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    let log2 = |count: usize| ((count + 1) as f64).ln() / 2f64.ln();
    if method & BY_LOG_LENGTH != 0 {
        rank = (f64::from(rank) / log2(length_of(lexemes))) as f32;
    }
    if method & BY_LENGTH != 0 {
        rank /= length_of(lexemes) as f32;
    }
    if method & BY_LEXEMES != 0 {
        rank /= count as f32;
    }
    if method & BY_LOG_LEXEMES != 0 {
        rank = (f64::from(rank) / log2(count)) as f32;
    }
    if method & BY_ITSELF != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank)
}

/// A place of the document where words of the query stand.
struct Spot {
    position: Position,
    /// The nodes of the query that are met there.
    nodes: Vec<usize>,
}

/// The words of a stretch of the document.
struct Stretch {
    /// Of each node of the query the places, if it is there.
    places: Vec<Option<Vec<u16>>>,
}

impl Document for Stretch {
    fn has(&self, at: usize, _: &Operand, places: Option<&mut Places>) -> Result<Met> {
        let Some(own) = self.places.get(at).and_then(Option::as_ref) else {
            return Ok(Met::No);
        };
        if let Some(places) = places {
            coro::work(own.len())?;
            places.at.clone_from(own);
            places.at.sort_unstable();
        }
        Ok(Met::Yes)
    }
}

impl Stretch {
    fn add(&mut self, spot: &Spot) {
        for node in &spot.nodes {
            let own = self.places[*node].get_or_insert_default();
            let place = spot.position.place();
            if own.last() != Some(&place) {
                own.push(place);
            }
        }
    }
}

/// What is kept of a place while spots are looked for.
const SPOT_BYTES: usize = 3 * size_of::<Spot>();

fn spots(lexemes: &Lexemes<'_>, query: &Query, held: &mut Reservation) -> Result<Vec<Spot>> {
    let mut all: Vec<(Position, &str, usize)> = Vec::new();
    for (at, operand) in query.operands() {
        for entry in lexemes.asked(operand) {
            let entry: &Entry<'_> = entry;
            coro::work(4 + 4 * entry.count())?;
            held.grow(entry.count() * SPOT_BYTES)?;
            let own = entry
                .positions()
                .filter(|position| counts(operand, *position));
            all.extend(own.map(|position| (position, entry.text, at)));
        }
    }
    coro::work(16 * all.len())?;
    all.sort_by(|a, b| {
        let places = a.0.place().cmp(&b.0.place());
        places
            .then(a.0.weight().cmp(&b.0.weight()))
            .then(a.1.cmp(b.1))
    });
    let mut spots: Vec<Spot> = Vec::new();
    let mut before: Option<(Position, &str)> = None;
    for (position, text, node) in all {
        match spots
            .last_mut()
            .filter(|_| before == Some((position, text)))
        {
            Some(last) => last.nodes.push(node),
            None => spots.push(Spot {
                position,
                nodes: vec![node],
            }),
        }
        before = Some((position, text));
    }
    Ok(spots)
}

/// The next stretch that meets the query, from a spot on: first and last spot.
fn cover(spots: &[Spot], query: &Query, from: usize) -> Result<Option<(usize, usize)>> {
    let fresh = || Stretch {
        places: vec![None; query.nodes().len()],
    };
    let mut from = from;
    loop {
        let mut stretch = fresh();
        let mut end = None;
        for (at, spot) in spots.iter().enumerate().skip(from) {
            coro::work(8)?;
            stretch.add(spot);
            if is_met(query, &stretch)? {
                end = (spot.position.place() > 0).then_some(at);
                break;
            }
        }
        let Some(end) = end else {
            return Ok(None);
        };
        let mut stretch = fresh();
        for at in (from..=end).rev() {
            coro::work(8)?;
            stretch.add(&spots[at]);
            if is_met(query, &stretch)? {
                return Ok(Some((at, end)));
            }
        }
        from += 1;
    }
}

/// `ts_rank_cd`.
///
/// # Errors
/// 22023; the pending interrupt.
pub(super) fn rank_by_covers(
    weights: &[f32; 4],
    lexemes: &Lexemes<'_>,
    query: &Query,
    method: i32,
) -> Result<f32> {
    let mut held = Reservation::of("A rank");
    let spots = spots(lexemes, query, &mut held)?;
    if spots.is_empty() {
        return Ok(0.0);
    }
    let inverse = weights.map(|weight| 1.0 / f64::from(weight));
    let (mut rank, mut distances, mut before, mut count) = (0f64, 0f64, 0f64, 0u32);
    let mut from = 0;
    while let Some((first, last)) = cover(&spots, query, from)? {
        let own = spots[first..=last].iter();
        let sum: f64 = own.fold(0.0, |sum, spot| {
            sum + inverse[usize::from(spot.position.weight())]
        });
        let len = (last - first) as i64;
        let (p, q) = (
            i64::from(spots[first].position.place()),
            i64::from(spots[last].position.place()),
        );
        let noise = match (q - p) - len {
            noise if noise < 0 => len / 2,
            noise => noise,
        };
        rank += ((len + 1) as f64 / sum) / (1 + noise) as f64;
        let centre = (p + q) as f64 / 2.0;
        if count > 0 && centre > before {
            distances += 1.0 / (centre - before);
        }
        before = centre;
        count += 1;
        from = first + 1;
    }
    let lexeme_count = lexemes.0.len();
    if method & BY_LOG_LENGTH != 0 && lexeme_count > 0 {
        rank /= ((length_of(lexemes) + 1) as f64).ln();
    }
    if method & BY_LENGTH != 0 {
        let len = length_of(lexemes);
        if len > 0 {
            rank /= len as f64;
        }
    }
    if method & BY_DISTANCE != 0 && count > 0 && distances > 0.0 {
        rank /= f64::from(count) / distances;
    }
    if method & BY_LEXEMES != 0 && lexeme_count > 0 {
        rank /= lexeme_count as f64;
    }
    if method & BY_LOG_LEXEMES != 0 && lexeme_count > 0 {
        rank /= ((lexeme_count + 1) as f64).ln() / 2f64.ln();
    }
    if method & BY_ITSELF != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank as f32)
}
