//! `ts_headline`: the part of a text that says most of what was asked for, with its words marked.
//!
//! ```text
//! ts_headline('english', 'The fat cats sat', 'cat', 'MinWords=1, MaxWords=2')    fat <b>cats</b>
//! ```
//! A *cover* is a shortest stretch that meets the query. One of them is made longer or shorter until
//! it fits, or, with fragments, several are.
//!
//! Source: PostgreSQL 15 manual, section 12.3.4, and the server's answers.

use base::memory::Reservation;
use base::{coro, Error, Result, SqlState};

use super::dictionary::{is_kind, Config};
use super::document::config_of;
use super::matching::{is_met, Document, Met, Places};
use super::options;
use super::parser;
use types::growth::Growing;
use types::json::parse::{Event, Parser};
use types::search::{Operand, Query, LEXEME_BYTES_MAX, POSITION_END};
use types::{json, text, TypeId};

/// How long texts of options may be.
const OPTION_BYTES_MAX: usize = 32_767;

/// A token of the text.
#[derive(Clone, Debug, Default)]
struct Word<'a> {
    text: &'a str,
    kind: u8,
    /// The node of the query that it meets.
    item: Option<usize>,
    place: u16,
    /// It is there once more, for another node.
    repeated: bool,
    shown: bool,
    marked: bool,
    replaced: bool,
    skipped: bool,
}

/// What options say.
struct Form {
    words_min: i32,
    words_max: i32,
    short: i32,
    fragments: i32,
    all: bool,
    start: String,
    stop: String,
    between: String,
}

impl Form {
    fn of(given: &[(String, String)]) -> Result<Form> {
        let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let mut form = Form {
            words_min: 15,
            words_max: 35,
            short: 3,
            fragments: 0,
            all: false,
            start: "<b>".to_owned(),
            stop: "</b>".to_owned(),
            between: " ... ".to_owned(),
        };
        for (name, value) in given {
            let number = || text::parse_integer(TypeId::INT4, value).map(|number| number as i32);
            match name.to_ascii_lowercase().as_str() {
                "maxwords" => form.words_max = number()?,
                "minwords" => form.words_min = number()?,
                "shortword" => form.short = number()?,
                "maxfragments" => form.fragments = number()?,
                "startsel" => form.start.clone_from(value),
                "stopsel" => form.stop.clone_from(value),
                "fragmentdelimiter" => form.between.clone_from(value),
                "highlightall" => {
                    let value = value.to_ascii_lowercase();
                    form.all = ["1", "on", "true", "t", "y", "yes"].contains(&value.as_str());
                }
                _ => {
                    let message = format!("unrecognized headline parameter: \"{name}\"");
                    return Err(invalid(message));
                }
            }
        }
        let wrong = match &form {
            form if form.all => None,
            form if form.words_min >= form.words_max => {
                Some("MinWords should be less than MaxWords")
            }
            form if form.words_min <= 0 => Some("MinWords should be positive"),
            form if form.short < 0 => Some("ShortWord should be >= 0"),
            form if form.fragments < 0 => Some("MaxFragments should be >= 0"),
            _ => None,
        };
        if let Some(message) = wrong {
            return Err(invalid(message.to_owned()));
        }
        let texts = [
            ("StartSel", &form.start),
            ("StopSel", &form.stop),
            ("FragmentDelimiter", &form.between),
        ];
        for (name, value) in texts {
            if value.len() > OPTION_BYTES_MAX {
                return Err(invalid(format!("value for \"{name}\" is too long")));
            }
        }
        Ok(form)
    }
}

/// A stretch of words.
struct Stretch<'a, 'b>(&'b [Word<'a>]);

impl Document for Stretch<'_, '_> {
    fn has(&self, at: usize, _: &Operand, places: Option<&mut Places>) -> Result<Met> {
        coro::work(self.0.len())?;
        let mut own = self.0.iter().filter(|word| word.item == Some(at));
        let Some(places) = places else {
            return Ok(match own.next() {
                Some(_) => Met::Yes,
                None => Met::No,
            });
        };
        for word in own {
            if places.at.last().is_none_or(|last| *last < word.place) {
                places.at.push(word.place);
            }
        }
        Ok(match places.at.is_empty() {
            true => Met::No,
            false => Met::Yes,
        })
    }
}

