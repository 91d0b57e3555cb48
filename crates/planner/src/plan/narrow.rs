//! Rows no wider than what is asked of them: the last step of planning.
//!
//! ```text
//! select c_custkey, count(o_orderkey) from customer left join orders on c_custkey = o_custkey
//! group by c_custkey
//!
//! as it was made                             narrowed
//! Aggregate                                  Aggregate
//! └─ Project: 17 columns                     └─ Join           hands on c_custkey, o_orderkey
//!    └─ Join                                    ├─ Scan customer   c_custkey
//!       ├─ Scan customer: 8 columns             └─ Scan orders     o_orderkey, o_custkey
//!       └─ Scan orders:   9 columns
//! ```
//! While a query is bound nobody knows yet which columns it will name, so all stand side by side
//! ([`crate::logical`]). Once the plan is whole, [`narrow_below`] goes through it from the top, tells each
//! node which columns somebody above looks at, and gives whoever looked at them their new places. Scans
//! then make no others ([`Scan::kept`]), joins hand on no others ([`Join::kept`]), and what only put
//! columns into another order is gone.
//!
//! # Invariants
//! - The columns of the plan as a whole stay where they are, and so do those of nodes that are not spoken of
//!   here.
//! - What is volatile is computed as often as before.
//! - An input that others have as well is left as it is: they would look for its columns in their old
//!   places. Subqueries and queries of WITH are narrowed when they are made.
//!
//! # What it leaves out
//! What stands below windows, row locks and UNION without ALL has all its columns, as has the left side of
//! a lateral join; aggregates are computed whether or not somebody looks at them. A scan of which
//! columns are taken right away, and nothing else, is left as it is: it makes no others anyway.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{AggregatePlan, Join, JoinKind, Plan, Program, Scan, SetColumn, SetOperation, SortKey};

/// The columns that somebody above looks at.
type Wanted = BTreeSet<usize>;

/// Where the columns of a plan's rows have gone; those that were wanted are there.
struct Places {
    /// By where they were.
    new: Vec<Option<usize>>,
    /// How many there are now.
    width: usize,
}

/// Where columns have gone, if they have: otherwise each is where it was.
type Moved = Option<Places>;

impl Places {
    /// Those of a plan that now has the columns of these places, one behind the other.
    fn of(kept: &[usize]) -> Places {
        let mut new = vec![None; kept.last().map_or(0, |last| last + 1)];
        for (to, from) in kept.iter().enumerate() {
            new[*from] = Some(to);
        }
        let width = kept.len();
        Places { new, width }
    }

    fn get(&self, place: usize) -> Option<usize> {
        self.new.get(place).copied().flatten()
    }
}

/// Where a column has gone.
///
/// # Panics
/// When nobody had said that it is wanted.
fn new_place(moved: &Moved, place: usize) -> usize {
    match moved {
        None => place,
        Some(places) => places
            .get(place)
            .unwrap_or_else(|| panic!("column {place} of a plan is gone, and looked at")),
    }
}

fn relocate(program: &mut Program, moved: &Moved) {
    if moved.is_some() {
        program.move_columns(&|place| new_place(moved, place));
    }
}

fn columns_of<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Wanted {
    programs.into_iter().flat_map(Program::columns).collect()
}

