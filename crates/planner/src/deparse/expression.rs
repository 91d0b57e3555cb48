//! The text of one expression.

use std::fmt::Write;
use std::sync::OnceLock;

use base::hash::HashMap;
use base::{coro, Error, Result};

use super::layout::{mark, shifted};
use super::words;
use crate::plan::{Agg, AggregateCall, Expr, ExprKind, How, RoutineCall, SubKind, SubQuery};
use functions::collator::Collating;
use functions::ranges::is_constructor;
use functions::strings::quote_identifier;
use functions::{self, Coercion, Function};
use types::typmod::{format_type, NO_TYPMOD};
use types::{self, Datum, EvalContext, TypeId};

/// What an expression does not say of itself.
pub trait Names {
    /// The column at a place of the row, quoted and qualified as it is to be shown; `level` 0 is
    /// the query's own row, 1 that of the query around it.
    fn column(&self, place: usize, level: usize) -> String;

    /// The parameter at a place.
    fn param(&self, place: usize) -> String {
        format!("${}", place + 1)
    }

    /// What a record of these fields is called, if it is a row that has a name.
    fn row(&self, fields: &[Expr]) -> Option<String> {
        let _ = fields;
        None
    }

    /// A query inside the expression.
    ///
    /// # Errors
    /// 0A000 where there can be none.
    fn query(&self, query: &SubQuery, location: i32) -> Result<String> {
        let _ = (query, location);
        Err(Error::unsupported("a subquery here"))
    }
}

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Parentheses only where they must be.
    pub pretty: bool,
    /// How far lines that are begun are indented.
    pub indent: usize,
    /// No lines are begun.
    pub flat: bool,
    /// Lines begin with marks that say their level ([`super::layout`]).
    pub marked: bool,
}

/// The text of an expression. `casts` says whether a cast at the top that nobody wrote is shown.
///
/// # Errors
/// 0A000 for what cannot stand where no query is.
pub fn expression(
    expr: &Expr,
    names: &dyn Names,
    context: &EvalContext,
    style: Style,
    casts: bool,
) -> Result<String> {
    let mut writer = Writer::new(names, context, style);
    writer.put(expr, casts)?;
    Ok(writer.done())
}

/// Whether an expression looks like the call of a function, and so needs no parentheses in an index.
pub fn is_call(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(function, args, _) => {
            keyword_under(expr).is_some() || operator_of(function.0, args.len()).is_none()
        }
        ExprKind::Routine(call, _) => call.cast.is_none() && call.operator.is_none(),
        ExprKind::Coalesce(_) | ExprKind::Extreme(..) | ExprKind::NullIf(..) => true,
        _ => false,
    }
}

/// What PostgreSQL's rules about parentheses see in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Needs no parentheses anywhere: a name, a constant, a call.
    Simple,
    /// An operator with its name.
    Operator(&'static str),
    /// IS NULL, IS TRUE, IS DISTINCT FROM, a subquery.
    Test,
    And,
    Or,
    Not,
    /// A cast.
    Cast,
    /// What holds its parts in brackets of its own.
    Bracket,
}

pub(super) struct Writer<'a> {
    out: String,
    names: &'a dyn Names,
    context: &'a EvalContext,
    pretty: bool,
    indent: usize,
    flat: bool,
    marked: bool,
}

/// The operator that a function computes, if it computes one.
fn operator_of(function: &Function, operands: usize) -> Option<&'static str> {
    static KNOWN: OnceLock<HashMap<(u32, usize), &'static str>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let mut known = HashMap::default();
        let others = functions::extensions::all_operators();
        for operator in functions::all_operators().chain(others) {
            let operands = 1 + usize::from(operator.left != TypeId::NONE);
            let key = (operator.function.oid, operands);
            let name = known.entry(key).or_insert(operator.name);
            // Of points these are older names for others.
            if matches!(*name, "<^" | ">^") {
                *name = operator.name;
            }
        }
        known
    });
    known.get(&(function.oid, operands)).copied()
}