/// A stretch that may be shown.
struct Fragment {
    first: usize,
    last: usize,
    /// Words that were asked for, and words.
    asked: i32,
    words: i32,
    chosen: bool,
    excluded: bool,
}

struct Headline<'a> {
    words: Vec<Word<'a>>,
    query: &'a Query,
    form: Form,
    _held: Reservation,
}

fn is_part_of_compound(kind: u8) -> bool {
    is_kind(kind, &["url", "numhword", "asciihword", "hword"])
}

impl<'a> Headline<'a> {
    fn read(config: Config, text: &'a str, query: &'a Query, form: Form) -> Result<Headline<'a>> {
        let mut words: Vec<Word<'a>> = Vec::new();
        let mut place = 0usize;
        let mut held = Reservation::of("A headline");
        let mut parser = parser::Parser::new(text);
        while let Some(token) = parser.next_token()? {
            if token.text.len() > LEXEME_BYTES_MAX {
                continue;
            }
            held.grow(2 * size_of::<Word<'_>>())?;
            let mut word = Word {
                text: token.text,
                kind: token.kind,
                ..Word::default()
            };
            let Some(dictionary) = config.dictionary(token.kind) else {
                words.push(word);
                continue;
            };
            place += 1;
            let lexeme = dictionary.look_up(token.text)?;
            let Some(lexeme) = lexeme else {
                words.push(word);
                continue;
            };
            word.place = place.min(usize::from(POSITION_END) - 1) as u16;
            let met = query
                .operands()
                .filter(|(_, operand)| operand.is_met_by(&lexeme));
            let met: Vec<usize> = met.map(|(at, _)| at).collect();
            coro::work(4 * query.nodes().len())?;
            word.item = met.first().copied();
            words.push(word.clone());
            for item in met.into_iter().skip(1) {
                word.item = Some(item);
                word.repeated = true;
                held.grow(2 * size_of::<Word<'_>>())?;
                words.push(word.clone());
            }
        }
        Ok(Headline {
            words,
            query,
            form,
            _held: held,
        })
    }

    fn counts(&self, at: usize) -> bool {
        let kind = self.words[at].kind;
        !(is_kind(kind, &["blank", "tag"]) || is_part_of_compound(kind))
    }

    fn is_asked(&self, at: usize) -> bool {
        self.words[at].item.is_some() && !self.words[at].repeated
    }

    /// Whether nothing should end there.
    fn is_bad_end(&self, at: usize) -> bool {
        let word = &self.words[at];
        let never = [
            "sfloat", "version", "float", "int", "uint", "protocol", "entity",
        ];
        let poor = !self.counts(at)
            || is_kind(word.kind, &never)
            || word.text.len() as i64 <= i64::from(self.form.short);
        poor && !self.is_asked(at)
    }

    fn next_item(&self, from: usize) -> Option<usize> {
        let mut rest = self.words.iter().enumerate().skip(from);
        rest.find(|(_, word)| word.item.is_some()).map(|(at, _)| at)
    }

    /// The next shortest stretch that meets the query.
    fn cover(&self, from: usize, longest: usize) -> Result<Option<(usize, usize)>> {
        if self.query.is_empty() {
            return Ok(None);
        }
        let mut first = self.next_item(from);
        while let Some(begin) = first {
            let mut end = begin;
            loop {
                coro::work(16)?;
                if is_met(self.query, &Stretch(&self.words[begin..=end]))? {
                    return Ok(Some((begin, end)));
                }
                match self.next_item(end + 1) {
                    Some(next) if next - begin < longest => end = next,
                    _ => break,
                }
            }
            first = self.next_item(begin + 1);
        }
        Ok(None)
    }

    fn show(&mut self, first: usize, end: usize) {
        let all = self.form.all;
        for word in &mut self.words[first..end] {
            word.marked = word.item.is_some();
            if !all && is_kind(word.kind, &["tag"]) {
                word.replaced = true;
            } else if is_part_of_compound(word.kind) {
                word.skipped = true;
            }
            word.shown = !word.repeated;
        }
    }

    /// The end of so many words from the beginning.
    fn beginning(&self) -> usize {
        let mut words = 0;
        let mut end = 0;
        while end < self.words.len() && words < self.form.words_min {
            words += i32::from(self.counts(end));
            end += 1;
        }
        end
    }

    fn choose(&mut self, longest: usize) -> Result<()> {
        if self.form.all {
            let end = self.words.len();
            self.show(0, end);
            return Ok(());
        }
        // First and last word, how many were asked for, and whether all of the cover is there.
        let mut best: Option<(usize, usize, i32, bool)> = None;
        let mut from = 0;
        while let Some((p, q)) = self.cover(from, longest)? {
            let candidate = self.fit(p, q);
            let better = match best {
                None => true,
                Some(best) => {
                    let rank = (candidate.3, candidate.2).cmp(&(best.3, best.2));
                    rank.is_gt()
                        || (rank.is_eq()
                            && !self.is_bad_end(candidate.1)
                            && self.is_bad_end(best.1))
                }
            };
            if better {
                best = Some(candidate);
            }
            from = p + 1;
        }
        match best {
            Some((first, last, ..)) => self.show(first, last + 1),
            None => {
                let end = self.beginning();
                self.show(0, end);
            }
        }
        Ok(())
    }

    /// Makes a cover as long as the form wants it.
    fn fit(&self, p: usize, q: usize) -> (usize, usize, i32, bool) {
        let (least, most) = (self.form.words_min, self.form.words_max);
        let (mut words, mut asked) = (0, 0);
        let (mut first, mut last) = (p, p);
        let mut at = p;
        while at <= q && words < most {
            words += i32::from(self.counts(at));
            asked += i32::from(self.is_asked(at));
            last = at;
            at += 1;
        }
        if words < most {
            at = at.saturating_sub(1);
            while at < self.words.len() && words < most {
                if at > q {
                    words += i32::from(self.counts(at));
                    asked += i32::from(self.is_asked(at));
                }
                last = at;
                if !self.is_bad_end(at) && words >= least {
                    break;
                }
                at += 1;
            }
            if words < least {
                first = 0;
                for at in (0..p).rev() {
                    words += i32::from(self.counts(at));
                    asked += i32::from(self.is_asked(at));
                    if words >= most || (!self.is_bad_end(at) && words >= least) {
                        first = at;
                        break;
                    }
                }
            }
        } else {
            at = at.min(q);
            while words > least && self.is_bad_end(at) {
                words -= i32::from(self.counts(at));
                asked -= i32::from(self.is_asked(at));
                let Some(before) = at.checked_sub(1) else {
                    break;
                };
                at = before;
                last = at;
            }
        }
        (first, last, asked, first <= p && last >= q)
    }

    /// Takes the next fragment from a cover that may be too long.
    fn fragment(&self, begin: usize, end: usize) -> Fragment {
        let mut first = begin;
        for at in begin..=end {
            first = at;
            if self.is_asked(at) {
                break;
            }
        }
        let (mut words, mut asked) = (0, 0);
        let mut at = first;
        while at <= end && words < self.form.words_max {
            words += i32::from(self.counts(at));
            asked += i32::from(self.is_asked(at));
            at += 1;
        }
        let mut last = end;
        if end > at {
            for before in (first..=at).rev() {
                last = before;
                if self.is_asked(before) {
                    break;
                }
                words -= i32::from(self.counts(before));
            }
        }
        Fragment {
            first,
            last,
            asked,
            words,
            chosen: false,
            excluded: false,
        }
    }

    /// Makes a fragment longer on both sides, up to what is shown already.
    fn stretch(&self, fragment: &Fragment) -> (usize, usize) {
        let most = self.form.words_max;
        let (mut first, last, mut words) = (fragment.first, fragment.last, fragment.words);
        if words >= most {
            return (first, last);
        }
        let (mut added, room) = (0, (most - words) / 2);
        let mut mark = first;
        for at in (0..first).rev() {
            if added >= room || self.words[at].shown {
                break;
            }
            let own = i32::from(self.counts(at));
            words += own;
            added += own;
            mark = at;
        }
        while mark < first && self.is_bad_end(mark) {
            words -= i32::from(self.counts(mark));
            mark += 1;
        }
        first = mark;
        let mut mark = last;
        for at in last + 1..self.words.len() {
            if words >= most || self.words[at].shown {
                break;
            }
            words += i32::from(self.counts(at));
            mark = at;
        }
        while mark > last && self.is_bad_end(mark) {
            mark -= 1;
        }
        (first, mark)
    }

    fn choose_fragments(&mut self, longest: usize) -> Result<()> {
        let mut fragments: Vec<Fragment> = Vec::new();
        let mut from = 0;
        while let Some((p, q)) = self.cover(from, longest)? {
            let mut begin = p;
            while begin <= q {
                let fragment = self.fragment(begin, q);
                begin = fragment.last + 1;
                fragments.push(fragment);
            }
            from = p + 1;
        }
        let mut any = false;
        for _ in 0..self.form.fragments {
            coro::work(16 * fragments.len())?;
            let (mut asked, mut words, mut best) = (0, i32::MAX, None);
            for (at, own) in fragments.iter().enumerate() {
                let free = !own.chosen && !own.excluded;
                if free && (asked < own.asked || (asked == own.asked && words > own.words)) {
                    (asked, words, best) = (own.asked, own.words, Some(at));
                }
            }
            let Some(best) = best else {
                break;
            };
            let (first, last) = self.stretch(&fragments[best]);
            fragments[best].chosen = true;
            self.show(first, last + 1);
            any = true;
            for (at, own) in fragments.iter_mut().enumerate() {
                let within = |place: usize| (first..=last).contains(&place);
                let around = own.first < first && own.last > last;
                if at != best && (within(own.first) || within(own.last) || around) {
                    own.excluded = true;
                }
            }
        }
        if !any {
            let end = self.beginning();
            self.show(0, end);
        }
        Ok(())
    }

    fn write(&self) -> Result<String> {
        let mut out = Growing::default();
        let (mut inside, mut fragments) = (false, 0);
        for word in self.words.iter().filter(|word| !word.repeated) {
            if !word.shown {
                inside = false;
                continue;
            }
            if !inside {
                inside = true;
                fragments += 1;
                if fragments > 1 {
                    out.push_str(&self.form.between)?;
                }
            }
            if word.replaced {
                out.push_str(" ")?;
            } else if !word.skipped {
                let (start, stop) = match word.marked {
                    true => (self.form.start.as_str(), self.form.stop.as_str()),
                    false => ("", ""),
                };
                out.push_str(start)?;
                out.push_str(word.text)?;
                out.push_str(stop)?;
            }
        }
        Ok(out.into_string())
    }
}

/// The headline of a text.
///
/// # Errors
/// 22023, 42601, 54000; the pending interrupt.
pub(super) fn headline(config: u32, text: &str, query: &Query, given: &str) -> Result<String> {
    let config = config_of(config)?;
    let form = Form::of(&options::read(given)?)?;
    let fragments = form.fragments;
    let longest = i64::from(form.words_max).saturating_mul(10).max(100);
    let longest = longest.saturating_mul(i64::from(fragments.max(1)));
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let mut headline = Headline::read(config, text, query, form)?;
    match fragments {
        0 => headline.choose(longest)?,
        _ => headline.choose_fragments(longest)?,
    }
    headline.write()
}

/// A JSON text with the headline of each string in its place.
///
/// # Errors
/// As [`headline`].
pub(super) fn of_json(config: u32, text: &str, query: &Query, given: &str) -> Result<String> {
    // What the options say is looked at where there is a string.
    options::read(given)?;
    let mut parser = Parser::new(text, true);
    let mut out = Growing::default();
    let mut follows = false;
    while let Some(event) = parser.next()? {
        let ends = matches!(event, Event::EndArray | Event::EndObject);
        if std::mem::replace(&mut follows, event.ends_value()) && !ends {
            out.push(',')?;
        }
        match event {
            Event::Key => {
                let mut written = String::new();
                json::write_string(parser.text(), &mut written);
                written.push(':');
                out.push_str(&written)?;
            }
            Event::String => {
                let mut written = String::new();
                let shown = headline(config, parser.text(), query, given)?;
                json::write_string(&shown, &mut written);
                out.push_str(&written)?;
            }
            _ => out.push_str(parser.token())?,
        }
    }
    Ok(out.into_string())
}
