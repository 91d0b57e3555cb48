//! What the session state machine needs of SQL: [`sql::session::Session`], or a script in tests
//! that says what rests on what.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::sql::session::{self as sql, Called, Column, Executed, Oid, Param, Sink};
use base::engine::{Flight, Heard, Notification};
use base::{Debt, Durability, Error, Result};

/// One client's statements; the methods mean what those of [`sql::Session`] mean.
#[allow(missing_docs)]
pub trait Sql: 'static {
    type Prepared;
    type Portal;

    fn param_types(prepared: &Self::Prepared) -> &[Oid];
    fn columns(prepared: &Self::Prepared) -> Option<&[Column]>;
    fn prepared_of(portal: &Self::Portal) -> &Rc<Self::Prepared>;

    fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()>;
    fn prepare(&mut self, text: &str, types: &[Oid]) -> Result<Rc<Self::Prepared>>;
    fn prepare_call(&mut self, function: Oid) -> Result<Called<Self::Prepared>> {
        let _ = function;
        self.fail();
        Err(Error::unsupported("calling functions by their oids here"))
    }
    fn keep_prepared(&mut self, name: &str, prepared: Rc<Self::Prepared>) -> Result<()>;
    fn prepared(&self, name: &str) -> Result<Rc<Self::Prepared>>;
    fn drop_prepared(&mut self, name: &str);
    fn bind(&mut self, prepared: &Rc<Self::Prepared>, params: &[Param<'_>])
        -> Result<Self::Portal>;
    fn execute(
        &mut self,
        portal: &mut Self::Portal,
        rows_max: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed>;
    fn bind_named(
        &mut self,
        name: &str,
        prepared: &Rc<Self::Prepared>,
        params: &[Param<'_>],
    ) -> Result<Self::Portal> {
        let _ = name;
        self.bind(prepared, params)
    }
    fn cursor_portal(&self, name: &str) -> Option<Self::Portal> {
        let _ = name;
        None
    }
    fn is_open(&self, portal: &Self::Portal) -> bool {
        let _ = portal;
        true
    }
    fn close_portal(&mut self, name: &str) {
        let _ = name;
    }
    fn sync(&mut self, sink: &mut dyn Sink) -> Result<()>;
    fn fail(&mut self);
    /// The text of the statement that runs.
    fn running(&self) -> String {
        String::new()
    }
    /// Whether the outcome of a commit is not known yet.
    fn is_committing(&self) -> bool {
        false
    }

    /// The text of a prepared statement.
    fn text(prepared: &Self::Prepared) -> Option<&str> {
        let _ = prepared;
        None
    }
    /// What the server's log is told of the session.
    fn log_context(&self) -> Option<sql::LogContext> {
        None
    }
    fn log_settings(&self) -> Option<&sql::LogSettings> {
        None
    }
    fn logs(&self, prepared: &Self::Prepared) -> bool {
        let _ = prepared;
        false
    }
    fn log_context_of(&self, prepared: &Self::Prepared) -> Option<sql::LogContext> {
        let _ = prepared;
        None
    }
    fn logged_parameters(&self, portal: &Self::Portal) -> Option<String> {
        let _ = portal;
        None
    }

    fn tell_loss(&mut self) -> Option<Error> {
        None
    }
    fn set_flight(&mut self, flight: Flight) {
        let _ = flight;
    }
    fn changes(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn pack(&self) -> Vec<u8> {
        Vec::new()
    }
    fn is_pinned(&self) -> Option<&'static str> {
        None
    }
    fn resume(
        &mut self,
        state: &[u8],
        status: sql::TransactionStatus,
        heard: Option<Heard>,
    ) -> Result<()> {
        let _ = (state, status, heard);
        Ok(())
    }
    fn heard(&mut self) -> Option<Heard> {
        None
    }
    fn hear(&mut self, bytes_max: usize) -> Result<Vec<Notification>> {
        let _ = bytes_max;
        Ok(Vec::new())
    }
    fn poll_hearing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Pending
    }
    fn transaction_status(&self) -> sql::TransactionStatus;
    fn owed(&self) -> &[(Debt, Durability)];
    /// How the client writes text.
    fn client_encoding(&self) -> sql::Encoding {
        sql::Encoding::UTF8
    }
    fn reported_settings(&self) -> Vec<(&'static str, String)>;
    /// What the client is to be told of how its session has begun.
    fn take_warnings(&mut self) -> Vec<sql::Notice>;
    fn statement_timeout(&self) -> Option<Duration>;
    fn idle_in_transaction_timeout(&self) -> Option<Duration>;
    fn idle_session_timeout(&self) -> Option<Duration>;
}

impl Sql for sql::Session {
    type Prepared = sql::Prepared;
    type Portal = sql::Portal;

    fn param_types(prepared: &sql::Prepared) -> &[Oid] {
        prepared.param_types()
    }

    fn columns(prepared: &sql::Prepared) -> Option<&[Column]> {
        prepared.columns()
    }

    fn prepared_of(portal: &sql::Portal) -> &Rc<sql::Prepared> {
        portal.prepared()
    }

    fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        self.simple_query(text, sink)
    }

    fn prepare(&mut self, text: &str, types: &[Oid]) -> Result<Rc<sql::Prepared>> {
        self.prepare(text, types)
    }

    fn prepare_call(&mut self, function: Oid) -> Result<Called<sql::Prepared>> {
        self.prepare_call(function)
    }

    fn keep_prepared(&mut self, name: &str, prepared: Rc<sql::Prepared>) -> Result<()> {
        self.keep_prepared(name, prepared)
    }

    fn prepared(&self, name: &str) -> Result<Rc<sql::Prepared>> {
        self.prepared(name)
    }

    fn drop_prepared(&mut self, name: &str) {
        self.drop_prepared(name);
    }

    fn bind(&mut self, prepared: &Rc<sql::Prepared>, params: &[Param<'_>]) -> Result<sql::Portal> {
        self.bind(prepared, params)
    }

    fn bind_named(
        &mut self,
        name: &str,
        prepared: &Rc<sql::Prepared>,
        params: &[Param<'_>],
    ) -> Result<sql::Portal> {
        self.bind_named(name, prepared, params)
    }

    fn cursor_portal(&self, name: &str) -> Option<sql::Portal> {
        self.cursor_portal(name)
    }

    fn is_open(&self, portal: &sql::Portal) -> bool {
        self.is_open(portal)
    }

    fn close_portal(&mut self, name: &str) {
        self.close_portal(name);
    }

    fn execute(
        &mut self,
        portal: &mut sql::Portal,
        rows_max: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        self.execute(portal, rows_max, sink)
    }

    fn sync(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.sync(sink)
    }

    fn fail(&mut self) {
        self.fail();
    }

    fn text(prepared: &sql::Prepared) -> Option<&str> {
        prepared.whole_text()
    }

    fn log_context(&self) -> Option<sql::LogContext> {
        Some(self.log_context())
    }

    fn log_settings(&self) -> Option<&sql::LogSettings> {
        Some(self.log_settings())
    }

    fn logs(&self, prepared: &sql::Prepared) -> bool {
        self.logs(prepared)
    }

    fn log_context_of(&self, prepared: &sql::Prepared) -> Option<sql::LogContext> {
        self.log_context_of(prepared)
    }

    fn logged_parameters(&self, portal: &sql::Portal) -> Option<String> {
        self.logged_parameters(portal)
    }

    fn tell_loss(&mut self) -> Option<Error> {
        self.tell_loss()
    }

    fn running(&self) -> String {
        self.running()
    }

    fn is_committing(&self) -> bool {
        self.is_committing()
    }

    fn set_flight(&mut self, flight: Flight) {
        self.set_flight(flight);
    }

    fn changes(&mut self) -> Option<Vec<u8>> {
        self.changes()
    }

    fn pack(&self) -> Vec<u8> {
        self.pack()
    }

    fn is_pinned(&self) -> Option<&'static str> {
        self.is_pinned()
    }

    fn resume(
        &mut self,
        state: &[u8],
        status: sql::TransactionStatus,
        heard: Option<Heard>,
    ) -> Result<()> {
        self.resume(state, status, heard)
    }

    fn heard(&mut self) -> Option<Heard> {
        self.heard()
    }

    fn hear(&mut self, bytes_max: usize) -> Result<Vec<Notification>> {
        self.hear(bytes_max)
    }

    fn poll_hearing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_hearing(cx)
    }

    fn transaction_status(&self) -> sql::TransactionStatus {
        self.transaction_status()
    }

    fn owed(&self) -> &[(Debt, Durability)] {
        self.owed()
    }

    fn client_encoding(&self) -> sql::Encoding {
        self.client_encoding()
    }

    fn reported_settings(&self) -> Vec<(&'static str, String)> {
        self.reported_settings()
    }

    fn take_warnings(&mut self) -> Vec<sql::Notice> {
        self.take_warnings()
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.statement_timeout()
    }

    fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.idle_in_transaction_timeout()
    }

    fn idle_session_timeout(&self) -> Option<Duration> {
        self.idle_session_timeout()
    }
}
