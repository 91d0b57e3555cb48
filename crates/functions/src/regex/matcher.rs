//! Finding matches, and taking them apart.
//!
//! First the whole: where some match ends is found in one pass over the text, and with it that there
//! is one; then the earliest place where one begins, and its longest or shortest end. Only then is
//! the match taken apart along the [tree](super::tree), each part's share decided by running that
//! part alone.
//!
//! What refers back is known to the automata only roughly: they take any text that the parentheses
//! could match. So there every match that they find is one that may be, and is tried until one can
//! be taken apart; that may take time beyond all bounds, but can be ended at any moment.

use base::coro;
use base::error::Result;
use base::hash::HashSet;

use super::alphabet::Kind;
use super::automaton::Automaton;
use super::program::compile;
use super::set::lower;
use super::syntax::UNBOUNDED;
use super::tree::{Node, Piece, Shape};
use super::{refused, Regex};

/// Steps between two turns of others.
const STEPS_PER_TURN: usize = 20_000;

/// Places that are known to lead nowhere are remembered up to so many.
const DEAD_MAX: usize = 1 << 18;

/// The memory of all automata together; at this size all are made anew.
const BYTES_MAX: usize = 16 << 20;

/// Automata whose tables are larger are not kept between two texts.
const KEPT_BYTES_MAX: usize = 1 << 18;

/// From where to where, in bytes.
pub type Span = (usize, usize);

/// What is found out about an expression while it runs, and kept for the next text.
#[derive(Debug, Default)]
pub struct Workshop {
    /// By [`Which`].
    automata: Vec<Option<Automaton>>,
    /// How many states they have together.
    states: usize,
    /// The memory of those that are not at work.
    bytes: usize,
}

impl Workshop {
    /// Forgets tables that are too large to keep.
    pub fn tidy(&mut self) {
        if self.bytes > KEPT_BYTES_MAX {
            *self = Workshop::default();
        }
    }
}

/// Which automaton.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// That of a node.
    Node(usize),
    /// That of the whole, which may begin anywhere.
    Search,
    /// That of a condition on what stands around.
    Look(usize),
}

/// Which end is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Last,
    /// The first from there on.
    FirstFrom(usize),
}

/// An expression at work on a text.
pub struct Matcher<'m> {
    regex: &'m Regex,
    text: &'m str,
    shop: Workshop,
    /// What the parentheses have matched, by number less one.
    captures: Vec<Option<Span>>,
    /// For conditions on what stands before: whether they hold, by place.
    behind: Vec<Option<Box<[u64]>>>,
    steps: usize,
}

