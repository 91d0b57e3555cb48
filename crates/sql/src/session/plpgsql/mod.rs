//! PL/pgSQL: DO, and the bodies of functions and procedures.
//!
//! A block's tree ([`syntax::plpgsql::ast`]) is first compiled ([`compile`]): variables get places,
//! and every piece of SQL becomes a [`piece::Piece`] that is planned when it is first needed and
//! keeps its plan. Pieces see variables as parameters. [`run`] then carries the statements out.
//!
//! COMMIT and ROLLBACK end the session's own transaction, so a block may run in many; they only
//! add to what the output owes (DESIGN, section 3, step 7).

pub(super) mod code;
mod compile;
mod convert;
mod cursors;
mod loops;
pub(super) mod piece;
pub(super) mod place;
mod raise;
pub(super) mod returns;
pub(super) mod run;
mod statement;
mod target;

pub(super) use returns::record_of;

use base::{Error, Result, SqlState};
use pg_query::protobuf::DoStmt;

use super::transaction::State;
use super::utility::{option_text, tag};
use super::{CommandTag, Session, Sink};
use catalog::access::{denied, Guarded, Privileges};
use catalog::system;
use code::Signature;
use syntax::parser::{char_position, NodeEnum};
use syntax::plpgsql::parse::parse;

impl Session {
    /// Runs a DO block. It may end transactions where it is alone and in no block.
    pub(super) fn do_block(
        &mut self,
        text: &str,
        block: &DoStmt,
        sink: &mut dyn Sink,
        alone: bool,
    ) -> Result<CommandTag> {
        let mut body = None;
        for node in &block.args {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            match option.defname.as_str() {
                "as" => body = Some((option_text(option), option.location)),
                "language" if option_text(option) != "plpgsql" => {
                    return Err(Error::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("language \"{}\" does not exist", option_text(option)),
                    ))
                }
                _ => {}
            }
        }
        let Some((body, location)) = body else {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "no inline code specified",
            ));
        };
        self.may_write_in(system::language_named("plpgsql"))?;
        // Where the body begins in the statement, for errors of the compiler.
        let start = body_start(text, location);
        let placed = |error: Error| match error.fields().position {
            Some(position) => error.at(position + start),
            None => error,
        };
        let tree = parse(&body).map_err(placed)?;
        let code = self
            .compile_block(&body, &tree, &Signature::inline())
            .map_err(placed)?;
        let atomic = self.state == State::Block || !alone;
        let slots = code.slots.clone();
        self.run_block(&code, slots, atomic, sink)?;
        Ok(tag("DO"))
    }

    /// 42501 for a language in which the role may write nothing.
    pub(super) fn may_write_in(&mut self, language: Option<&system::Language>) -> Result<()> {
        let language = language.ok_or_else(|| Error::internal("no such language"))?;
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let role = self.shared.settings.current_role();
        match catalog.holds(role, Guarded::Language, language.oid, Privileges::USAGE) {
            true => Ok(()),
            false => Err(denied("language", language.name)),
        }
    }
}

/// How many characters stand before the body of a block in its statement.
pub(super) fn body_start(text: &str, location: i32) -> u32 {
    let before = char_position(text, location).unwrap_or(1) - 1;
    let rest = usize::try_from(location).ok().and_then(|at| text.get(at..));
    let quote = match rest {
        Some(rest) if rest.starts_with('$') => rest[1..]
            .find('$')
            .map_or(1, |end| rest[..end + 2].chars().count()),
        Some(rest) if rest.starts_with(['e', 'E']) => 2,
        _ => 1,
    };
    before + u32::try_from(quote).unwrap_or(0)
}