/// The name of an operator of a user's, if PostgreSQL knows how it ranks; nothing of others.
fn ranked(name: &str) -> &'static str {
    let known = ["+", "-", "*", "/", "%"];
    known.into_iter().find(|known| *known == name).unwrap_or("")
}

/// Whether a call is what a keyword like CURRENT_DATE means.
fn keyword_of(function: &Function) -> Option<&'static str> {
    match function.name {
        "current_user" => Some("CURRENT_USER"),
        "session_user" => Some("SESSION_USER"),
        name if name.starts_with("CURRENT_") || name.starts_with("LOCALTIME") => Some(name),
        _ => None,
    }
}

/// The keyword under a cast that the keyword itself brings.
fn keyword_under(expr: &Expr) -> Option<(&'static str, i32)> {
    let (inner, typmod) = match &expr.kind {
        ExprKind::Fit(inner, _) => (&**inner, expr.typmod),
        _ => (expr, NO_TYPMOD),
    };
    let call = match &inner.kind {
        ExprKind::Coerce(call, _) => call,
        _ => inner,
    };
    match &call.kind {
        ExprKind::Call(function, args, _) if args.is_empty() => {
            let keyword = keyword_of(function.0)?;
            let shown = keyword.starts_with("CURRENT_") || keyword.starts_with("LOCAL");
            shown.then_some((keyword, typmod))
        }
        _ => None,
    }
}

fn shape(expr: &Expr) -> Shape {
    if keyword_under(expr).is_some() {
        return Shape::Simple;
    }
    match &expr.kind {
        ExprKind::Call(function, args, _) => match operator_of(function.0, args.len()) {
            Some(name) => Shape::Operator(name),
            None => Shape::Bracket,
        },
        ExprKind::Coerce(..) | ExprKind::Fit(..) | ExprKind::Domain(..) => Shape::Cast,
        ExprKind::Routine(call, _) if call.cast.is_some() => Shape::Cast,
        ExprKind::Routine(call, _) => match &call.operator {
            Some(name) => Shape::Operator(ranked(name)),
            None => Shape::Bracket,
        },
        ExprKind::And(_) => Shape::And,
        ExprKind::Or(_) => Shape::Or,
        ExprKind::Not(_) => Shape::Not,
        ExprKind::Distinct(_, _, _, _, false) => Shape::Not,
        ExprKind::IsNull(..)
        | ExprKind::IsTruth(..)
        | ExprKind::Distinct(..)
        | ExprKind::AnyArray(..)
        | ExprKind::AnyOwn(..)
        | ExprKind::Collate(..)
        | ExprKind::Sub(..) => Shape::Test,
        ExprKind::Collating(inner, Collating::Key | Collating::Original, _) => shape(inner),
        ExprKind::Const(..)
        | ExprKind::Column(_)
        | ExprKind::Outer(..)
        | ExprKind::Param(_)
        | ExprKind::CaseInput => Shape::Simple,
        _ => Shape::Bracket,
    }
}

/// Whether an expression is shown as an operator and its operands.
pub fn is_operation(expr: &Expr) -> bool {
    matches!(shape(expr), Shape::Operator(_))
}

/// What was cast to a domain: the casts to its base type and modifier belong to the same words.
fn uncast(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Fit(inner, _) | ExprKind::Coerce(inner, _) => inner,
        _ => expr,
    }
}

/// What a cast that is not shown leaves to see.
fn through_casts(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Coerce(inner, _) | ExprKind::Fit(inner, _) if keyword_under(expr).is_none() => {
            through_casts(inner)
        }
        ExprKind::Domain(inner, ..) => through_casts(inner),
        _ => expr,
    }
}

