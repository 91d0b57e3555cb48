//! The tree of a PL/pgSQL block.

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
    /// Whether it may not be assigned to.
    pub constant: bool,
    /// Its type, as written.
    pub type_name: Fragment,
    /// Whether it may not be NULL.
    pub not_null: bool,
    /// Its first value.
    pub default: Option<Fragment>,
    /// Of an alias: the variable that it is another name of.
    pub alias: Option<String>,
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
        /// The array.
        array: Fragment,
    },
    /// Over the rows of a query.
    Query {
        /// Variables, or one record.
        targets: Vec<Fragment>,
        /// The query.
        query: Fragment,
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