/// Narrows what stands below a plan, whose own columns stay as they are.
pub fn narrow_below(plan: &mut Plan) {
    match plan {
        Plan::Project(input, columns) => {
            if matches!(**input, Plan::Scan(_)) {
                return;
            }
            let moved = narrow_input(input, &columns_of(&*columns));
            columns.iter_mut().for_each(|one| relocate(one, &moved));
        }
        Plan::ProjectSet(input, columns) => narrow_below_sets(input, columns),
        Plan::Aggregate {
            input,
            groups,
            aggregates,
            ..
        } => {
            let keys = groups.iter_mut().map(|group| &mut group.0);
            let programs = keys.chain(aggregates.iter_mut().flat_map(programs_of));
            let programs: Vec<_> = programs.collect();
            let moved = narrow_input(input, &columns_of(programs.iter().map(|one| &**one)));
            programs
                .into_iter()
                .for_each(|program| relocate(program, &moved));
        }
        Plan::Join(join) => {
            let width = match join.kind {
                JoinKind::Semi | JoinKind::Anti => join.left_width,
                _ => join.left_width + join.right_width,
            };
            let all: Vec<usize> = (0..width).collect();
            if join.kept.is_none() {
                narrow_to(plan, &all, width);
            }
        }
        Plan::Filter(input, _)
        | Plan::Once(input, _)
        | Plan::Sort(input, _)
        | Plan::Distinct(input, _)
        | Plan::Trim(input, _)
        | Plan::Limit(input, ..)
        | Plan::Anew(_, input) => narrow_below_input(input),
        Plan::Window(window) => narrow_below_input(&mut window.input),
        Plan::SetOperation(_, _, parts, _) => parts.iter_mut().for_each(narrow_below),
        Plan::With(with) => narrow_below_input(&mut with.body),
        Plan::Insert(insert) => narrow_below_input(&mut insert.input),
        Plan::Update(update) => narrow_below_input(&mut update.input),
        Plan::Delete(delete) => narrow_below_input(&mut delete.input),
        Plan::Merge(merge) => narrow_below_input(&mut merge.input),
        Plan::Rewritten(rewritten) => rewritten.statements.iter_mut().for_each(narrow_below_input),
        Plan::Values(_)
        | Plan::Scan(_)
        | Plan::System(..)
        | Plan::Function { .. }
        | Plan::Beside(..)
        | Plan::Routine { .. }
        | Plan::Shared(..)
        | Plan::Recursive(_)
        | Plan::Working(_)
        | Plan::Transition(_)
        | Plan::Lock(..) => {}
    }
}

fn narrow_below_input(input: &mut Rc<Plan>) {
    if let Some(input) = Rc::get_mut(input) {
        narrow_below(input);
    }
}

fn narrow_below_sets(input: &mut Rc<Plan>, columns: &mut [SetColumn]) {
    let programs = columns.iter_mut().flat_map(|column| match column {
        SetColumn::One(program) => std::slice::from_mut(program),
        SetColumn::Set(_, args, ..) | SetColumn::Routine(_, args) => args.as_mut_slice(),
    });
    let programs: Vec<_> = programs.collect();
    let moved = narrow_input(input, &columns_of(programs.iter().map(|one| &**one)));
    programs
        .into_iter()
        .for_each(|program| relocate(program, &moved));
}

/// What an aggregate computes of a row.
fn programs_of(aggregate: &mut AggregatePlan) -> impl Iterator<Item = &mut Program> {
    let order = aggregate.order.iter_mut().map(|key| &mut key.value);
    let own = aggregate.args.iter_mut().chain(&mut aggregate.filter);
    own.chain(order)
}

/// Narrows an input, unless others have it too.
fn narrow_input(input: &mut Rc<Plan>, wanted: &Wanted) -> Moved {
    narrow(Rc::get_mut(input)?, wanted)
}

