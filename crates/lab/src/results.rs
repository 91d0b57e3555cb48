//! What experiments hand over: figures with units, in a form that the page, the JSON, the documents
//! and comparisons all read.
//!
//! ```text
//! Report ── experiments ── charts ── bars     one figure per group and series, with its rounds
//!                                 └─ curves   points, with marks where something happened
//! ```

use serde::{Deserialize, Serialize};

use crate::report::{table, thousands, Figure};

/// The version of the JSON; another is refused.
pub const FORMAT: u32 = 1;

/// Everything that one `quorate lab run` found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// When it was made, UTC.
    pub made: String,
    /// Whether it is the quick form, with fewer and shorter rounds.
    pub quick: bool,
    /// The machine, versions and settings: what, and how it is.
    pub conditions: Vec<(String, String)>,
    /// The experiments, in the order they ran.
    pub experiments: Vec<Experiment>,
}

/// What one experiment found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Experiment {
    /// What `lab run` calls it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it asks, and how to read the answer.
    pub question: String,
    /// Systems whose ratio is of interest: ours, theirs.
    #[serde(default)]
    pub pairs: Vec<(String, String)>,
    /// What it has found, in one sentence ([`crate::answers`]).
    #[serde(default)]
    pub answer: Option<String>,
    /// Its figures.
    pub charts: Vec<Chart>,
    /// What was checked beside, and whether it held.
    pub checks: Vec<Check>,
    /// What is to be known about the figures.
    pub notes: Vec<String>,
    /// What makes them doubtful: a client that was the bottleneck, a setting that is not safe.
    pub warnings: Vec<String>,
}

/// Something that must hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// What.
    pub what: String,
    /// Whether it did.
    pub held: bool,
    /// Whether it was expected to: the known weakness of a system is not.
    pub expected: bool,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher figures.
    More,
    /// Lower figures.
    Less,
    /// Neither.
    Neither,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A bar for each figure, with its spread.
    Bars,
    /// A line through points.
    Lines,
    /// Latency over percentiles, whose last ones stand far apart.
    Percentiles,
    /// Something over time, with marks.
    Time,
}

/// One chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// How it is drawn.
    pub form: Form,
    /// The unit of its figures: `rows/s`, `ms`.
    pub unit: String,
    /// What lies along the other axis, with its unit.
    pub across: String,
    /// Which way is better.
    pub better: Better,
    /// Figures, for bars.
    #[serde(default)]
    pub bars: Vec<Bar>,
    /// Lines, for all else.
    #[serde(default)]
    pub lines: Vec<Line>,
    /// Where something happened: the place along the axis, and what.
    #[serde(default)]
    pub marks: Vec<(f64, String)>,
    /// What went on for a while, of which system: checkpoints.
    #[serde(default)]
    pub spans: Vec<Span>,
}

/// Something that went on for a while along a chart's axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Span {
    /// What: `checkpoints`.
    pub what: String,
    /// Whose: a line's name.
    pub series: String,
    /// Where it begins along the axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// One figure of a chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bar {
    /// Which bars stand together: a level, a workload.
    pub group: String,
    /// Which bars have one colour: a system.
    pub series: String,
    /// All measurements.
    pub rounds: Vec<f64>,
    /// Their median, for whoever reads the JSON.
    pub median: f64,
}

/// One line of a chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Its name: a system.
    pub series: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Bar {
    /// A figure of a group and a series.
    pub fn new(group: &str, series: &str, figure: &Figure) -> Bar {
        Bar {
            group: group.to_owned(),
            series: series.to_owned(),
            rounds: figure.rounds.clone(),
            median: figure.median(),
        }
    }

    /// Its rounds.
    pub fn figure(&self) -> Figure {
        Figure {
            rounds: self.rounds.clone(),
        }
    }
}