/// Whether an operand may stand without parentheses inside its parent, in pretty style.
fn is_simple(expr: &Expr, parent: Shape, first: bool) -> bool {
    if matches!(expr.kind, ExprKind::AnyArray(..) | ExprKind::AnyOwn(..)) {
        return parent == Shape::Bracket;
    }
    match (shape(expr), parent) {
        (Shape::Simple | Shape::Bracket, _) => true,
        (Shape::Cast, parent) => is_simple(through_casts(expr), parent, first),
        (Shape::Operator(name), Shape::Operator(outer)) => {
            let rank = |name: &str| match name {
                "+" | "-" => Some(1),
                "*" | "/" | "%" => Some(2),
                _ => None,
            };
            match (rank(name), rank(outer)) {
                (Some(own), Some(outer)) => own > outer || (own == outer && first),
                _ => false,
            }
        }
        (Shape::Operator(_) | Shape::Test, parent) => {
            matches!(parent, Shape::And | Shape::Or | Shape::Not | Shape::Bracket)
        }
        (Shape::And | Shape::Not, parent) => {
            matches!(parent, Shape::And | Shape::Or | Shape::Bracket)
        }
        (Shape::Or, parent) => matches!(parent, Shape::Or | Shape::Bracket),
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(names: &'a dyn Names, context: &'a EvalContext, style: Style) -> Writer<'a> {
        Writer {
            out: String::new(),
            names,
            context,
            pretty: style.pretty,
            indent: style.indent,
            flat: style.flat,
            marked: style.marked,
        }
    }

    /// What was written.
    pub(super) fn done(self) -> String {
        self.context.name_types(self.out)
    }

    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A keyword that begins a line.
    fn line(&mut self, keyword: &str, before: isize, after: isize) {
        if self.flat {
            let begins = self.out.is_empty() || self.out.ends_with(['(', ' ']);
            self.text(if begins { "" } else { " " });
            self.text(keyword);
            return;
        }
        self.indent = self.indent.saturating_add_signed(before);
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.out.push('\n');
        match self.marked {
            true => self.out.push_str(&mark(self.level(), 0)),
            false => self.out.extend(std::iter::repeat_n(' ', self.indent)),
        }
        self.text(keyword);
        self.indent = self.indent.saturating_add_signed(after);
    }

    /// An operand: in parentheses, in pretty style, if its parent asks for them.
    pub(super) fn operand(
        &mut self,
        expr: &Expr,
        casts: bool,
        parent: Shape,
        first: bool,
    ) -> Result<()> {
        let bare = match casts {
            true => expr,
            false => self.shown(expr),
        };
        if self.pretty && !is_simple(bare, parent, first) {
            self.out.push('(');
            self.put(expr, casts)?;
            self.out.push(')');
            return Ok(());
        }
        self.put(expr, casts)
    }

    /// The expression without the casts that are hidden at its top.
    fn shown<'e>(&self, expr: &'e Expr) -> &'e Expr {
        match &expr.kind {
            ExprKind::Domain(inner, _, false) => self.shown(inner),
            ExprKind::Coerce(inner, How(_, false)) | ExprKind::Fit(inner, false)
                if keyword_under(expr).is_none() =>
            {
                self.shown(inner)
            }
            _ => expr,
        }
    }

    pub(super) fn list(&mut self, exprs: &[Expr], casts: bool) -> Result<()> {
        for (place, expr) in exprs.iter().enumerate() {
            if place > 0 {
                self.text(", ");
            }
            self.put(expr, casts)?;
        }
        Ok(())
    }

    /// Opens a parenthesis that only the plain style has.
    fn open(&mut self) {
        if !self.pretty {
            self.out.push('(');
        }
    }

    fn close(&mut self) {
        if !self.pretty {
            self.out.push(')');
        }
    }

    pub(super) fn put(&mut self, expr: &Expr, casts: bool) -> Result<()> {
        coro::check_depth()?;
        if let Some((keyword, typmod)) = keyword_under(expr) {
            self.text(keyword);
            if typmod >= 0 {
                let _ = write!(self.out, "({typmod})");
            }
            return Ok(());
        }
        match &expr.kind {
            ExprKind::Const(value, _) => self.constant(value, expr.ty, expr.typmod, Label::Needed),
            ExprKind::Column(place) => {
                let name = self.names.column(*place, 0);
                self.text(&name);
                Ok(())
            }
            ExprKind::Outer(level, place) => {
                let name = self.names.column(*place, *level);
                self.text(&name);
                Ok(())
            }
            ExprKind::Param(place) => {
                let param = self.names.param(*place);
                self.text(&param);
                Ok(())
            }
            ExprKind::Call(function, args, _) if is_constructor(function.0) => {
                self.text(&expr.ty.to_string());
                self.bracketed("(", args, ")")
            }
            ExprKind::Call(function, args, _) => self.call(function.0, args),
            ExprKind::SetCall(function, args, _) => self.plain_call(function.0.name, args),
            ExprKind::Routine(call, args) => match (call.cast, args.first()) {
                (Some(explicit), Some(value)) if explicit || casts => self.cast(value, expr),
                (Some(_), Some(value)) => self.put(value, false),
                _ => match &call.operator {
                    Some(name) => self.operation(ranked(name), name, args),
                    None => self.routine_call(call, args),
                },
            },
            ExprKind::Coerce(inner, How(_, explicit)) => match *explicit || casts {
                true => self.cast(inner, expr),
                false => self.put(inner, false),
            },
            ExprKind::Fit(inner, explicit) => match *explicit || casts {
                true => self.fit(inner, expr),
                false => self.put(inner, false),
            },
            ExprKind::Domain(inner, test, explicit) => match *explicit || casts {
                true => self.labelled(uncast(inner), &test.domain.to_string()),
                false => self.put(inner, false),
            },
            ExprKind::Collate(inner, used) => {
                self.open();
                self.operand(inner, casts, Shape::Test, true)?;
                let _ = write!(self.out, " COLLATE {}", used.shown);
                self.close();
                Ok(())
            }
            ExprKind::Collating(inner, what, _) => match what {
                Collating::Key | Collating::Original => self.put(inner, casts),
                Collating::Upper => self.bracketed("upper(", std::slice::from_ref(&**inner), ")"),
                Collating::Lower => self.bracketed("lower(", std::slice::from_ref(&**inner), ")"),
                Collating::Initcap => {
                    self.bracketed("initcap(", std::slice::from_ref(&**inner), ")")
                }
            },
            ExprKind::And(parts) => self.logic(parts, " AND ", Shape::And),
            ExprKind::Or(parts) => self.logic(parts, " OR ", Shape::Or),
            ExprKind::Not(inner) => {
                self.open();
                self.text("NOT ");
                self.operand(inner, false, Shape::Not, true)?;
                self.close();
                Ok(())
            }
            ExprKind::Case(whens, otherwise) => self.case(None, whens, otherwise),
            ExprKind::CaseValue(value, case) => match &case.kind {
                ExprKind::Case(whens, otherwise) => self.case(Some(value), whens, otherwise),
                _ => self.put(case, casts),
            },
            ExprKind::CaseInput => Ok(()),
            ExprKind::Coalesce(args) => self.bracketed("COALESCE(", args, ")"),
            ExprKind::Extreme(args, greatest) => {
                self.bracketed(if *greatest { "GREATEST(" } else { "LEAST(" }, args, ")")
            }
            ExprKind::NullIf(_, _, args, _) => self.bracketed("NULLIF(", args, ")"),
            ExprKind::Array(args, _) => {
                self.bracketed("ARRAY[", args, "]")?;
                if args.is_empty() {
                    let _ = write!(self.out, "::{}", format_type(expr.ty, NO_TYPMOD));
                }
                Ok(())
            }
            ExprKind::Record(args, names) => {
                match names.as_ref().and_then(|_| self.names.row(args)) {
                    Some(row) => {
                        self.text(&row);
                        Ok(())
                    }
                    None => {
                        self.bracketed("ROW(", args, ")")?;
                        if expr.ty != TypeId::RECORD {
                            let _ = write!(self.out, "::{}", format_type(expr.ty, NO_TYPMOD));
                        }
                        Ok(())
                    }
                }
            }
            ExprKind::Aggregate(call) => self.aggregate(call),
            ExprKind::Window(call) => self.window_call(call),
            ExprKind::Grouping(args) => self.bracketed("GROUPING(", args, ")"),
            ExprKind::Subscript(array, index) => {
                let plain = matches!(array.kind, ExprKind::Column(_) | ExprKind::Outer(..));
                if !plain {
                    self.text("(");
                }
                self.put(array, casts)?;
                self.text(if plain { "" } else { ")" });
                let indexes = match &index.kind {
                    ExprKind::Array(indexes, _) => indexes.as_slice(),
                    _ => std::slice::from_ref(&**index),
                };
                for index in indexes {
                    self.text("[");
                    self.put(index, casts)?;
                    self.text("]");
                }
                Ok(())
            }
            ExprKind::Sub(query, test, _) => {
                let text = self.names.query(query, expr.location.0)?;
                if !self.marked {
                    if test.is_some() {
                        let what = "a comparison with a subquery here";
                        return Err(Error::unsupported(what));
                    }
                    self.text(&text);
                    return Ok(());
                }
                self.inner_query(&query.kind, test.as_deref(), &shifted(&text, self.level()))
            }
            _ => self.test(expr),
        }
    }

    fn level(&self) -> i32 {
        i32::try_from(self.indent).unwrap_or(i32::MAX)
    }

    /// A query that is laid out, and what it is asked for.
    fn inner_query(&mut self, kind: &SubKind, test: Option<&Expr>, text: &str) -> Result<()> {
        match (kind, test) {
            (SubKind::Array(_), _) => self.text(&format!("ARRAY({text})")),
            (SubKind::Exists, _) => self.text(&format!("(EXISTS ({text}))")),
            (SubKind::Scalar | SubKind::Row(_), _) => self.text(&format!("({text})")),
            (SubKind::Any(function, all), Some(test)) => {
                let name = operator_of(function.0, 2).unwrap_or("=");
                let name = self.context.operator_text(function.0.oid, name);
                self.compared_with(test, &name, *all, text)?;
            }
            (SubKind::Compare(_, all, Some(name)), Some(test)) => {
                let ExprKind::Record(fields, _) = &test.kind else {
                    return Err(Error::internal("no row to compare"));
                };
                let [test] = fields.as_slice() else {
                    return Err(Error::internal("a row of several to compare"));
                };
                self.compared_with(test, name, *all, text)?;
            }
            _ => return Err(Error::unsupported("a comparison with a subquery here")),
        }
        Ok(())
    }

    /// `(x = ANY (SELECT …))`.
    fn compared_with(&mut self, test: &Expr, name: &str, all: bool, query: &str) -> Result<()> {
        self.text("(");
        self.put(test, true)?;
        match (name, all) {
            ("=", false) => self.text(" IN ("),
            (name, false) => self.text(&format!(" {name} ANY (")),
            (name, true) => self.text(&format!(" {name} ALL (")),
        }
        self.text(&format!("{query}))"));
        Ok(())
    }

    /// What is tested of a value.
    fn test(&mut self, expr: &Expr) -> Result<()> {
        if let ExprKind::Distinct(_, _, _, _, false) = &expr.kind {
            self.open();
            self.text("NOT ");
        }
        self.open();
        match &expr.kind {
            ExprKind::IsNull(arg, is) => {
                self.operand(arg, true, Shape::Test, true)?;
                self.text(if *is { " IS NULL" } else { " IS NOT NULL" });
            }
            ExprKind::IsTruth(arg, value, negated) => {
                self.operand(arg, false, Shape::Test, true)?;
                let what = match value {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                let not = if *negated { "NOT " } else { "" };
                let _ = write!(self.out, " IS {not}{what}");
            }
            ExprKind::Distinct(left, right, ..) => {
                self.operand(left, true, Shape::Test, true)?;
                self.text(" IS DISTINCT FROM ");
                self.operand(right, true, Shape::Test, false)?;
            }
            ExprKind::AnyArray(left, right, function, _, all) => {
                let name = operator_of(function.0, 2).unwrap_or("=");
                let name = self.context.operator_text(function.0.oid, name);
                self.quantified(left, right, &name, *all)?;
            }
            ExprKind::AnyOwn(left, right, test) => {
                let name = test.call.operator.as_deref().unwrap_or_default();
                self.quantified(left, right, name, test.all)?;
            }
            _ => return Err(Error::internal("an expression without a text")),
        }
        self.close();
        if let ExprKind::Distinct(_, _, _, _, false) = &expr.kind {
            self.close();
        }
        Ok(())
    }

    /// `x = ANY (array)`.
    fn quantified(&mut self, left: &Expr, right: &Expr, name: &str, all: bool) -> Result<()> {
        self.operand(left, true, Shape::Test, true)?;
        let quantifier = if all { "ALL" } else { "ANY" };
        let _ = write!(self.out, " {name} {quantifier} (");
        self.operand(right, true, Shape::Test, false)?;
        self.text(")");
        Ok(())
    }

    fn bracketed(&mut self, open: &str, args: &[Expr], close: &str) -> Result<()> {
        self.text(open);
        self.list(args, true)?;
        self.text(close);
        Ok(())
    }

    fn logic(&mut self, parts: &[Expr], word: &str, own: Shape) -> Result<()> {
        self.open();
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                self.text(word);
            }
            self.operand(part, false, own, place == 0)?;
        }
        self.close();
        Ok(())
    }

    fn call(&mut self, function: &Function, args: &[Expr]) -> Result<()> {
        if let Some(name) = operator_of(function, args.len()) {
            let shown = self.context.operator_text(function.oid, name);
            return self.operation(name, &shown, args);
        }
        match (function.name, args) {
            (words, args) if words::are_words(words) => self.words(words, args),
            ("array_slice", [array, mask, bounds @ ..]) => self.slice(array, mask, bounds),
            (name, [fixed @ .., array]) if functions::takes_array(function) => {
                let _ = write!(self.out, "{}(", quote_identifier(name));
                self.list(fixed, true)?;
                self.text(if fixed.is_empty() { "" } else { ", " });
                self.text("VARIADIC ");
                self.put(array, true)?;
                self.text(")");
                Ok(())
            }
            ("record_field", [row, _, name]) => {
                self.text("(");
                self.put(row, true)?;
                let name = match &name.kind {
                    ExprKind::Const(name, _) => quote_identifier(name.as_str()),
                    _ => return Err(Error::internal("a field without a name")),
                };
                let _ = write!(self.out, ").{name}");
                Ok(())
            }
            ("record_named", [row, _]) => self.put(row, true),
            (name, args) => match keyword_of(function) {
                Some(keyword) if args.is_empty() => {
                    self.text(keyword);
                    Ok(())
                }
                _ => self.plain_call(name, args),
            },
        }
    }

    /// An operator between its operands, or before the only one.
    fn operation(&mut self, name: &'static str, shown: &str, args: &[Expr]) -> Result<()> {
        let own = Shape::Operator(name);
        self.open();
        match args {
            [left, right] => {
                self.operand(left, true, own, true)?;
                let _ = write!(self.out, " {shown} ");
                self.operand(right, true, own, false)?;
            }
            [arg] => {
                let _ = write!(self.out, "{shown} ");
                self.operand(arg, true, own, true)?;
            }
            _ => return Err(Error::internal("an operator of three operands")),
        }
        self.close();
        Ok(())
    }

    /// A call of a routine of one's own, with the arguments that were written.
    fn routine_call(&mut self, call: &RoutineCall, args: &[Expr]) -> Result<()> {
        self.text(&call.shown);
        self.text("(");
        for (at, (place, name)) in call.written.iter().enumerate() {
            if at > 0 {
                self.text(", ");
            }
            if call.routine.is_variadic() && place + 1 == args.len() {
                self.text("VARIADIC ");
            }
            if let Some(name) = name {
                self.text(&format!("{} => ", quote_identifier(name)));
            }
            if let Some(arg) = args.get(*place) {
                self.put(arg, true)?;
            }
        }
        self.text(")");
        Ok(())
    }

    /// `a[2:3]`.
    fn slice(&mut self, array: &Expr, mask: &Expr, bounds: &[Expr]) -> Result<()> {
        let mask = match &mask.kind {
            ExprKind::Const(mask, _) => mask.as_i64().unwrap_or(0),
            _ => 0,
        };
        let plain = matches!(array.kind, ExprKind::Column(_) | ExprKind::Outer(..));
        self.text(if plain { "" } else { "(" });
        self.put(array, true)?;
        self.text(if plain { "" } else { ")" });
        for (at, bound) in bounds.iter().enumerate() {
            self.text(if at % 2 == 0 { "[" } else { ":" });
            if mask >> at & 1 == 0 {
                self.put(bound, false)?;
            }
            self.text(if at % 2 == 0 { "" } else { "]" });
        }
        Ok(())
    }

    fn plain_call(&mut self, name: &str, args: &[Expr]) -> Result<()> {
        let name = quote_identifier(name);
        self.text(&name);
        self.bracketed("(", args, ")")
    }

    /// A key to sort or group by: in parentheses unless it is a name or a constant.
    pub(super) fn sort_key(&mut self, expr: &Expr) -> Result<()> {
        let (is_name, in_brackets) = match &expr.kind {
            ExprKind::Const(value, _) if !value.is_null() => {
                let label = format!("::{}", format_type(expr.ty, expr.typmod));
                let before = self.out.len();
                self.constant(value, expr.ty, expr.typmod, Label::Needed)?;
                if !self.out[before..].ends_with(&label) {
                    self.text(&label);
                }
                return Ok(());
            }
            ExprKind::Column(_) | ExprKind::Outer(..) | ExprKind::Const(..) => (true, false),
            ExprKind::Call(function, args, _) => {
                (false, operator_of(function.0, args.len()).is_none())
            }
            ExprKind::Routine(call, _) => (false, call.operator.is_none()),
            ExprKind::Aggregate(_) | ExprKind::Window(_) => (false, true),
            ExprKind::Coerce(_, How(Coercion::Function(_), _)) => (false, true),
            _ => (false, false),
        };
        let brackets = !is_name && (in_brackets || self.pretty);
        self.text(if brackets { "(" } else { "" });
        self.put(expr, true)?;
        self.text(if brackets { ")" } else { "" });
        Ok(())
    }

    /// What an aggregate is called, with its schema where it must be.
    pub(super) fn aggregate_name(&self, oid: u32, name: &str) -> String {
        self.context.aggregate_text(oid, name)
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Result<()> {
        let name = match &call.aggregate {
            Agg::Own(own) => own.shown.clone(),
            own => self.aggregate_name(own.oid(), &quote_identifier(own.name())),
        };
        self.text(&name);
        self.text("(");
        if call.distinct {
            self.text("DISTINCT ");
        }
        if call.aggregate.ordered_set().is_some() {
            let direct = call.args.len() - call.order.len();
            self.list(&call.args[..direct], true)?;
            self.text(") WITHIN GROUP (ORDER BY ");
            self.sorted(&call.order)?;
            self.text(")");
            return self.aggregate_filter(call);
        }
        match call.args.is_empty() {
            true => self.text("*"),
            false => self.list(&call.args, true)?,
        }
        if !call.order.is_empty() {
            self.text(" ORDER BY ");
            self.sorted(&call.order)?;
        }
        self.text(")");
        self.aggregate_filter(call)
    }

    fn aggregate_filter(&mut self, call: &AggregateCall) -> Result<()> {
        if let Some(filter) = &call.filter {
            self.text(" FILTER (WHERE ");
            self.put(filter, false)?;
            self.text(")");
        }
        Ok(())
    }

    fn case(
        &mut self,
        value: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: &Expr,
    ) -> Result<()> {
        const STEP: isize = 4;
        self.line("CASE", 0, STEP);
        if let Some(value) = value {
            self.text(" ");
            self.put(value, true)?;
        }
        for (condition, result) in whens {
            self.line("WHEN ", 0, 0);
            // `CASE x WHEN y` is bound as `x = y`; only `y` is written.
            match (&value, &condition.kind) {
                (Some(_), ExprKind::Call(_, args, _) | ExprKind::Routine(_, args))
                    if args.len() == 2 =>
                {
                    self.put(&args[1], false)?;
                }
                _ => self.put(condition, false)?,
            }
            self.text(" THEN ");
            self.put(result, true)?;
        }
        self.line("ELSE ", 0, 0);
        self.put(otherwise, true)?;
        self.line("END", -STEP, 0);
        Ok(())
    }

    /// A cast that is shown.
    fn cast(&mut self, inner: &Expr, whole: &Expr) -> Result<()> {
        self.labelled(inner, &format_type(whole.ty, whole.typmod))
    }

    /// A modifier that is shown.
    fn fit(&mut self, inner: &Expr, whole: &Expr) -> Result<()> {
        let ty = format_type(whole.ty, whole.typmod);
        match &inner.kind {
            ExprKind::Const(value, _) if !value.is_null() => {
                self.constant(value, inner.ty, NO_TYPMOD, Label::None)?;
                let _ = write!(self.out, "::{ty}");
                Ok(())
            }
            // The cast beneath belongs to the same words.
            ExprKind::Coerce(value, _) if inner.ty == whole.ty => self.labelled(value, &ty),
            _ => self.labelled(inner, &ty),
        }
    }

    fn labelled(&mut self, inner: &Expr, ty: &str) -> Result<()> {
        self.open();
        self.operand(inner, false, Shape::Cast, true)?;
        self.close();
        let _ = write!(self.out, "::{ty}");
        Ok(())
    }

    fn constant(&mut self, value: &Datum, ty: TypeId, typmod: i32, label: Label) -> Result<()> {
        let shown = format_type(ty, typmod);
        if value.is_null() {
            let _ = write!(self.out, "NULL");
            // An untyped NULL is of type text by now.
            let shown = match ty {
                TypeId::UNKNOWN => "unknown",
                _ => &shown,
            };
            let _ = write!(self.out, "::{shown}");
            return Ok(());
        }
        let text = types::output(self.context, ty, value)?;
        let negative = text.starts_with('-');
        let digits = text.starts_with(|c: char| c.is_ascii_digit());
        let needed = match ty {
            TypeId::INT4 => negative,
            TypeId::NUMERIC => !(digits && text.contains(['e', 'E', '.'])),
            TypeId::BOOL => {
                let word = if value.is_true() { "true" } else { "false" };
                self.text(word);
                return Ok(());
            }
            _ => true,
        };
        match (ty, needed) {
            (TypeId::INT4 | TypeId::NUMERIC, false) => self.text(&text),
            _ => self.text(&quoted(&text)),
        }
        let wanted = match ty {
            TypeId::UNKNOWN => false,
            TypeId::NUMERIC => needed || typmod >= 0,
            _ => needed,
        };
        if wanted && label == Label::Needed {
            let _ = write!(self.out, "::{shown}");
        }
        Ok(())
    }
}

/// A literal; backslashes mean themselves.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a constant gets the type's name behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// Where its text does not say the type.
    Needed,
    None,
}
