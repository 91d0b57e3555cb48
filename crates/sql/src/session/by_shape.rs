//! Statements whose plan is found, or kept, by the shape of their text ([`super::plan_cache`]).

use std::rc::Rc;

use base::{Error, Result};

use super::plan::{changed_result, Watch, Way};
use super::plan_cache::{value_of, Kept};
use super::run::{tag_of, Output};
use super::statements::about;
use super::transaction::{Loss, State};
use super::{NoticeSeverity, Session, Sink};
use execution::settings::planted;
use execution::state::prepared::Planned;
use planner::bind::literals::Watched;
use planner::plan::Taken;
use syntax::parser::{self, Shape, Statement, Strings};
use types::{Datum, TypeId};

impl Session {
    /// The plan of a text that is one statement with a shape, made and kept if need be;
    /// `self.literals` receives the values of the literals that it leaves open. With types of
    /// parameters, as Parse gives them, no literal is left open.
    ///
    /// # Errors
    /// Those of parsing and binding.
    pub(super) fn plan_by_shape(
        &mut self,
        text: &str,
        given: Option<&[TypeId]>,
    ) -> Result<Option<Rc<Kept>>> {
        let own_catalog = self.open.as_ref().is_some_and(|open| open.catalog_changed);
        let keeps_plans = self.shared.settings.parsed().keeps_plans;
        let may_not = self.state == State::Failed || self.loss != Loss::None;
        if own_catalog || self.is_behind() || !keeps_plans || may_not {
            return Ok(None);
        }
        // Those of other strings are parsed each time.
        if self.strings_of(text) != Strings::Conforming {
            return Ok(None);
        }
        let mut shape = std::mem::take(&mut self.shape);
        let kept = match shape.read(text) {
            true => self.find_or_plan((text, &shape), given),
            false => Ok(None),
        };
        self.shape = shape;
        kept
    }