/// Narrows a plan of whose columns only these are looked at.
fn narrow(plan: &mut Plan, wanted: &Wanted) -> Moved {
    match plan {
        Plan::Scan(scan) => narrow_scan(scan, wanted),
        Plan::Join(join) => narrow_join(join, wanted),
        Plan::Project(..) => narrow_project(plan, wanted),
        Plan::Filter(input, condition) => {
            let moved = narrow_input(input, &with(wanted, condition.columns()));
            relocate(condition, &moved);
            moved
        }
        Plan::Once(input, _) | Plan::Anew(_, input) => narrow_input(input, wanted),
        Plan::Trim(input, _) => {
            let moved = narrow_input(input, wanted);
            // Nobody looks at what it would drop, as long as places are told.
            if moved.is_some() {
                take_place_of(plan);
            }
            moved
        }
        Plan::Sort(input, keys) => {
            let looked_at = keys.iter().flat_map(|key| key.value.columns());
            let moved = narrow_input(input, &with(wanted, looked_at));
            let values = keys.iter_mut().map(|key: &mut SortKey| &mut key.value);
            values.for_each(|value| relocate(value, &moved));
            moved
        }
        Plan::Distinct(input, columns) => {
            let told_apart = columns.iter().map(|column| column.0);
            let moved = narrow_input(input, &with(wanted, told_apart));
            for column in columns {
                column.0 = new_place(&moved, column.0);
            }
            moved
        }
        Plan::Limit(input, _, _, ties) => {
            let compared = ties.iter().flat_map(|tie| tie.0.columns());
            let moved = narrow_input(input, &with(wanted, compared));
            ties.iter_mut().for_each(|tie| relocate(&mut tie.0, &moved));
            moved
        }
        Plan::SetOperation(SetOperation::Union, true, parts, types) => {
            let width = types.len();
            let kept: Vec<usize> = wanted.iter().copied().collect();
            for part in parts {
                narrow_to(part, &kept, width);
            }
            *types = kept.iter().map(|place| types[*place]).collect();
            Some(Places::of(&kept))
        }
        plan => {
            narrow_below(plan);
            None
        }
    }
}

fn with(wanted: &Wanted, more: impl IntoIterator<Item = usize>) -> Wanted {
    wanted.iter().copied().chain(more).collect()
}

/// Puts the only input of a plan in its place, unless others have it too.
fn take_place_of(plan: &mut Plan) {
    let (Plan::Trim(input, _) | Plan::Project(input, _)) = plan else {
        return;
    };
    if let Some(input) = Rc::get_mut(input) {
        let input = std::mem::replace(input, Plan::Working(0));
        *plan = input;
    }
}

/// Makes a plan of so many columns one of exactly these, in this order.
fn narrow_to(plan: &mut Plan, kept: &[usize], width: usize) {
    let moved = narrow(plan, &kept.iter().copied().collect());
    let (places, is_done): (Vec<usize>, bool) = match &moved {
        None => (kept.to_vec(), kept.len() == width),
        Some(places) => {
            let new: Vec<_> = kept.iter().map(|place| new_place(&moved, *place)).collect();
            let is_done = new.iter().copied().eq(0..places.width);
            (new, is_done)
        }
    };
    if !is_done {
        let input = std::mem::replace(plan, Plan::Working(0));
        let columns = places.into_iter().map(Program::column);
        *plan = Plan::Project(Rc::new(input), columns.collect());
    }
}

/// The scan makes the columns that are wanted; the key and the oid follow as before.
fn narrow_scan(scan: &mut Scan, wanted: &Wanted) -> Moved {
    // What it tests there is over other columns.
    scan.slower = None;
    if scan.kept.is_some() {
        return None;
    }
    let width = scan.table.columns.len();
    let hidden = usize::from(scan.with_key) + usize::from(scan.with_oid);
    let own = wanted.range(..width).copied();
    let kept: Vec<usize> = own.clone().chain(width..width + hidden).collect();
    if kept.len() < width + hidden {
        scan.kept = Some(own.collect());
    }
    Some(Places::of(&kept))
}

/// Columns that nobody wants are not computed; if all that is left are columns of the input, its rows are
/// handed on as they are.
fn narrow_project(plan: &mut Plan, wanted: &Wanted) -> Moved {
    let Plan::Project(input, columns) = plan else {
        return None;
    };
    let is_kept = |place: &usize| wanted.contains(place) || !columns[*place].is_optional();
    let kept: Vec<usize> = (0..columns.len()).filter(is_kept).collect();
    let mut numbers = 0..;
    columns.retain(|_| numbers.next().is_some_and(|place| kept.contains(&place)));
    let of_input = narrow_input(input, &columns_of(&*columns));
    columns.iter_mut().for_each(|one| relocate(one, &of_input));
    let own: Option<Vec<usize>> = columns.iter().map(Program::as_column).collect();
    let is_alone = Rc::get_mut(input).is_some();
    match (own, of_input) {
        (Some(own), Some(of_input)) if is_alone => {
            take_place_of(plan);
            let mut new = vec![None; kept.last().map_or(0, |last| last + 1)];
            for (from, to) in kept.iter().zip(own) {
                new[*from] = Some(to);
            }
            let width = of_input.width;
            Some(Places { new, width })
        }
        _ => Some(Places::of(&kept)),
    }
}

