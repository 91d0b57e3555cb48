//! The tree of a PL/pgSQL block.

use pg_query::protobuf::FetchDirection;

/// A piece of SQL inside a block: an expression, a query, a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// The text. Where an INTO clause was cut out there are spaces, so places stay true.
    pub text: String,
    /// Where it begins in the block's text, in bytes.
    pub start: usize,
}

/// `[<<label>>] [DECLARE …] BEGIN … [EXCEPTION …] END`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its label.
    pub label: Option<String>,
    /// Its variables.
    pub declarations: Vec<Declaration>,
    /// What a name means that is a column's too: `error`, `use_variable` or `use_column`; of the
    /// outermost block.
    pub variable_conflict: Option<String>,
    /// Whether errors of INTO STRICT show parameters, if that is said; of the outermost block.
    pub print_strict_params: Option<bool>,
    /// Its statements.
    pub body: Vec<Statement>,
    /// What catches its errors, in order.
    pub handlers: Vec<Handler>,
}

/// One variable of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The line, from 1.
    pub line: usize,
    /// Its name, folded to lower case unless quoted.
    pub name: String,
    /// Where that stands in the block's text, in bytes.
    pub start: usize,
    /// Whether it may not be assigned to.
    pub constant: bool,
    /// Its type, as written.
    pub type_name: Fragment,
    /// The names of its collation; none if that is not said.
    pub collation: Vec<String>,
    /// Whether it may not be NULL.
    pub not_null: bool,
    /// Its first value.
    pub default: Option<Fragment>,
    /// Of an alias: the variable that it is another name of.
    pub alias: Option<String>,
    /// Of a bound cursor: its query. It has no type of its own then.
    pub cursor: Option<CursorDeclaration>,
}

/// `[NO SCROLL | SCROLL] CURSOR [(argument type, …)] FOR query`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CursorDeclaration {
    /// Whether it may go back, if that is said.
    pub scroll: Option<bool>,
    /// Names, where these stand, and types.
    pub arguments: Vec<(String, usize, Fragment)>,
    /// Its query.
    pub query: Fragment,
}

/// `[name :=] value`, for an argument of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument, if it is named.
    pub name: Option<String>,
    /// Its value.
    pub value: Fragment,
    /// Where it begins in the block's text, in bytes.
    pub start: usize,
    /// Where what follows it stands.
    pub after: usize,
}

/// `cursor [(argument, …)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorUse {
    /// The variable.
    pub name: Fragment,
    /// Where what follows the name stands, in bytes, and what that is.
    pub after: (usize, String),
    /// The arguments, if there are brackets.
    pub arguments: Option<Vec<Argument>>,
}

/// What a cursor is opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The query that it was declared with.
    Bound,
    /// A query.
    Query {
        /// Whether it may go back, if that is said.
        scroll: Option<bool>,
        /// The query.
        query: Fragment,
    },
    /// A query that is a text.
    Execute {
        /// Whether it may go back, if that is said.
        scroll: Option<bool>,
        /// The text.
        query: Fragment,
        /// Its parameters.
        using: Vec<Fragment>,
    },
}

/// How far FETCH and MOVE go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many rows, or to there.
    Of(i64),
    /// As an expression says.
    Given(Fragment),
}

/// `WHEN conditions THEN statements`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Any of these.
    pub conditions: Vec<Condition>,
    /// What to do then.
    pub body: Vec<Statement>,
}

/// What a handler catches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Everything but a cancel and a failed assertion.
    Others,
    /// A condition by its name, such as `unique_violation`.
    Named(String),
    /// A SQLSTATE.
    State(String),
}