impl<'m> Matcher<'m> {
    /// An expression before a text.
    pub fn new(regex: &'m Regex, text: &'m str, shop: Workshop) -> Matcher<'m> {
        Matcher {
            captures: vec![None; regex.syntax.captures.len()],
            behind: vec![None; regex.syntax.looks.len()],
            regex,
            text,
            shop,
            steps: 0,
        }
    }

    /// What it has found out about the expression.
    pub fn into_workshop(self) -> Workshop {
        self.shop
    }

    /// What the parentheses have matched.
    pub fn captures(&self) -> &[Option<Span>] {
        &self.captures
    }

    /// The first match that begins at a place or behind it.
    ///
    /// # Errors
    /// 2201B if the expression is too complex; the pending interrupt.
    pub fn find(&mut self, from: usize) -> Result<Option<Span>> {
        let Some((open, close)) = self.search(from)? else {
            return Ok(None);
        };
        let root = self.regex.tree.nodes.len() - 1;
        let refers = self.node(root).refers();
        // What refers back may end elsewhere than it seems.
        let close = if refers { self.text.len() } else { close };
        let mut begin = open;
        while begin <= close {
            let found = match refers {
                true => self.try_ends(root, begin)?,
                false => self.first_end(root, begin)?,
            };
            if let Some(end) = found {
                if !refers && !self.captures.is_empty() {
                    self.captures.fill(None);
                    self.take_apart(root, begin, end)?;
                }
                return Ok(Some((begin, end)));
            }
            if begin == self.text.len() {
                break;
            }
            begin = self.after(begin);
        }
        Ok(None)
    }

    /// Whether there is a match.
    ///
    /// # Errors
    /// As [`Matcher::find`].
    pub fn is_match(&mut self) -> Result<bool> {
        match self.node(self.regex.tree.nodes.len() - 1).refers() {
            true => Ok(self.find(0)?.is_some()),
            false => Ok(self.search(0)?.is_some()),
        }
    }

    fn node(&self, node: usize) -> &'m Node {
        &self.regex.tree.nodes[node]
    }

    /// The end that a match from there has.
    fn first_end(&mut self, root: usize, begin: usize) -> Result<Option<usize>> {
        let wanted = match self.node(root).is_short() {
            true => Wanted::FirstFrom(begin),
            false => Wanted::Last,
        };
        self.run(Which::Node(root), begin, self.text.len(), wanted)
    }

    /// The end of a match from there that can be taken apart.
    fn try_ends(&mut self, root: usize, begin: usize) -> Result<Option<usize>> {
        let short = self.node(root).is_short();
        let (mut least, mut most) = (begin, self.text.len());
        loop {
            let wanted = match short {
                true => Wanted::FirstFrom(least),
                false => Wanted::Last,
            };
            let Some(end) = self.run(Which::Node(root), begin, most, wanted)? else {
                return Ok(None);
            };
            self.captures.fill(None);
            if self.take_apart(root, begin, end)? {
                return Ok(Some(end));
            }
            if end == if short { most } else { begin } {
                return Ok(None);
            }
            match short {
                true => least = self.after(end),
                false => most = self.before(end),
            }
        }
    }

    /// A place from which on matches begin, and the first place where one ends.
    fn search(&mut self, from: usize) -> Result<Option<Span>> {
        let which = Which::Search;
        let mut beginning = from;
        let wanted = Wanted::FirstFrom(from);
        let end = self.run_marking(
            which,
            from,
            self.text.len(),
            wanted,
            &mut |automaton, row, at| {
                if automaton.is_beginning(row) {
                    beginning = at;
                }
            },
        )?;
        Ok(end.map(|end| (beginning, end)))
    }

    fn run(
        &mut self,
        which: Which,
        begin: usize,
        limit: usize,
        wanted: Wanted,
    ) -> Result<Option<usize>> {
        self.run_marking(which, begin, limit, wanted, &mut |_, _, _| {})
    }

    /// Where what begins at a place ends, not behind a limit. `mark` is shown each row of the table
    /// and its place.
    fn run_marking(
        &mut self,
        which: Which,
        begin: usize,
        limit: usize,
        wanted: Wanted,
        mark: &mut dyn FnMut(&Automaton, u32, usize),
    ) -> Result<Option<usize>> {
        let mut automaton = self.take(which)?;
        if automaton.program.looks {
            let found = self.run_looking(&mut automaton, begin, limit, wanted);
            self.put_back(which, automaton);
            return found;
        }
        let regex = self.regex;
        let mut found = None;
        let mut at = begin;
        let mut row = automaton.begin(self.kind_before(at));
        loop {
            mark(&automaton, row, at);
            let (colour, length) = self.colour_at(at);
            let step = match automaton.known(row, colour) {
                Some(step) => step,
                None => {
                    self.steps += automaton.program.states.len().min(STEPS_PER_TURN) / 8;
                    automaton.find_out(row, colour, &regex.alphabet)
                }
            };
            if step.accepts() && wanted.takes(at) {
                found = Some(at);
                if wanted != Wanted::Last {
                    break;
                }
            }
            let Some(next) = step.row().filter(|_| at < limit) else {
                break;
            };
            row = next;
            at += length;
            self.step()?;
        }
        self.put_back(which, automaton);
        Ok(found)
    }

    /// The same without a table, for a program that looks around.
    fn run_looking(
        &mut self,
        automaton: &mut Automaton,
        begin: usize,
        limit: usize,
        wanted: Wanted,
    ) -> Result<Option<usize>> {
        let mut found = None;
        self.each_place(automaton, begin, limit, &mut |at, accepts| {
            let is_it = accepts && wanted.takes(at);
            if is_it {
                found = Some(at);
            }
            is_it && wanted != Wanted::Last
        })?;
        Ok(found)
    }

    /// Runs a program without a table and tells at each place whether it may end there, until told
    /// to stop.
    fn each_place(
        &mut self,
        automaton: &mut Automaton,
        begin: usize,
        limit: usize,
        tell: &mut dyn FnMut(usize, bool) -> bool,
    ) -> Result<()> {
        coro::check_depth()?;
        let regex = self.regex;
        let mut states = vec![0];
        let mut at = begin;
        loop {
            let (colour, length) = self.colour_at(at);
            let before = self.kind_before(at);
            let after = regex.alphabet.kind(colour);
            let accepts =
                automaton.settle(&states, before, after, &mut |look| self.holds(look, at))?;
            states = automaton.advance(colour, &regex.alphabet);
            let stop = tell(at, accepts);
            if stop || states.is_empty() || at >= limit || length == 0 {
                return Ok(());
            }
            at += length;
            self.steps += automaton.program.states.len() / 8;
            self.step()?;
        }
    }

    /// Whether a condition on what stands around holds at a place.
    fn holds(&mut self, look: usize, at: usize) -> Result<bool> {
        let condition = &self.regex.syntax.looks[look];
        let found = match condition.behind {
            true => {
                if self.behind[look].is_none() {
                    let places = self.places_behind(look)?;
                    self.behind[look] = Some(places);
                }
                let places = self.behind[look].as_deref().unwrap_or_default();
                places[at / 64] >> (at % 64) & 1 == 1
            }
            false => {
                let wanted = Wanted::FirstFrom(at);
                let found = self.run(Which::Look(look), at, self.text.len(), wanted)?;
                found.is_some()
            }
        };
        Ok(found != condition.negative)
    }

    /// The places before which a condition's text stands.
    fn places_behind(&mut self, look: usize) -> Result<Box<[u64]>> {
        let which = Which::Look(look);
        let mut places = vec![0u64; self.text.len() / 64 + 1].into_boxed_slice();
        let mut automaton = self.take(which)?;
        let done = self.each_place(&mut automaton, 0, self.text.len(), &mut |at, accepts| {
            places[at / 64] |= u64::from(accepts) << (at % 64);
            false
        });
        self.put_back(which, automaton);
        done.map(|()| places)
    }

    /// Takes a match of a node apart; false if it cannot be one, which happens only if it refers
    /// back.
    fn take_apart(&mut self, node: usize, begin: usize, end: usize) -> Result<bool> {
        coro::check_depth()?;
        let (mut node, mut begin) = (node, begin);
        loop {
            let own = self.node(node);
            let found = match own.shape {
                Shape::Leaf => true,
                Shape::Same(inside) => self.take_apart(inside, begin, end)?,
                Shape::Back(number, min, max) => self.repeats(number, (min, max), begin, end)?,
                Shape::Times(inside, min, max) => {
                    self.take_apart_times(inside, (min, max), begin, end)?
                }
                Shape::OneOf(ref nodes) => self.take_apart_one(nodes, begin, end)?,
                Shape::Then(first, second) if own.refers() => {
                    self.take_apart_two(first, second, begin, end)?
                }
                Shape::Then(first, second) => {
                    // Nothing refers back, so the first try succeeds; no deeper for long rows.
                    let Some(middle) = self.middle(first, second, begin, end, None)? else {
                        return Ok(false);
                    };
                    if !self.take_apart(first, begin, middle)? {
                        return Ok(false);
                    }
                    self.capture(own, begin, end);
                    (node, begin) = (second, middle);
                    continue;
                }
            };
            if found {
                self.capture(own, begin, end);
            }
            return Ok(found);
        }
    }

    fn capture(&mut self, node: &Node, begin: usize, end: usize) {
        if node.capture > 0 {
            self.captures[node.capture - 1] = Some((begin, end));
        }
    }

    fn take_apart_two(
        &mut self,
        first: usize,
        second: usize,
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let mut before = None;
        while let Some(middle) = self.middle(first, second, begin, end, before)? {
            if self.take_apart(first, begin, middle)? && self.take_apart(second, middle, end)? {
                return Ok(true);
            }
            self.forget(first);
            self.forget(second);
            before = Some(middle);
        }
        Ok(false)
    }

    /// Where the first of two may end, in the order of its preference after the one before.
    fn middle(
        &mut self,
        first: usize,
        second: usize,
        begin: usize,
        end: usize,
        before: Option<usize>,
    ) -> Result<Option<usize>> {
        let short = self.node(first).is_short();
        let mut before = before;
        loop {
            let (limit, wanted) = match (short, before) {
                (true, None) => (end, Wanted::FirstFrom(begin)),
                (true, Some(at)) if at < end => (end, Wanted::FirstFrom(self.after(at))),
                (false, None) => (end, Wanted::Last),
                (false, Some(at)) if at > begin => (self.before(at), Wanted::Last),
                _ => return Ok(None),
            };
            let Some(middle) = self.run(Which::Node(first), begin, limit, wanted)? else {
                return Ok(None);
            };
            if self.is_exactly(second, middle, end)? {
                return Ok(Some(middle));
            }
            before = Some(middle);
        }
    }

    fn is_exactly(&mut self, node: usize, begin: usize, end: usize) -> Result<bool> {
        let found = self.run(Which::Node(node), begin, end, Wanted::Last)?;
        Ok(found == Some(end))
    }

    fn take_apart_one(&mut self, nodes: &[usize], begin: usize, end: usize) -> Result<bool> {
        for node in nodes {
            if self.is_exactly(*node, begin, end)? && self.take_apart(*node, begin, end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Forgets what the parentheses in a node have matched.
    fn forget(&mut self, node: usize) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let node = self.node(node);
            if node.capture > 0 {
                self.captures[node.capture - 1] = None;
            }
            match &node.shape {
                Shape::Then(first, second) => open.extend([*first, *second]),
                Shape::OneOf(nodes) => open.extend(nodes),
                Shape::Times(inside, ..) | Shape::Same(inside) => open.push(*inside),
                Shape::Leaf | Shape::Back(..) => {}
            }
        }
    }

    /// Whether a text is so many times what parentheses have matched.
    fn repeats(
        &mut self,
        number: usize,
        (min, max): (u16, u16),
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let Some((from, to)) = self.captures[number - 1] else {
            return Ok(false);
        };
        if from == to {
            return Ok(begin == end);
        }
        let same = |a: char, b: char| a == b || (self.regex.syntax.fold && lower(a) == lower(b));
        let mut rest = self.text[begin..end].chars();
        let mut times = 0;
        while !rest.as_str().is_empty() {
            let mut pattern = self.text[from..to].chars();
            if !pattern.all(|wanted| rest.next().is_some_and(|c| same(c, wanted))) {
                return Ok(false);
            }
            times += 1;
        }
        self.steps += (end - begin) / 4;
        self.step()?;
        Ok(times >= usize::from(min) && (max == UNBOUNDED || times <= usize::from(max)))
    }

    /// Takes apart what is so many times the same.
    fn take_apart_times(
        &mut self,
        inside: usize,
        (min, max): (u16, u16),
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        // Of what is taken short none goes before one turn of nothing, of what is taken long after.
        if min == 0 && begin == end && self.node(inside).is_short() {
            return Ok(true);
        }
        let characters = self.text[begin..end].chars().count();
        let least = usize::from(min.max(1));
        let most = match max {
            UNBOUNDED => characters,
            max => characters.min(usize::from(max)),
        };
        let mut turns = Turns {
            inside,
            least,
            most: most.max(least),
            end,
            ends: vec![begin],
            verified: 0,
            dead: HashSet::default(),
        };
        if self.turns(&mut turns)? {
            return Ok(true);
        }
        self.forget(inside);
        Ok(min == 0 && begin == end)
    }

    /// Looks for ends of all turns, by their preference, so that the last one is where it must be.
    fn turns(&mut self, turns: &mut Turns) -> Result<bool> {
        let refers = self.node(turns.inside).refers();
        let short = self.node(turns.inside).is_short();
        let mut after = None;
        loop {
            let done = turns.ends.len() - 1;
            let from = turns.ends[done];
            let dead = turns.dead.contains(&(done, from));
            let next = match dead || done >= turns.most {
                true => None,
                false => self.next_end(turns, short, from, after)?,
            };
            let Some(next) = next else {
                // Nothing leads on from here: change the turn before.
                if !refers && turns.dead.len() < DEAD_MAX {
                    turns.dead.insert((done, from));
                }
                if done == 0 {
                    return Ok(false);
                }
                turns.ends.pop();
                turns.verified = turns.verified.min(done - 1);
                after = Some(from);
                continue;
            };
            turns.ends.push(next);
            after = None;
            if next != turns.end {
                continue;
            }
            if done + 1 >= turns.least && self.verify(turns)? {
                return Ok(true);
            }
            turns.ends.pop();
            turns.verified = turns.verified.min(done);
            after = Some(next);
        }
    }

    /// The next end of a turn from a place, after the one that was tried before.
    fn next_end(
        &mut self,
        turns: &Turns,
        short: bool,
        from: usize,
        after: Option<usize>,
    ) -> Result<Option<usize>> {
        let number = turns.ends.len();
        let mut after = after;
        loop {
            let (limit, wanted) = match (short, after) {
                (true, None) => (turns.end, Wanted::FirstFrom(from)),
                (true, Some(at)) if at < turns.end => {
                    (turns.end, Wanted::FirstFrom(self.after(at)))
                }
                (false, None) => (turns.end, Wanted::Last),
                (false, Some(at)) if at > from => (self.before(at), Wanted::Last),
                _ => return Ok(None),
            };
            let which = Which::Node(turns.inside);
            let Some(end) = self.run(which, from, limit, wanted)? else {
                return Ok(None);
            };
            // Turns of nothing are taken only if there would be too few otherwise.
            let is_needed = || {
                let rest = self.text[end..turns.end].chars();
                number < turns.least && turns.least - number >= rest.count()
            };
            if end > from || end == turns.end || is_needed() {
                return Ok(Some(end));
            }
            after = Some(end);
        }
    }

    /// Whether all turns can be taken apart as they stand.
    fn verify(&mut self, turns: &mut Turns) -> Result<bool> {
        for number in turns.verified + 1..turns.ends.len() {
            self.forget(turns.inside);
            let (begin, end) = (turns.ends[number - 1], turns.ends[number]);
            if !self.take_apart(turns.inside, begin, end)? {
                return Ok(false);
            }
            turns.verified = number;
        }
        Ok(true)
    }

    fn take(&mut self, which: Which) -> Result<Automaton> {
        let place = self.place(which);
        if self.shop.automata.is_empty() {
            let all = self.automata_count();
            self.shop.automata.resize_with(all, || None);
        }
        if let Some(automaton) = self.shop.automata[place].take() {
            self.shop.bytes -= automaton.bytes();
            return Ok(automaton);
        }
        let syntax = &self.regex.syntax;
        let (piece, anywhere) = match which {
            Which::Node(node) => (self.node(node).piece.clone(), false),
            Which::Search => (Piece::Branches(syntax.branches.clone()), true),
            Which::Look(look) => {
                let look = &syntax.looks[look];
                (Piece::Branches(look.what.clone()), look.behind)
            }
        };
        let left = super::program::STATES_MAX.saturating_sub(self.shop.states);
        let program = compile(syntax, &piece, anywhere, left).map_err(refused)?;
        self.shop.states += program.states.len();
        Ok(Automaton::new(program, &self.regex.alphabet))
    }

    fn automata_count(&self) -> usize {
        self.regex.tree.nodes.len() + 1 + self.regex.syntax.looks.len()
    }

    fn place(&self, which: Which) -> usize {
        let nodes = self.regex.tree.nodes.len();
        match which {
            Which::Node(node) => node,
            Which::Search => nodes,
            Which::Look(look) => nodes + 1 + look,
        }
    }

    fn put_back(&mut self, which: Which, automaton: Automaton) {
        if self.shop.bytes + automaton.bytes() > BYTES_MAX {
            self.shop.tidy();
        }
        let place = self.place(which);
        let all = self.automata_count();
        self.shop.automata.resize_with(all, || None);
        self.shop.bytes += automaton.bytes();
        self.shop.automata[place] = Some(automaton);
    }

    /// The colour of the character at a place and its length; nothing is as long at the end.
    #[inline]
    fn colour_at(&self, at: usize) -> (u32, usize) {
        let alphabet = &self.regex.alphabet;
        match self.text.as_bytes().get(at) {
            None => (alphabet.end(), 0),
            Some(byte) if byte.is_ascii() => (alphabet.colour(char::from(*byte)), 1),
            Some(_) => match self.text[at..].chars().next() {
                Some(c) => (alphabet.colour(c), c.len_utf8()),
                None => (alphabet.end(), 0),
            },
        }
    }

    fn kind_before(&self, at: usize) -> Kind {
        let alphabet = &self.regex.alphabet;
        let before = self.text[..at].chars().next_back();
        before.map_or(Kind::Edge, |c| alphabet.kind(alphabet.colour(c)))
    }

    /// The place after the character at a place.
    fn after(&self, at: usize) -> usize {
        let c = self.text[at..].chars().next();
        at + c.map_or(1, char::len_utf8)
    }

    /// The place before the character before a place.
    fn before(&self, at: usize) -> usize {
        let c = self.text[..at].chars().next_back();
        at - c.map_or(0, char::len_utf8)
    }

    #[inline]
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps >= STEPS_PER_TURN {
            self.steps = 0;
            if coro::inside() {
                coro::yield_now()?;
            }
        }
        Ok(())
    }
}

/// A repetition that is being taken apart.
struct Turns {
    inside: usize,
    least: usize,
    most: usize,
    end: usize,
    /// Where it begins, then where each turn ends.
    ends: Vec<usize>,
    /// How many turns are known to be as they must.
    verified: usize,
    /// After so many turns there, nothing leads to the end.
    dead: HashSet<(usize, usize)>,
}

impl Wanted {
    #[inline]
    fn takes(self, at: usize) -> bool {
        match self {
            Wanted::Last => true,
            Wanted::FirstFrom(least) => at >= least,
        }
    }
}
