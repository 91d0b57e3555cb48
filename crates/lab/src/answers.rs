//! What an experiment has found, in one sentence: how many times ours is what theirs is, with its spread.
//!
//! ```text
//! chart   rows/s        theirs          ours                ratio, round by round
//!         off           100, 110        200, 240            2.00, 2.18
//!         on             10,  12        100, 110            10.0, 9.17
//! answer  Rate (rows/s): ours has from 2.09 times (2.00–2.18, off) to 9.58 times (9.17–10.0, on) what theirs has.
//! ```
//! The first chart of bars in which a pair of the experiment occurs is what it is about: an experiment's
//! first chart answers its question, the others say why. Where nothing is compared, the answer is the
//! first chart's first figure.
//!
//! # Invariants
//! - A ratio is the median of the ratios of rounds that were measured in turn; where the two have
//!   different numbers of rounds, that of the medians, and the spread is the widest that the rounds allow.
//! - A sentence says which way is better where less is.

use crate::report::Figure;
use crate::results::{show, show_one, Bar, Better, Chart, Experiment};

/// The sentence; none where there are no bars.
pub fn answer(experiment: &Experiment) -> Option<String> {
    let compared = experiment.charts.iter().find_map(|chart| {
        let pairs = experiment.pairs.iter();
        let found: Vec<String> = pairs
            .filter_map(|(ours, theirs)| compare(chart, ours, theirs))
            .collect();
        (!found.is_empty()).then(|| sentence(chart, &found.join("; ")))
    });
    compared.or_else(|| {
        let chart = experiment.charts.iter().find(|it| !it.bars.is_empty())?;
        let bar = chart.bars.first()?;
        let said = format!("{} at {}: {}", bar.series, bar.group, show(&bar.figure()));
        Some(sentence(chart, &said))
    })
}

fn sentence(chart: &Chart, said: &str) -> String {
    let less = match chart.better {
        Better::Less => "; less is better",
        Better::More | Better::Neither => "",
    };
    format!("{} ({}): {said}{less}.", chart.title, chart.unit)
}

/// What ours is beside theirs, over all groups that have both.
fn compare(chart: &Chart, ours: &str, theirs: &str) -> Option<String> {
    let of = |group: &str, series: &str| {
        let mut bars = chart.bars.iter();
        bars.find(|bar| bar.group == group && bar.series == series)
    };
    let ours_in_all = chart.bars.iter().filter(|bar| bar.series == ours);
    let mut found: Vec<(&str, Figure)> = ours_in_all
        .filter_map(|bar| Some((bar.group.as_str(), ratio(bar, of(&bar.group, theirs)?)?)))
        .collect();
    found.sort_by(|one, other| one.1.median().total_cmp(&other.1.median()));
    let times = |(group, ratio): &(&str, Figure)| {
        let spread = match ratio.rounds.len() {
            1 => String::new(),
            _ => format!("{}–{}, ", show_one(ratio.low()), show_one(ratio.high())),
        };
        format!("{} times ({spread}{group})", show_one(ratio.median()))
    };
    let (least, most) = (found.first()?, found.last()?);
    let range = match found.len() {
        1 => times(least),
        _ => format!("from {} to {}", times(least), times(most)),
    };
    Some(format!("{ours} has {range} what {theirs} has"))
}

/// The ratio of two figures; none where theirs is nothing.
fn ratio(ours: &Bar, theirs: &Bar) -> Option<Figure> {
    if theirs.rounds.iter().any(|round| round.abs() < f64::EPSILON) {
        return None;
    }
    let rounds = match ours.rounds.len() == theirs.rounds.len() {
        true => {
            let rounds = ours.rounds.iter().zip(&theirs.rounds);
            rounds.map(|(ours, theirs)| ours / theirs).collect()
        }
        false => {
            let (our, their) = (ours.figure(), theirs.figure());
            let middle = our.median() / their.median();
            vec![our.low() / their.high(), middle, our.high() / their.low()]
        }
    };
    Some(Figure { rounds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(better: Better, bars: &[(&str, &str, &[f64])]) -> Experiment {
        let mut chart = Chart::bars("Rate", "rows/s", "level", better);
        for (group, series, rounds) in bars {
            let rounds = rounds.to_vec();
            chart.bar(group, series, &Figure { rounds });
        }
        Experiment {
            pairs: vec![("ours".to_owned(), "theirs".to_owned())],
            charts: vec![Chart::bars("empty", "", "", better), chart],
            ..Experiment::default()
        }
    }

    #[test]
    fn an_answer_has_ratio_and_spread() {
        let bars: [(&str, &str, &[f64]); 5] = [
            ("off", "theirs", &[100.0, 110.0]),
            ("off", "ours", &[200.0, 240.0]),
            ("on", "theirs", &[10.0, 12.0]),
            ("on", "ours", &[100.0, 110.0]),
            ("local", "ours", &[1.0]),
        ];
        let said = answer(&experiment(Better::More, &bars)).unwrap();
        assert_eq!(
            said,
            "Rate (rows/s): ours has from 2.09 times (2.00–2.18, off) to 9.58 times (9.17–10.0, on) \
             what theirs has."
        );
        let said = answer(&experiment(Better::Less, &bars[..2])).unwrap();
        let expected =
            "Rate (rows/s): ours has 2.09 times (2.00–2.18, off) what theirs has; less is better.";
        assert_eq!(said, expected);
    }

    #[test]
    fn unequal_rounds_have_the_widest_spread() {
        let bars: [(&str, &str, &[f64]); 2] =
            [("on", "theirs", &[10.0]), ("on", "ours", &[10.0, 30.0])];
        let said = answer(&experiment(Better::More, &bars)).unwrap();
        assert!(said.contains("2.00 times (1.00–3.00, on)"), "{said}");
    }

    #[test]
    fn what_is_not_compared_is_said_as_it_is() {
        let alone = experiment(Better::More, &[("on", "ours", &[10.0, 12.0])]);
        let said = answer(&alone).unwrap();
        assert_eq!(said, "Rate (rows/s): ours at on: 11.0 (10.0–12.0).");
        let nothing = experiment(
            Better::More,
            &[("on", "ours", &[1.0]), ("on", "theirs", &[0.0])],
        );
        assert!(answer(&nothing).unwrap().contains("ours at on: 1.00"));
        assert_eq!(answer(&Experiment::default()), None);
    }
}
