//! Calls with OVER, and the windows that they name.
//!
//! A call keeps its whole window ([`WindowCall`]): its expressions stand over the rows of FROM like
//! those of its arguments, and grouping rewrites both alike. What becomes of the calls is
//! [`super::window_plan`]'s.
//!
//! # What it leaves out
//! DISTINCT and ORDER BY in aggregates with OVER, as PostgreSQL does.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{FuncCall, Node, WindowDef};

use super::expr::Place;
use super::scope::Scope;
use super::select::sort_order;
use super::{boxed, inner, Binder};
use crate::logical::names_columns;
use crate::plan::{
    Agg, Bound, Exclusion, Expr, ExprKind, Frame, FrameMode, WindowCall, WindowName, WindowSpec,
    Windowed,
};
use functions::in_range::offset_types;
use functions::{find_coercion, Aggregate, CastContext, WindowMatch};
use syntax::parser::NodeEnum;
use types::{TypeId, NO_TYPMOD};

/// PostgreSQL's bits for frames, as the parser gives them.
mod option {
    pub const RANGE: i32 = 0x2;
    pub const GROUPS: i32 = 0x8;
    pub const START_UNBOUNDED_PRECEDING: i32 = 0x20;
    pub const END_UNBOUNDED_FOLLOWING: i32 = 0x100;
    pub const END_CURRENT_ROW: i32 = 0x400;
    pub const START_CURRENT_ROW: i32 = 0x200;
    pub const START_PRECEDING: i32 = 0x800;
    pub const END_PRECEDING: i32 = 0x1000;
    pub const START_FOLLOWING: i32 = 0x2000;
    pub const END_FOLLOWING: i32 = 0x4000;
    pub const EXCLUDE_CURRENT_ROW: i32 = 0x8000;
    pub const EXCLUDE_GROUP: i32 = 0x10000;
    pub const EXCLUDE_TIES: i32 = 0x20000;
    /// No frame was written.
    pub const DEFAULTS: i32 = RANGE | START_UNBOUNDED_PRECEDING | END_CURRENT_ROW;
}

/// A window of the WINDOW clause.
#[derive(Clone, Debug)]
pub struct NamedWindow {
    /// Its name.
    pub name: String,
    /// What it is.
    pub spec: WindowSpec,
    /// How its definition names another window.
    pub from: WindowName,
}

/// The first window function in an expression.
pub(super) fn window_in(expr: &Expr) -> Option<&Expr> {
    match expr.kind {
        ExprKind::Window(_) => Some(expr),
        _ => expr.parts().into_iter().find_map(window_in),
    }
}

