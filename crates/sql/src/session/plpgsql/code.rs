//! What blocks are compiled to.
//!
//! ```text
//! IF a > 1 THEN b := a; END IF      If([(piece "a > 1", [Assign(place of b, piece "a")])], [])
//! ```
//! Variables are places ([`Slot`]), everything between the language's own words is a [`Piece`].

use std::rc::Rc;
use std::sync::Arc;

use base::Error;
use pg_query::protobuf::{CallStmt, FetchDirection};

use super::piece::{Names, Piece, Slot};
use catalog::Table;
use planner::plan::Collated;
use syntax::plpgsql::ast::{Condition, Raise};
use types::TypeId;

/// A compiled block.
pub struct Code {
    pub body: BlockCode,
    pub slots: Vec<Slot>,
    /// The place of FOUND.
    pub found: usize,
    /// What errors call it.
    pub name: Rc<str>,
    /// What it gives back.
    pub returns: Returns,
    /// The places of what it is given.
    pub inputs: Vec<usize>,
    /// Whether errors of INTO STRICT show parameters.
    pub prints_strict: bool,
    /// What a text that EXECUTE runs sees: the rows of a trigger's statement.
    pub rows: Rc<Names>,
    /// What is to be warned of when it is made.
    pub warnings: Vec<Error>,
}

/// What a block gives back.
#[derive(Debug, Default)]
pub struct Returns {
    pub kind: ReturnKind,
    /// Any number of it.
    pub set: bool,
    /// The places of the outputs, if they are variables.
    pub outs: Vec<usize>,
    /// Whether it is a trigger's, whose rows these are.
    pub trigger: bool,
}

/// What one result of a block is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ReturnKind {
    /// There is none: void, and DO.
    #[default]
    Nothing,
    /// Of a procedure, there is none either.
    Procedure,
    Value(TypeId),
    /// A row of these columns; none are known for `record` itself.
    Record(Vec<(String, TypeId)>),
}

/// What a block is called with, and what errors call it.
#[derive(Clone, Debug)]
pub struct Signature {
    /// With the types of its inputs.
    pub shown: String,
    /// The name alone.
    pub name: String,
    /// Name, type, whether it is given, whether it is given back.
    pub arguments: Vec<(String, TypeId, bool, bool)>,
    pub kind: ReturnKind,
    pub set: bool,
    /// Whether only triggers call it, which give it rows and `TG_…`.
    pub trigger: bool,
    /// What names the rows of a statement as a table: that, the table, whether it is the new rows.
    pub rows: Vec<(String, Arc<Table>, bool)>,
    /// Whether it is about to be made, rather than to run.
    pub is_new: bool,
    /// The collation of its arguments.
    pub collation: Collated,
}

impl Signature {
    /// That of DO.
    pub fn inline() -> Signature {
        Signature {
            shown: "inline_code_block".to_owned(),
            name: "inline_code_block".to_owned(),
            arguments: Vec::new(),
            kind: ReturnKind::Nothing,
            set: false,
            trigger: false,
            rows: Vec::new(),
            is_new: false,
            collation: Collated::default(),
        }
    }
}

/// One block.
pub struct BlockCode {
    pub label: Option<String>,
    /// Variables: place, first value, line.
    pub declarations: Vec<(usize, Option<Piece>, usize)>,
    pub body: Vec<Step>,
    pub handlers: Vec<HandlerCode>,
    /// The places of SQLSTATE and SQLERRM inside its handlers.
    pub error_slots: (usize, usize),
}

/// What catches errors.
pub struct HandlerCode {
    pub conditions: Vec<Condition>,
    pub body: Vec<Step>,
}

/// A statement and its line.
pub struct Step {
    pub line: usize,
    pub kind: StepKind,
}

/// A variable that is filled, or a field of one that is a record.
pub struct Target {
    pub slot: usize,
    pub field: Option<String>,
}

/// What INTO fills.
pub struct IntoCode {
    pub strict: bool,
    pub targets: Vec<Target>,
}

/// Where the rows of a loop come from.
pub enum RowsFrom {
    Query(Piece),
    /// A text, with its parameters.
    Dynamic(Piece, Vec<Piece>),
    /// An array, and how many of its dimensions each has; 0 for elements.
    Elements(Piece, i64),
}

/// A cursor that was declared with its query.
pub struct BoundCursor {
    /// Whether it may go back, if that is said.
    pub scroll: Option<bool>,
    /// Names and places.
    pub arguments: Vec<(String, usize)>,
    pub query: Piece,
}

/// A bound cursor with values for its arguments.
pub struct CursorCall {
    pub cursor: Rc<BoundCursor>,
    /// Place and value of each.
    pub arguments: Vec<(usize, Piece)>,
}

/// What OPEN opens.
pub enum OpenCode {
    Bound(CursorCall),
    /// A query, and whether it may go back, if that is said.
    Query(Option<bool>, Piece),
    /// A text likewise, with its parameters.
    Dynamic(Option<bool>, Piece, Vec<Piece>),
}

/// How far FETCH and MOVE go.
pub enum CountCode {
    Of(i64),
    Given(Piece),
}

/// What a statement does.
pub enum StepKind {
    Block(BlockCode),
    Assign(usize, Option<String>, Piece),
    If(Vec<(Piece, Vec<Step>)>, Vec<Step>),
    Case(Vec<(Piece, Vec<Step>)>, Option<Vec<Step>>),
    /// The operand's place and value, then the branches.
    SimpleCase(usize, Piece, Vec<(Piece, Vec<Step>)>, Option<Vec<Step>>),
    Forever(Option<String>, Vec<Step>),
    While(Option<String>, Piece, Vec<Step>),
    Integers {
        label: Option<String>,
        slot: usize,
        reverse: bool,
        first: Piece,
        last: Piece,
        step: Option<Piece>,
        body: Vec<Step>,
    },
    ForEach {
        label: Option<String>,
        targets: Vec<Target>,
        source: RowsFrom,
        body: Vec<Step>,
    },
    /// Over a cursor: the places of the row and of the cursor's name.
    ForCursor {
        label: Option<String>,
        row: usize,
        cursor: usize,
        call: CursorCall,
        body: Vec<Step>,
    },
    Leave {
        next: bool,
        label: Option<String>,
        when: Option<Piece>,
    },
    Return(Option<Piece>),
    ReturnNext(Option<Piece>),
    /// A query, or a text with its parameters.
    ReturnQuery(Piece, Option<Vec<Piece>>),
    /// CALL.
    Call(Piece, Box<CallStmt>),
    Raise(Raise, Vec<Piece>, Vec<(String, Piece)>),
    Assert(Piece, Option<Piece>),
    Perform(Piece),
    Sql(Piece, Option<IntoCode>),
    Execute(Piece, Option<IntoCode>, Vec<Piece>),
    Diagnostics(bool, Vec<(Target, String)>),
    Open(usize, OpenCode),
    /// MOVE goes nowhere with its row.
    Fetch {
        cursor: usize,
        direction: FetchDirection,
        count: CountCode,
        into: Option<Vec<Target>>,
    },
    Close(usize),
    Null,
    EndTransaction(bool, bool),
}