impl Chart {
    /// An empty chart of bars.
    pub fn bars(title: &str, unit: &str, across: &str, better: Better) -> Chart {
        Chart {
            title: title.to_owned(),
            form: Form::Bars,
            unit: unit.to_owned(),
            across: across.to_owned(),
            better,
            bars: Vec::new(),
            lines: Vec::new(),
            marks: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// An empty chart of lines.
    pub fn lines(form: Form, title: &str, unit: &str, across: &str) -> Chart {
        Chart {
            form,
            better: Better::Neither,
            ..Chart::bars(title, unit, across, Better::Neither)
        }
    }

    /// Adds a figure.
    pub fn bar(&mut self, group: &str, series: &str, figure: &Figure) {
        if !figure.rounds.is_empty() {
            self.bars.push(Bar::new(group, series, figure));
        }
    }

    /// The names of the groups or of the series, in order of appearance.
    fn names(&self, of: fn(&Bar) -> &String) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.bars.iter().map(of) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Its figures as a table in Markdown: groups down, series across.
    pub fn table(&self, pairs: &[(String, String)]) -> String {
        if self.bars.is_empty() {
            return String::new();
        }
        let series = self.names(|bar| &bar.series);
        let mut head = vec![self.across.clone()];
        head.extend(series.iter().map(|name| (*name).to_owned()));
        // Which of the two is less is not what a ratio of costs should leave to the reader.
        let pairs: Vec<&(String, String)> = pairs
            .iter()
            .filter(|(ours, theirs)| {
                self.better == Better::More
                    && [ours, theirs]
                        .iter()
                        .all(|name| series.contains(&name.as_str()))
            })
            .collect();
        head.extend(
            pairs
                .iter()
                .map(|(ours, theirs)| format!("{ours} / {theirs}")),
        );
        let mut rows = Vec::new();
        for group in self.names(|bar| &bar.group) {
            let mut row = vec![group.to_owned()];
            for name in &series {
                let mut bars = self.bars.iter();
                let bar = bars.find(|bar| bar.group == group && bar.series == *name);
                row.push(bar.map_or_else(|| "–".to_owned(), |bar| show(&bar.figure())));
            }
            for (ours, theirs) in &pairs {
                let median = |name: &str| {
                    let mut bars = self.bars.iter();
                    let bar = bars.find(|bar| bar.group == group && bar.series == name)?;
                    Some(bar.median)
                };
                let ratio = median(ours)
                    .zip(median(theirs))
                    .map(|(ours, theirs)| ours / theirs);
                row.push(ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×")));
            }
            rows.push(row);
        }
        format!(
            "**{}**, {}\n\n{}",
            self.title,
            self.unit,
            table(&head, &rows)
        )
    }
}

/// A figure with as many digits as it is worth.
pub fn show_one(value: f64) -> String {
    match value.abs() {
        // Next to nothing has no sign.
        0.0..0.005 => "0.00".to_owned(),
        0.005..9.95 => format!("{value:.2}"),
        9.95..99.5 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

/// `median (low–high)`, as [`show_one`] shows each.
pub fn show(figure: &Figure) -> String {
    let one = show_one;
    match figure.rounds.len() {
        0 => "–".to_owned(),
        1 => one(figure.median()),
        _ => format!(
            "{} ({}–{})",
            one(figure.median()),
            one(figure.low()),
            one(figure.high())
        ),
    }
}

impl Experiment {
    /// The experiment in Markdown.
    pub fn document(&self) -> String {
        let mut parts: Vec<String> = self
            .charts
            .iter()
            .map(|chart| chart.table(&self.pairs))
            .collect();
        parts.retain(|part| !part.is_empty());
        let answer = self.answer.iter();
        parts.splice(0..0, answer.map(|answer| format!("{answer}\n")));
        for check in &self.checks {
            let held = if check.held {
                "held"
            } else {
                "did **not** hold"
            };
            parts.push(format!("Checked: {}: {held}.\n", check.what));
        }
        parts.extend(self.notes.iter().map(|note| format!("{note}\n")));
        let warnings = self.warnings.iter();
        parts.extend(warnings.map(|warning| format!("**Warning**: {warning}\n")));
        parts.join("\n")
    }
}

/// How a figure changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The experiment, the chart, the group and the series.
    pub what: String,
    /// Both figures, shown.
    pub figures: [String; 2],
    /// The new median over the old.
    pub ratio: f64,
    /// Better, worse, or neither.
    pub verdict: Verdict,
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verdict {
    Worse,
    Better,
    Different,
    Same,
    Missing,
}

/// A change of less than this is no change, however quiet the machine was.
const CHANGE_MIN: f64 = 0.03;

/// Compares two reports figure by figure. A figure has changed where the medians are more than
/// [`CHANGE_MIN`] apart and the rounds of both do not overlap; with one round alone, where the
/// medians are ten times that apart.
pub fn compare(old: &Report, new: &Report) -> Vec<Change> {
    let mut changes = Vec::new();
    for (place, better, bar) in figures(old) {
        let found = figures(new).find(|(other, ..)| *other == place);
        let Some((.., newer)) = found else {
            changes.push(Change {
                what: place,
                figures: [show(&bar.figure()), "–".to_owned()],
                ratio: f64::NAN,
                verdict: Verdict::Missing,
            });
            continue;
        };
        let (was, is) = (bar.figure(), newer.figure());
        let ratio = is.median() / was.median();
        let apart = is.low() > was.high() || is.high() < was.low();
        let few = was.rounds.len().min(is.rounds.len()) < 2;
        let least = if few { 10.0 * CHANGE_MIN } else { CHANGE_MIN };
        let changed = apart && (ratio - 1.0).abs() > least;
        let verdict = match (changed, better) {
            (false, _) => Verdict::Same,
            (true, Better::Neither) => Verdict::Different,
            (true, Better::More) if ratio > 1.0 => Verdict::Better,
            (true, Better::Less) if ratio < 1.0 => Verdict::Better,
            (true, _) => Verdict::Worse,
        };
        changes.push(Change {
            what: place,
            figures: [show(&was), show(&is)],
            ratio,
            verdict,
        });
    }
    changes.sort_by_key(|change| change.verdict);
    changes
}

fn figures(report: &Report) -> impl Iterator<Item = (String, Better, &Bar)> {
    report.experiments.iter().flat_map(|experiment| {
        experiment.charts.iter().flat_map(move |chart| {
            chart.bars.iter().map(move |bar| {
                let parts = [&experiment.name, &chart.title, &bar.group, &bar.series];
                let place = parts.map(String::as_str).join(" / ");
                (format!("{place}, {}", chart.unit), chart.better, bar)
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rounds: &[f64], better: Better) -> Report {
        let mut chart = Chart::bars("rate", "rows/s", "level", better);
        let figure = Figure {
            rounds: rounds.to_vec(),
        };
        chart.bar("on", "one node", &figure);
        Report {
            format: FORMAT,
            made: String::new(),
            quick: true,
            conditions: Vec::new(),
            experiments: vec![Experiment {
                name: "x".to_owned(),
                charts: vec![chart],
                ..Experiment::default()
            }],
        }
    }

    fn verdict(old: &[f64], new: &[f64], better: Better) -> Verdict {
        compare(&report(old, better), &report(new, better))[0].verdict
    }

    #[test]
    fn only_what_is_beyond_the_spread_has_changed() {
        let old = [100.0, 105.0, 98.0];
        assert_eq!(
            verdict(&old, &[104.0, 110.0, 103.0], Better::More),
            Verdict::Same
        );
        assert_eq!(
            verdict(&old, &[120.0, 125.0, 130.0], Better::More),
            Verdict::Better
        );
        assert_eq!(
            verdict(&old, &[120.0, 125.0, 130.0], Better::Less),
            Verdict::Worse
        );
        assert_eq!(verdict(&old, &[50.0, 55.0], Better::More), Verdict::Worse);
        assert_eq!(
            verdict(&old, &[50.0, 55.0], Better::Neither),
            Verdict::Different
        );
        assert_eq!(verdict(&[100.0], &[120.0], Better::More), Verdict::Same);
        assert_eq!(verdict(&[100.0], &[150.0], Better::More), Verdict::Better);
        let mut gone = report(&old, Better::More);
        gone.experiments.clear();
        let changes = compare(&report(&old, Better::More), &gone);
        assert_eq!(changes[0].verdict, Verdict::Missing);
    }

    #[test]
    fn next_to_nothing_has_no_sign() {
        let shown = |value: f64| {
            show(&Figure {
                rounds: vec![value],
            })
        };
        assert_eq!(shown(-0.001), "0.00");
        assert_eq!(shown(-0.02), "-0.02");
        assert_eq!(shown(0.0), "0.00");
    }

    #[test]
    fn figures_become_tables() {
        let report = report(&[1_000.0, 1_200.0, 1_100.0], Better::More);
        let expected = "**rate**, rows/s\n\n| level | one node |\n| --- | --- |\n\
                        | on | 1,100 (1,000–1,200) |\n";
        assert_eq!(report.experiments[0].document(), expected);
    }
}