/// The join hands on what is wanted; its inputs give that and what it looks at itself.
fn narrow_join(join: &mut Join, wanted: &Wanted) -> Moved {
    if join.kept.is_some() {
        return None;
    }
    let (left_width, right_width) = (join.left_width, join.right_width);
    let is_semi = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
    let own = columns_of(join.condition.iter().chain(&join.rest));
    let looked_at = own.iter().chain(wanted).copied();
    let (mut of_left, of_right): (Wanted, Wanted) =
        looked_at.partition(|place| *place < left_width);
    of_left.extend(join.hash.iter().flat_map(|key| key.0.columns()));
    let of_right = of_right.into_iter().map(|place| place - left_width);
    let keys = join.hash.iter().flat_map(|key| key.1.columns());
    let of_right: Wanted = of_right.chain(keys).collect();

    let left = narrow_left(join, of_left);
    let right = narrow_right(join, &of_right);
    join.left_width = left.as_ref().map_or(left_width, |places| places.width);
    join.right_width = right.as_ref().map_or(right_width, |places| places.width);
    let (new_left_width, new_right_width) = (join.left_width, join.right_width);
    for (of_left, of_right, _) in &mut join.hash {
        relocate(of_left, &left);
        relocate(of_right, &right);
    }
    let of_pair = |place: usize| match place.checked_sub(left_width) {
        None => new_place(&left, place),
        Some(place) => new_left_width + new_place(&right, place),
    };
    for condition in join.condition.iter_mut().chain(&mut join.rest) {
        condition.move_columns(&of_pair);
    }
    let kept: BTreeSet<usize> = wanted.iter().map(|place| of_pair(*place)).collect();
    let width = match is_semi {
        true => new_left_width,
        false => new_left_width + new_right_width,
    };
    let mut new = vec![None; wanted.last().map_or(0, |last| last + 1)];
    for place in wanted {
        let of_pair = of_pair(*place);
        new[*place] = Some(kept.range(..of_pair).count());
    }
    if kept.len() < width {
        join.kept = Some(kept.iter().copied().collect());
    }
    let width = kept.len();
    Some(Places { new, width })
}

/// Narrows the left input of a join. What looks rows up for its rows sees them as those of an enclosing
/// query.
fn narrow_left(join: &mut Join, mut wanted: Wanted) -> Moved {
    let lookup = match join.lookup.as_mut().map(Rc::get_mut) {
        None => None,
        Some(Some(Plan::Scan(scan))) if scan.inverted.is_none() => Some(scan),
        Some(_) => {
            narrow_below_input(&mut join.left);
            return None;
        }
    };
    if join.lateral.is_some() {
        narrow_below_input(&mut join.left);
        return None;
    }
    let mut programs: Vec<&mut Program> = Vec::new();
    if let Some(scan) = lookup {
        let others = scan.alternatives.iter_mut();
        programs.extend(scan.access.programs_mut());
        programs.extend(others.flat_map(|way| way.access.programs_mut()));
        programs.extend(&mut scan.filter);
    }
    wanted.extend(programs.iter().flat_map(|program| program.outer_columns()));
    let moved = narrow_input(&mut join.left, &wanted);
    if moved.is_some() {
        for program in programs {
            program.move_outer_columns(&|place| new_place(&moved, place));
        }
    }
    moved
}

/// Narrows the right input of a join and, if it has one, what looks up the same rows.
fn narrow_right(join: &mut Join, wanted: &Wanted) -> Moved {
    let Some(lookup) = &mut join.lookup else {
        return narrow_input(&mut join.right, wanted);
    };
    match (Rc::get_mut(lookup), Rc::get_mut(&mut join.right)) {
        (Some(Plan::Scan(lookup)), Some(Plan::Scan(right))) => {
            narrow_scan(lookup, wanted);
            narrow_scan(right, wanted)
        }
        _ => None,
    }
}
