//! The text of window functions and of the windows they name.

use base::Result;

use super::expression::{Names, Style, Writer};
use crate::plan::{
    Agg, Bound, Exclusion, Expr, FrameMode, WindowCall, WindowName, WindowSpec, Windowed,
};
use functions::strings::quote_identifier;
use types::EvalContext;

/// PostgreSQL's bits: a frame was written, with BETWEEN.
const NONDEFAULT: i32 = 0x1;
const BETWEEN: i32 = 0x10;

/// The text of a window, in parentheses; `name` says what it builds on.
///
/// # Errors
/// As [`super::expression`].
pub fn window(
    spec: &WindowSpec,
    name: &WindowName,
    names: &dyn Names,
    context: &EvalContext,
    style: Style,
) -> Result<String> {
    let mut writer = Writer::new(names, context, style);
    writer.window(spec, name)?;
    Ok(writer.done())
}

/// The text of a key to sort or group by.
///
/// # Errors
/// As [`super::expression`].
pub fn sort_key(
    expr: &Expr,
    names: &dyn Names,
    context: &EvalContext,
    style: Style,
) -> Result<String> {
    let mut writer = Writer::new(names, context, style);
    writer.sort_key(expr)?;
    Ok(writer.done())
}

impl Writer<'_> {
    /// A call with OVER.
    pub(super) fn window_call(&mut self, call: &WindowCall) -> Result<()> {
        let name = match &call.function {
            Windowed::Aggregate(Agg::Own(own)) => own.shown.clone(),
            function => self.aggregate_name(function.oid(), &quote_identifier(function.name())),
        };
        self.text(&name);
        self.text("(");
        let is_aggregate = matches!(call.function, Windowed::Aggregate(_));
        match call.args.is_empty() && is_aggregate {
            true => self.text("*"),
            false => self.list(&call.args, true)?,
        }
        self.text(")");
        if let Some(filter) = &call.filter {
            self.text(" FILTER (WHERE ");
            self.put(filter, false)?;
            self.text(")");
        }
        self.text(" OVER ");
        match &call.name {
            WindowName::Named(name) => self.text(&quote_identifier(name)),
            name => self.window(&call.window, name)?,
        }
        Ok(())
    }

    fn window(&mut self, spec: &WindowSpec, name: &WindowName) -> Result<()> {
        self.text("(");
        let mut part = "";
        let mut own_order = true;
        if let WindowName::From(name, copied) = name {
            self.text(&quote_identifier(name));
            own_order = !copied;
            part = " ";
        } else if !spec.partition.is_empty() {
            self.text("PARTITION BY ");
            for (place, expr) in spec.partition.iter().enumerate() {
                self.text(if place > 0 { ", " } else { "" });
                self.sort_key(expr)?;
            }
            part = " ";
        }
        if own_order && !spec.order.is_empty() {
            self.text(part);
            self.text("ORDER BY ");
            self.sorted(&spec.order)?;
            part = " ";
        }
        if spec.options & NONDEFAULT != 0 {
            self.text(part);
            self.frame(spec)?;
        }
        self.text(")");
        Ok(())
    }

    /// The keys of ORDER BY.
    pub(super) fn sorted(&mut self, order: &[(Expr, bool, bool)]) -> Result<()> {
        for (place, (key, descending, nulls_first)) in order.iter().enumerate() {
            self.text(if place > 0 { ", " } else { "" });
            self.sort_key(key)?;
            self.text(match (descending, nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            });
        }
        Ok(())
    }

    fn frame(&mut self, spec: &WindowSpec) -> Result<()> {
        let frame = &spec.frame;
        self.text(match frame.mode {
            FrameMode::Rows => "ROWS ",
            FrameMode::Range => "RANGE ",
            FrameMode::Groups => "GROUPS ",
        });
        match spec.options & BETWEEN != 0 {
            false => self.bound(&frame.start)?,
            true => {
                self.text("BETWEEN ");
                self.bound(&frame.start)?;
                self.text(" AND ");
                self.bound(&frame.end)?;
            }
        }
        self.text(match frame.exclude {
            Exclusion::None => "",
            Exclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclusion::Group => " EXCLUDE GROUP",
            Exclusion::Ties => " EXCLUDE TIES",
        });
        Ok(())
    }

    fn bound(&mut self, bound: &Bound<Expr>) -> Result<()> {
        if let Some(offset) = bound.offset() {
            self.put(offset, false)?;
        }
        self.text(match bound {
            Bound::UnboundedPreceding => "UNBOUNDED PRECEDING",
            Bound::Preceding(_) => " PRECEDING",
            Bound::CurrentRow => "CURRENT ROW",
            Bound::Following(_) => " FOLLOWING",
            Bound::UnboundedFollowing => "UNBOUNDED FOLLOWING",
        });
        Ok(())
    }
}