    fn find_or_plan(
        &mut self,
        (text, shape): (&str, &Shape),
        given: Option<&[TypeId]>,
    ) -> Result<Option<Rc<Kept>>> {
        let version = self.shared.engine.transactions.catalog_version();
        let mut values = std::mem::take(&mut self.literals);
        let found = self.plans.find(
            (text, shape),
            version,
            self.world,
            given,
            &self.eval,
            &mut values,
        );
        self.literals = values;
        if let Some(kept) = found {
            if given.is_some() && **kept.statement.text() != *text {
                // A prepared statement shows its own text.
                return Ok(None);
            }
            self.use_catalog(&kept.planned.catalog);
            return Ok(Some(kept));
        }
        let mut statements = parser::parse_beside(text, Strings::Conforming, &self.shared.env)?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) if about(statement.node()).is_planned() => {
                if given.is_none() {
                    self.shared.command = about(statement.node()).command;
                }
                self.plan_and_keep(statement, shape, given).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn plan_and_keep(
        &mut self,
        statement: Statement,
        shape: &Shape,
        given: Option<&[TypeId]>,
    ) -> Result<Rc<Kept>> {
        let text = statement.text().clone();
        let all: Vec<_> = (0..shape.literals.len()).collect();
        let mut denied = match given {
            Some(_) => all.clone(),
            None => Vec::new(),
        };
        let (planned, params, watched) = loop {
            let watch = Watch {
                literals: &shape.literals,
                denied: &denied,
            };
            let way = Way {
                watch: Some(watch),
                ..Way::default()
            };
            let (types, open_params) = (given.unwrap_or_default(), given.is_some());
            let (planned, params, watched) =
                self.plan_watched(&statement, types, open_params, None, way)?;
            let unfit = self.unfit(&text, shape, &watched);
            if unfit.is_empty() {
                break (planned, params, watched);
            }
            // Those that are found fixed late are found so again: twice is enough.
            denied = match denied.is_empty() {
                true => unfit,
                false => all.clone(),
            };
        };
        let kept = Rc::new(Kept {
            planned: Rc::new(planned),
            params: params.into(),
            statement,
        });
        let bound = kept.planned.bound.as_ref();
        let fleeting = bound.is_some_and(|bound| bound.fleeting);
        if !fleeting && !kept.planned.own {
            let taken = &watched.taken;
            self.plans
                .keep((&text, shape), self.world, given, taken, &kept);
        }
        self.literals.clear();
        let values = watched.taken.into_iter();
        self.literals
            .extend(values.map(|taken| taken.map_or(Datum::Null, |taken| taken.value)));
        Ok(kept)
    }

    /// The literals that a plan leaves open and should not.
    fn unfit(&self, text: &str, shape: &Shape, watched: &Watched) -> Vec<usize> {
        let differs = |number: usize, taken: &Taken| {
            let literal = shape.literals[number];
            let value = value_of(text, literal, taken.ty, taken.negated, &self.eval);
            value.as_ref() != Some(&taken.value)
        };
        let taken = watched.taken.iter().enumerate();
        let mut unfit: Vec<_> = taken
            .filter(|(number, taken)| taken.as_ref().is_some_and(|taken| differs(*number, taken)))
            .map(|(number, _)| number)
            .collect();
        unfit.extend(&watched.late);
        unfit
    }

    /// Parses a text; short ones of one utility statement are parsed once.
    ///
    /// # Errors
    /// As [`parser::parse`].
    pub(super) fn parse(&mut self, text: &str) -> Result<Vec<Statement>> {
        if self.strings_of(text) != Strings::Conforming {
            return self.parse_as_set(text);
        }
        if let Some(statement) = self.plans.parsed(text) {
            return Ok(vec![statement]);
        }
        planted::panic_at(&self.shared.settings, "parse");
        let statements = self.parse_as_set(text)?;
        if let [only] = statements.as_slice() {
            if !about(only.node()).is_planned() {
                self.plans.keep_parsed(text, only);
            }
        }
        Ok(statements)
    }

    /// Parses a text that was given to the session, with strings as `standard_conforming_strings`
    /// says, of which it warns.
    ///
    /// # Errors
    /// As [`parser::parse`].
    pub(super) fn parse_as_set(&mut self, text: &str) -> Result<Vec<Statement>> {
        let strings = self.strings_of(text);
        let warns = self.shared.settings.parsed().warns_of_escapes && self.read_as.is_none();
        if strings == Strings::Escaped && warns {
            for warning in parser::escape_warnings(text)? {
                self.keep_notice(NoticeSeverity::Warning, warning);
            }
        }
        parser::parse_beside(text, strings, &self.shared.env)
    }

    /// How the strings of a text that is given to the session are to be read.
    fn strings_of(&self, text: &str) -> Strings {
        let as_set = || Strings::of(text, self.shared.settings.parsed().conforming_strings);
        self.read_as.unwrap_or_else(as_set)
    }

    /// Refuses a routine's text that means something else by the session's setting: its pieces are
    /// read by one scanner or the other, and are kept when the setting changes.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn refuse_escapes(&self, body: &str) -> Result<()> {
        match self.strings_of(body) {
            Strings::Conforming => Ok(()),
            Strings::Escaped => Err(Error::unsupported(
                "a routine with a backslash in its text while standard_conforming_strings is off",
            )),
        }
    }

    /// Runs a message of the simple protocol that is one statement with a plan.
    pub(super) fn run_kept(&mut self, text: &str, kept: &Kept, sink: &mut dyn Sink) -> Result<()> {
        let planned = &kept.planned;
        if let Some(columns) = &planned.columns {
            let level = self.shared.settings.parsed().durability;
            self.owed.add(&planned.catalog.debt, level);
            self.tell(sink)?;
            sink.row_description(columns)?;
        }
        let begun = self.begin_counted(planned)?;
        let literals = std::mem::take(&mut self.literals);
        let outcome = self.run_with_literals(text, planned, &literals, sink);
        self.literals = literals;
        self.hand_on_notices(sink)?;
        let rows = outcome?;
        self.end_counted(begun, rows);
        if self.state == State::Implicit {
            self.commit(sink)?;
        }
        self.tell(sink)?;
        sink.command_complete(&tag_of(Some(kept.statement.node()), rows))
    }

    fn run_with_literals(
        &mut self,
        text: &str,
        planned: &Rc<Planned>,
        literals: &[Datum],
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        let settled = self.settle_plan(planned.clone(), |session| {
            // The values of the literals are in this plan itself.
            let env = &session.shared.env;
            let statement = parser::parse_beside(text, Strings::Conforming, env)?.pop();
            let statement = statement.ok_or_else(|| Error::internal("a text without statement"))?;
            let (anew, _) = session.plan(&statement, &[], false, None)?;
            if anew.types != planned.types {
                return Err(changed_result());
            }
            Ok(Rc::new(anew))
        })?;
        self.run_plan_with(&settled, &[], literals, &mut Output::Sink(sink))
    }
}