/// What error messages call the place of something that may not stand there.
pub(super) fn clause_words(clause: &'static str) -> &'static str {
    match clause {
        "JOIN/ON" => "JOIN conditions",
        clause => clause,
    }
}

impl Binder<'_> {
    /// WINDOW: the scope learns the names.
    pub(super) fn window_clause(&mut self, nodes: &[Node], scope: &mut Scope<'_>) -> Result<()> {
        for node in nodes {
            let NodeEnum::WindowDef(definition) = inner(node)? else {
                continue;
            };
            let same = |known: &NamedWindow| known.name == definition.name;
            if scope.windows.iter().any(same) {
                let message = format!("window \"{}\" is already defined", definition.name);
                return Err(self.error(SqlState::WINDOWING_ERROR, message, definition.location));
            }
            let (spec, from) = self.window_spec(definition, scope)?;
            scope.windows.push(NamedWindow {
                name: definition.name.clone(),
                spec,
                from,
            });
        }
        Ok(())
    }

    /// What OVER says: a name alone, or a window, which may build on a named one.
    fn over(&mut self, over: &WindowDef, scope: &Scope<'_>) -> Result<(WindowSpec, WindowName)> {
        if over.name.is_empty() {
            return self.window_spec(over, scope);
        }
        let named = self.named_window(&over.name, over.location, scope)?;
        Ok((named.spec.clone(), WindowName::Named(over.name.clone())))
    }

    fn named_window<'s>(
        &self,
        name: &str,
        location: i32,
        scope: &'s Scope<'_>,
    ) -> Result<&'s NamedWindow> {
        let found = scope.windows.iter().find(|known| known.name == name);
        found.ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            self.error(SqlState::UNDEFINED_OBJECT, message, location)
        })
    }

    fn window_spec(
        &mut self,
        definition: &WindowDef,
        scope: &Scope<'_>,
    ) -> Result<(WindowSpec, WindowName)> {
        let below = match definition.refname.as_str() {
            "" => None,
            name => Some(self.named_window(name, definition.location, scope)?.clone()),
        };
        let place = Place::grouped("window definitions");
        let mut order = Vec::new();
        for node in &definition.order_clause {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                continue;
            };
            let value = self.expr(boxed(&sort.node)?, scope, place)?;
            let value = self.settle(value)?;
            self.check_sortable(value.ty, value.leftmost())?;
            self.refuse_using(sort, value.ty)?;
            let value = self.ordered_by(value)?;
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        let mut partition = Vec::new();
        for node in &definition.partition_clause {
            let value = self.node(node, scope, place)?;
            let value = self.settle(value)?;
            self.check_equality(value.ty, value.leftmost())?;
            if !value.ty.is_sortable() {
                let error = self.error(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "could not implement window PARTITION BY",
                    -1,
                );
                return Err(
                    error.with_detail("Window partitioning columns must be of sortable datatypes.")
                );
            }
            partition.push(self.told_apart(value)?);
        }
        let mut name = WindowName::Given;
        if let Some(below) = below {
            self.check_override(definition, &below)?;
            partition.clone_from(&below.spec.partition);
            let copied = order.is_empty();
            if copied {
                order.clone_from(&below.spec.order);
            }
            name = WindowName::From(below.name, copied);
        }
        let frame = self.frame(definition, &order, scope)?;
        let spec = WindowSpec {
            partition,
            order,
            frame,
            options: definition.frame_options,
        };
        Ok((spec, name))
    }

    /// A window that builds on another may add what that has not.
    fn check_override(&self, definition: &WindowDef, below: &NamedWindow) -> Result<()> {
        let refuse = |message: String| {
            Err(self.error(SqlState::WINDOWING_ERROR, message, definition.location))
        };
        let name = &below.name;
        if !definition.partition_clause.is_empty() {
            return refuse(format!(
                "cannot override PARTITION BY clause of window \"{name}\""
            ));
        }
        let orders = !definition.order_clause.is_empty();
        if orders && !below.spec.order.is_empty() {
            return refuse(format!(
                "cannot override ORDER BY clause of window \"{name}\""
            ));
        }
        if below.spec.options == option::DEFAULTS {
            return Ok(());
        }
        let message = format!("cannot copy window \"{name}\" because it has a frame clause");
        let only_name =
            definition.name.is_empty() && !orders && definition.frame_options == option::DEFAULTS;
        match only_name {
            false => refuse(message),
            true => refuse(message)
                .map_err(|error| error.with_hint("Omit the parentheses in this OVER clause.")),
        }
    }

    fn frame(
        &mut self,
        definition: &WindowDef,
        order: &[(Expr, bool, bool)],
        scope: &Scope<'_>,
    ) -> Result<Frame<Expr>> {
        let has = |bit: i32| definition.frame_options & bit != 0;
        let mode = match () {
            () if has(option::RANGE) => FrameMode::Range,
            () if has(option::GROUPS) => FrameMode::Groups,
            () => FrameMode::Rows,
        };
        let offsets = option::START_PRECEDING
            | option::START_FOLLOWING
            | option::END_PRECEDING
            | option::END_FOLLOWING;
        let refuse = |message: &str| {
            Err(self.error(SqlState::WINDOWING_ERROR, message, definition.location))
        };
        if mode == FrameMode::Range && has(offsets) && order.len() != 1 {
            return refuse(
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            );
        }
        if mode == FrameMode::Groups && order.is_empty() {
            return refuse("GROUPS mode requires an ORDER BY clause");
        }
        let start = match () {
            () if has(option::START_CURRENT_ROW) => Bound::CurrentRow,
            () if has(option::START_PRECEDING | option::START_FOLLOWING) => {
                let offset = boxed(&definition.start_offset)?;
                let offset = self.frame_offset(offset, mode, order, scope)?;
                match has(option::START_PRECEDING) {
                    true => Bound::Preceding(offset),
                    false => Bound::Following(offset),
                }
            }
            () => Bound::UnboundedPreceding,
        };
        let end = match () {
            () if has(option::END_UNBOUNDED_FOLLOWING) => Bound::UnboundedFollowing,
            () if has(option::END_PRECEDING | option::END_FOLLOWING) => {
                let offset = boxed(&definition.end_offset)?;
                let offset = self.frame_offset(offset, mode, order, scope)?;
                match has(option::END_PRECEDING) {
                    true => Bound::Preceding(offset),
                    false => Bound::Following(offset),
                }
            }
            () => Bound::CurrentRow,
        };
        let exclude = match () {
            () if has(option::EXCLUDE_CURRENT_ROW) => Exclusion::CurrentRow,
            () if has(option::EXCLUDE_GROUP) => Exclusion::Group,
            () if has(option::EXCLUDE_TIES) => Exclusion::Ties,
            () => Exclusion::None,
        };
        Ok(Frame {
            mode,
            start,
            end,
            exclude,
        })
    }

    /// The offset of a frame's end, as the type that goes with the mode and the column.
    fn frame_offset(
        &mut self,
        node: &NodeEnum,
        mode: FrameMode,
        order: &[(Expr, bool, bool)],
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (word, clause) = match mode {
            FrameMode::Rows => ("ROWS", "window ROWS"),
            FrameMode::Range => ("RANGE", "window RANGE"),
            FrameMode::Groups => ("GROUPS", "window GROUPS"),
        };
        let offset = self.expr(node, scope, Place::plain(clause))?;
        let (from, location) = (offset.ty, offset.leftmost());
        let wanted = match (mode, order) {
            (FrameMode::Range, [(column, ..)]) => self.range_offset_type(column.ty, &offset)?,
            _ => TypeId::INT8,
        };
        let context = CastContext::Assignment;
        let Ok(offset) = self.try_coerce(offset, wanted, NO_TYPMOD, context)? else {
            return Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {word} must be type {wanted}, not type {from}"),
                location,
            ));
        };
        if names_columns(&offset) {
            let mut at = location;
            offset.visit(&mut |part| {
                if matches!(part.kind, ExprKind::Column(_)) {
                    at = part.location.0;
                }
            });
            return Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("argument of {word} must not contain variables"),
                at,
            ));
        }
        Ok(offset)
    }

    fn range_offset_type(&self, column: TypeId, offset: &Expr) -> Result<TypeId> {
        // Strings of all kinds are ordered as text is.
        let column = match column {
            TypeId::VARCHAR => TypeId::TEXT,
            column => column,
        };
        let known = offset_types(column);
        let refuse = |message: String| {
            self.error(SqlState::FEATURE_NOT_SUPPORTED, message, offset.leftmost())
        };
        const FEATURE: &str = "RANGE with offset PRECEDING/FOLLOWING";
        if known.is_empty() {
            return Err(refuse(format!(
                "{FEATURE} is not supported for column type {column}"
            )));
        }
        let preferred = match offset.ty {
            TypeId::UNKNOWN => column,
            given => given,
        };
        let fits = |ty: &&TypeId| find_coercion(offset.ty, **ty, CastContext::Implicit).is_some();
        let fitting: Vec<_> = known.iter().filter(fits).collect();
        match fitting.as_slice() {
            [] => Err(refuse(format!(
                "{FEATURE} is not supported for column type {column} and offset type {}",
                offset.ty
            ))
            .with_hint("Cast the offset value to an appropriate type.")),
            [only] => Ok(**only),
            several if several.contains(&&preferred) => Ok(preferred),
            _ => Err(refuse(format!(
                "{FEATURE} has multiple interpretations for column type {column} and offset type {}",
                offset.ty
            ))
            .with_hint("Cast the offset value to the exact intended type.")),
        }
    }

    /// A call of an aggregate with OVER.
    pub(super) fn aggregate_over(
        &mut self,
        call: &FuncCall,
        aggregate: &'static Aggregate,
        args: Vec<Expr>,
        types: (&[TypeId], TypeId),
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let function = Windowed::Aggregate(Agg::BuiltIn(aggregate));
        self.call_over(call, function, args, types, scope, place)
    }

    /// The same of one of one's own.
    pub(super) fn own_over(
        &mut self,
        call: &FuncCall,
        aggregate: Agg,
        args: Vec<Expr>,
        types: (&[TypeId], TypeId),
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        self.call_over(
            call,
            Windowed::Aggregate(aggregate),
            args,
            types,
            scope,
            place,
        )
    }

    /// A call of a function that needs OVER.
    pub(super) fn window_function(
        &mut self,
        call: &FuncCall,
        found: &WindowMatch,
        args: Vec<Expr>,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let name = found.function.name;
        if call.over.is_none() {
            let message = format!("window function {name} requires an OVER clause");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
        }
        let function = Windowed::Own(found.function);
        let types = (found.argument_types.as_slice(), found.result);
        self.call_over(call, function, args, types, scope, place)
    }

    fn call_over(
        &mut self,
        call: &FuncCall,
        function: Windowed,
        args: Vec<Expr>,
        (argument_types, result): (&[TypeId], TypeId),
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = call.location;
        let is_own = matches!(function, Windowed::Own(_));
        for (used, message) in [
            (
                call.agg_distinct,
                "DISTINCT is not implemented for window functions",
            ),
            (
                !call.agg_order.is_empty(),
                "aggregate ORDER BY is not implemented for window functions",
            ),
            (
                is_own && call.agg_filter.is_some(),
                "FILTER is not implemented for non-aggregate window functions",
            ),
        ] {
            if used {
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
            }
        }
        if let Some(inside) = args.iter().find_map(window_in) {
            return Err(self.error(
                SqlState::WINDOWING_ERROR,
                "window function calls cannot be nested",
                inside.location.0,
            ));
        }
        if !place.windows {
            let words = match clause_words(place.clause) {
                "window ROWS" | "window RANGE" | "window GROUPS" => "window definitions",
                words => words,
            };
            let message = format!("window functions are not allowed in {words}");
            return Err(self.error(SqlState::WINDOWING_ERROR, message, location));
        }
        let args = self.call_arguments(args, argument_types)?;
        let filter = self.call_filter(call, scope)?;
        let over = call.over.as_ref();
        let over = over.ok_or_else(|| Error::internal("a window function without OVER"))?;
        let (window, name) = self.over(over, scope)?;
        let call = WindowCall {
            function,
            types: args.iter().map(|arg| arg.ty).collect(),
            args,
            filter,
            window,
            name,
        };
        Ok(Expr::new(
            ExprKind::Window(Box::new(call)),
            result,
            location,
        ))
    }
}