/// One statement and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The line, from 1.
    pub line: usize,
    /// What it does.
    pub kind: StatementKind,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// A nested block.
    Block(Block),
    /// `target := value`.
    Assign {
        /// A variable, with fields or subscripts as written.
        target: Fragment,
        /// The value.
        value: Fragment,
    },
    /// `IF … ELSIF … ELSE … END IF`.
    If {
        /// Conditions and what follows from them.
        branches: Vec<(Fragment, Vec<Statement>)>,
        /// What is done otherwise.
        otherwise: Vec<Statement>,
    },
    /// `CASE … WHEN … THEN … END CASE`.
    Case {
        /// What is compared, in the simple form.
        operand: Option<Fragment>,
        /// The values or conditions of each branch, as a list in one text, and its statements.
        branches: Vec<(Fragment, Vec<Statement>)>,
        /// ELSE; without it a miss is an error (20000).
        otherwise: Option<Vec<Statement>>,
    },
    /// Any of the loops.
    Loop(Loop),
    /// `EXIT` or `CONTINUE`.
    Leave {
        /// CONTINUE.
        next: bool,
        /// Of which loop or, for EXIT, block.
        label: Option<String>,
        /// Only then.
        when: Option<Fragment>,
    },
    /// `RETURN [value]`.
    Return(Option<Fragment>),
    /// `RETURN NEXT [value]`.
    ReturnNext(Option<Fragment>),
    /// `RETURN QUERY query`.
    ReturnQuery(Fragment),
    /// `RETURN QUERY EXECUTE text [USING …]`.
    ReturnExecute {
        /// The text.
        query: Fragment,
        /// The parameters.
        using: Vec<Fragment>,
    },
    /// `RAISE …`.
    Raise(Raise),
    /// `ASSERT condition [, message]`.
    Assert {
        /// What must hold.
        condition: Fragment,
        /// What to say otherwise.
        message: Option<Fragment>,
    },
    /// A query whose result is thrown away: `PERFORM …`, the text beginning with SELECT.
    Perform(Fragment),
    /// A SQL statement.
    Sql {
        /// The statement, without its INTO clause.
        query: Fragment,
        /// Where the first row goes.
        into: Option<Into>,
    },
    /// `EXECUTE text [INTO …] [USING …]`.
    Execute {
        /// The text.
        query: Fragment,
        /// Where the first row goes.
        into: Option<Into>,
        /// The parameters.
        using: Vec<Fragment>,
    },
    /// `GET [CURRENT | STACKED] DIAGNOSTICS target = item, …`.
    GetDiagnostics {
        /// Of the error being handled.
        stacked: bool,
        /// Targets and item names in upper case.
        items: Vec<(Fragment, String)>,
    },
    /// `OPEN cursor …`.
    Open {
        /// The variable, perhaps with arguments.
        cursor: CursorUse,
        /// What for.
        what: Opened,
    },
    /// `FETCH [direction FROM] cursor INTO …` and `MOVE [direction FROM] cursor`.
    Fetch {
        /// The variable.
        cursor: Fragment,
        /// Where to.
        direction: FetchDirection,
        /// How far.
        count: Count,
        /// Where the row goes; none of MOVE.
        into: Option<Vec<Fragment>>,
    },
    /// `CLOSE cursor`.
    Close(Fragment),
    /// `NULL`.
    Null,
    /// `COMMIT [AND CHAIN]` or `ROLLBACK [AND CHAIN]`.
    EndTransaction {
        /// COMMIT.
        commit: bool,
        /// The next transaction has the same characteristics.
        chain: bool,
    },
}

/// The targets of INTO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Into {
    /// Exactly one row must come.
    pub strict: bool,
    /// The variables.
    pub targets: Vec<Fragment>,
}

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its label.
    pub label: Option<String>,
    /// How it goes on.
    pub head: LoopHead,
    /// What it does each time.
    pub body: Vec<Statement>,
}

/// How a loop goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopHead {
    /// Until it is left.
    Forever,
    /// While the condition holds.
    While(Fragment),
    /// Over integers.
    Integers {
        /// A variable of the loop itself.
        variable: String,
        /// Downwards.
        reverse: bool,
        /// The first value.
        first: Fragment,
        /// The last value.
        last: Fragment,
        /// The step; 1 if not given.
        step: Option<Fragment>,
    },
    /// Over the elements of an array.
    Elements {
        /// Where each goes.
        targets: Vec<Fragment>,
        /// How many dimensions of the array go there at a time; 0 for an element.
        slice: i64,
        /// The array.
        array: Fragment,
    },
    /// Over the rows of a query, or of a cursor.
    Query {
        /// Variables, or one record.
        targets: Vec<Fragment>,
        /// The query.
        query: Fragment,
        /// A cursor and its arguments, if the query is one as far as the grammar can tell.
        cursor: Option<CursorUse>,
    },
    /// Over the rows of a query that is a text.
    Execute {
        /// Variables, or one record.
        targets: Vec<Fragment>,
        /// The text.
        query: Fragment,
        /// Its parameters.
        using: Vec<Fragment>,
    },
}

/// The levels of RAISE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

/// What RAISE says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The error being handled, once more.
    Again,
    /// A format in which `%` stands for an argument.
    Format {
        /// The format, its quotes taken away.
        format: String,
        /// As many as there are `%`.
        arguments: Vec<Fragment>,
    },
    /// A condition by name or SQLSTATE.
    Condition(Condition),
}

/// `RAISE [level] … [USING option = value, …]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raise {
    /// How bad it is.
    pub level: Level,
    /// What it says.
    pub message: Message,
    /// Options in upper case (MESSAGE, DETAIL, HINT, ERRCODE, COLUMN, …) and their values.
    pub options: Vec<(String, Fragment)>,
}
