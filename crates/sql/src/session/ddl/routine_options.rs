//! The options of functions and procedures: CREATE and ALTER take the same.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{DefElem, Node, VariableSetKind};

use super::super::utility::option_text;
use super::super::Session;
use super::routine::{at_option, conflicting, invalid};
use super::texts;
use catalog::routine::{Language, Routine, RoutineKind};
use syntax::parser::NodeEnum;

/// What a body is written as: its text, and where it begins in the statement.
pub(super) struct Written {
    pub body: String,
    pub location: i32,
}

impl Session {
    /// What the options say; the body if they have it.
    pub(super) fn routine_options(
        &mut self,
        text: &str,
        routine: &mut Routine,
        options: &[Node],
        has_sql_body: bool,
    ) -> Result<Option<Written>> {
        let mut written = None;
        let mut seen: Vec<String> = Vec::new();
        let mut language = None;
        for node in options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            if seen.contains(&option.defname) && option.defname != "set" {
                return Err(at_option(conflicting(), text, option));
            }
            seen.push(option.defname.clone());
            match option.defname.as_str() {
                "as" => written = Some(body_of(option)?),
                "language" => {
                    let name = option_text(option).to_ascii_lowercase();
                    language = Some(match name.as_str() {
                        "sql" => Language::Sql,
                        "plpgsql" => Language::PlPgSql,
                        "c" | "internal" => {
                            return Err(Error::unsupported(format!(
                                "a function in language {name}"
                            )))
                        }
                        _ => {
                            return Err(Error::new(
                                SqlState::UNDEFINED_OBJECT,
                                format!("language \"{name}\" does not exist"),
                            ))
                        }
                    });
                }
                _ => self.routine_option(text, routine, option)?,
            }
        }
        match language {
            Some(language) => routine.language = language,
            None if has_sql_body => routine.language = Language::Sql,
            None => return Err(invalid("no language specified")),
        }
        Ok(written)
    }

    /// An option that ALTER takes too.
    pub(super) fn routine_option(
        &mut self,
        text: &str,
        routine: &mut Routine,
        option: &DefElem,
    ) -> Result<()> {
        let is_true = || matches!(option_text(option).as_str(), "true" | "1");
        let number = || number_of(option);
        let procedure = routine.kind == RoutineKind::Procedure;
        if procedure && !["security", "set"].contains(&option.defname.as_str()) {
            let error = invalid("invalid attribute in procedure definition");
            return Err(at_option(error, text, option));
        }
        match option.defname.as_str() {
            "volatility" => {
                routine.volatility = match option_text(option).as_str() {
                    "immutable" => b'i',
                    "stable" => b's',
                    _ => b'v',
                }
            }
            "strict" => routine.strict = is_true(),
            "security" => routine.security_definer = is_true(),
            "leakproof" => {
                routine.leakproof = is_true();
                let catalog = self.current_catalog()?;
                if routine.leakproof && !catalog.is_superuser(self.shared.settings.current_role()) {
                    return Err(Error::new(
                        SqlState::INSUFFICIENT_PRIVILEGE,
                        "only superuser can define a leakproof function",
                    ));
                }
            }
            "parallel" => {
                routine.parallel = match option_text(option).as_str() {
                    "safe" => b's',
                    "restricted" => b'r',
                    "unsafe" => b'u',
                    _ => {
                        return Err(Error::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE",
                        ))
                    }
                }
            }
            "cost" => {
                routine.cost = number();
                if routine.cost <= 0.0 {
                    return Err(Error::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "COST must be positive",
                    ));
                }
            }
            "rows" => {
                routine.rows = number();
                if routine.rows <= 0.0 {
                    return Err(Error::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "ROWS must be positive",
                    ));
                }
            }
            "set" => self.routine_setting(routine, option)?,
            "window" => return Err(Error::unsupported("a window function of one's own")),
            "transform" => return Err(Error::unsupported("TRANSFORM")),
            "support" => return Err(Error::unsupported("SUPPORT")),
            other => return Err(Error::unsupported(format!("option {other} of a function"))),
        }
        Ok(())
    }

    fn routine_setting(&mut self, routine: &mut Routine, option: &DefElem) -> Result<()> {
        let set = option.arg.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::VariableSetStmt(set)) = set else {
            return Err(Error::internal("SET of nothing"));
        };
        if set.kind == VariableSetKind::VarResetAll as i32 {
            routine.settings.clear();
            return Ok(());
        }
        if set.kind == VariableSetKind::VarSetCurrent as i32 {
            let (name, value) = self.shown(&set.name)?;
            routine.settings.retain(|known| known.0 != name);
            routine.settings.push((name, value));
            return Ok(());
        }
        let Some((name, value)) = self.value_given(set)? else {
            return Err(Error::unsupported("this SET clause"));
        };
        // As it is defined, however it is written.
        let name = self
            .shared
            .settings
            .show(&name)
            .map_or(name, |shown| shown.0);
        routine.settings.retain(|known| known.0 != name);
        if let Some(value) = value {
            // Refused now what would be refused when it is called.
            let mark = self.shared.settings.mark();
            let tried = self.apply_setting(&name, Some(&value), true);
            self.shared.settings.roll_back_to(mark);
            self.settings_changed();
            tried?;
            routine.settings.push((name, value));
        }
        Ok(())
    }
}

/// The body of AS.
fn body_of(option: &DefElem) -> Result<Written> {
    let items = match option.arg.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::List(list)) => texts(&list.items),
        Some(NodeEnum::String(text)) => vec![text.sval.clone()],
        _ => Vec::new(),
    };
    match <[String; 1]>::try_from(items) {
        Ok([body]) => Ok(Written {
            body,
            location: option.location,
        }),
        Err(_) => Err(invalid("only one AS item needed for language \"sql\"")),
    }
}

/// The number of COST or ROWS.
fn number_of(option: &DefElem) -> f32 {
    match option.arg.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::Float(number)) => number.fval.parse().unwrap_or(0.0),
        _ => option_text(option).parse().unwrap_or(0.0),
    }
}
