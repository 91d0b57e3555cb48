//! What a run says of itself: figures, as JSON and as a table.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::report::{table, thousands};
use crate::tpcc::run::{Measured, Plan};
use crate::tpcc::transactions::Kind;
use crate::tpcc::TPMC_PER_WAREHOUSE_MAX;

/// Percentiles of one histogram, in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// Percentile and milliseconds, for a curve.
    pub curve: Vec<(f64, f64)>,
}

impl Percentiles {
    /// Those of a histogram of microseconds.
    pub fn of(histogram: &Histogram<u32>) -> Percentiles {
        let at = |percentile: f64| histogram.value_at_percentile(percentile) as f64 / 1e3;
        const CURVE: [f64; 17] = [
            1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
            99.95, 99.99,
        ];
        Percentiles {
            mean_ms: histogram.mean() / 1e3,
            p50_ms: at(50.0),
            p90_ms: at(90.0),
            p95_ms: at(95.0),
            p99_ms: at(99.0),
            max_ms: histogram.max() as f64 / 1e3,
            curve: CURVE.iter().map(|p| (*p, at(*p))).collect(),
        }
    }
}

/// One kind of transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KindFigures {
    /// Its name.
    pub name: String,
    /// Transactions that ended as they should, those rolled back on purpose included.
    pub completed: u64,
    /// Of these, those rolled back on purpose.
    pub rolled_back: u64,
    /// Transactions given up.
    pub failed: u64,
    /// Its share of all, in percent.
    pub percent: f64,
    /// Response times.
    pub response: Percentiles,
    /// What the specification asks of nine in ten, in seconds.
    pub limit_seconds: f64,
    /// Whether it is kept.
    pub within_limit: bool,
}

/// What the client itself used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ClientCosts {
    /// Processor time per transaction, in microseconds.
    pub processor_micros: f64,
    /// Share of the processor time that its threads could have had, in percent.
    pub busy_percent: f64,
    /// Peak resident memory, in bytes.
    pub memory_bytes: u64,
}

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Figures {
    pub warehouses: u64,
    pub terminals: u64,
    pub connections: usize,
    pub wait: bool,
    pub pipelined: bool,
    pub isolation: String,
    pub seconds: f64,
    /// New orders per minute.
    pub tpmc: f64,
    /// Share of what think and keying times allow, in percent.
    pub efficiency_percent: f64,
    pub transactions_per_second: f64,
    pub kinds: Vec<KindFigures>,
    /// From a delivery's being queued to its end; nine in ten within 80 seconds.
    pub deferred_delivery: Percentiles,
    pub serialization_retries: u64,
    pub deadlock_retries: u64,
    pub broken_connections: u64,
    pub first_failure: Option<String>,
    pub statements_per_transaction: f64,
    pub round_trips_per_transaction: f64,
    pub new_orders_by_second: Vec<u32>,
    pub client: ClientCosts,
}

impl Figures {
    /// The figures of a run that was measured for so long.
    pub fn of(plan: &Plan, measured: &Measured, seconds: f64, client: ClientCosts) -> Figures {
        let completed = measured.completed().max(1);
        let setting = plan.target.settings.iter();
        let isolation = setting
            .filter(|(name, _)| name == "default_transaction_isolation")
            .map(|(_, value)| value.clone())
            .next();
        let kinds: Vec<KindFigures> = Kind::ALL
            .iter()
            .zip(&measured.kinds)
            .map(|(kind, tally)| {
                let rules = kind.rules();
                let done = tally.committed + tally.rolled_back;
                let response = Percentiles::of(&tally.response);
                KindFigures {
                    name: rules.name.to_owned(),
                    completed: done,
                    rolled_back: tally.rolled_back,
                    failed: tally.failed,
                    percent: done as f64 * 100.0 / completed as f64,
                    limit_seconds: rules.limit_seconds,
                    within_limit: response.p90_ms <= rules.limit_seconds * 1e3,
                    response,
                }
            })
            .collect();
        let tpmc = kinds[Kind::NewOrder as usize].completed as f64 * 60.0 / seconds;
        let most = TPMC_PER_WAREHOUSE_MAX * plan.warehouses as f64;
        Figures {
            warehouses: plan.warehouses,
            terminals: match plan.wait {
                true => plan.warehouses * plan.terminals_per_warehouse,
                false => plan.connections as u64,
            },
            connections: plan.connections,
            wait: plan.wait,
            pipelined: !plan.target.one_by_one,
            isolation: isolation.unwrap_or_else(|| "the server's default".to_owned()),
            seconds,
            tpmc,
            efficiency_percent: tpmc * 100.0 / most,
            transactions_per_second: measured.completed() as f64 / seconds,
            kinds,
            deferred_delivery: Percentiles::of(&measured.deferred),
            serialization_retries: measured.serialization_retries,
            deadlock_retries: measured.deadlock_retries,
            broken_connections: measured.broken,
            first_failure: measured.first_failure.clone(),
            statements_per_transaction: measured.counts.statements as f64 / completed as f64,
            round_trips_per_transaction: measured.counts.round_trips as f64 / completed as f64,
            new_orders_by_second: measured.new_orders_by_second.clone(),
            client,
        }
    }

    /// Transactions that were given up.
    pub fn failed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.failed).sum()
    }

    /// The report, in Markdown.
    pub fn show(&self) -> String {
        let head = [
            "",
            "completed",
            "share, %",
            "p50, ms",
            "p90, ms",
            "p99, ms",
            "max, ms",
            "limit (p90), s",
        ];
        let rows: Vec<Vec<String>> = self
            .kinds
            .iter()
            .map(|kind| {
                let times = &kind.response;
                vec![
                    kind.name.clone(),
                    thousands(kind.completed as f64),
                    format!("{:.1}", kind.percent),
                    format!("{:.2}", times.p50_ms),
                    format!("{:.2}", times.p90_ms),
                    format!("{:.2}", times.p99_ms),
                    format!("{:.0}", times.max_ms),
                    format!(
                        "{:.0}{}",
                        kind.limit_seconds,
                        if kind.within_limit { "" } else { " (missed)" }
                    ),
                ]
            })
            .collect();
        let efficiency = match self.wait {
            true => format!(" ({:.1}% of 12.86 per warehouse)", self.efficiency_percent),
            false => String::new(),
        };
        let mut out = format!(
            "**{} tpmC**{efficiency}: {} warehouses, {} terminals{}, {} connections, {} s, {}.\n\n",
            thousands(self.tpmc),
            thousands(self.warehouses as f64),
            thousands(self.terminals as f64),
            if self.wait { "" } else { " without waits" },
            self.connections,
            self.seconds.round(),
            self.isolation,
        );
        out.push_str(&table(&head.map(str::to_owned), &rows));
        out.push_str(&format!(
            "\nRetries: {} for serialization, {} for deadlocks; given up: {}; connections that broke: {}. \
             Deferred deliveries: p90 {:.0} ms (limit 80 s). \
             {:.1} statements and {:.1} round trips per transaction. \
             Client: {:.0} µs of processor time per transaction ({:.0}% of what its threads could \
             have had), {:.0} MB of memory at most.\n",
            thousands(self.serialization_retries as f64),
            thousands(self.deadlock_retries as f64),
            self.failed(),
            self.broken_connections,
            self.deferred_delivery.p90_ms,
            self.statements_per_transaction,
            self.round_trips_per_transaction,
            self.client.processor_micros,
            self.client.busy_percent,
            self.client.memory_bytes as f64 / 1e6,
        ));
        if let Some(failure) = &self.first_failure {
            out.push_str(&format!("The first failure: {failure}\n"));
        }
        out
    }
}
