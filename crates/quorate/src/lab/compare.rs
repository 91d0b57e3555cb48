//! `quorate lab compare` and `quorate lab document`: what reports are good for afterwards.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use lab::host::read_file;
use lab::report::{replace_section, table};
use lab::results::{self, Report, Verdict, FORMAT};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The older report
    old: PathBuf,
    /// The newer report
    new: PathBuf,
    /// Show what did not change too
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub struct DocumentOptions {
    /// The report
    report: PathBuf,
    /// A document with sections such as <!-- commit-loop --> … <!-- /commit-loop -->
    document: PathBuf,
}

fn read(path: &Path) -> Result<Report> {
    let wrong = |error: String| Error::other(format!("{}: {error}", path.display()));
    let text = read_file(path).map_err(|error| wrong(error.to_string()))?;
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    let parse = |error: serde_json::Error| wrong(error.to_string());
    let version: Version = serde_json::from_str(&text).map_err(parse)?;
    if version.format != FORMAT {
        return Err(wrong(format!(
            "a report of format {}, and this version of Quorate knows format {FORMAT}",
            version.format
        )));
    }
    serde_json::from_str(&text).map_err(parse)
}

/// Shows what changed.
pub fn run(options: &Options) -> Result<()> {
    let (old, new) = (read(&options.old)?, read(&options.new)?);
    for (name, was) in &old.conditions {
        let is = new.conditions.iter().find(|(other, _)| other == name);
        if let Some((_, is)) = is.filter(|(_, is)| is != was) {
            println!("{name}: {was} before, {is} now");
        }
    }
    let changes = results::compare(&old, &new);
    let mut rows = Vec::new();
    for change in &changes {
        let word = match change.verdict {
            Verdict::Worse => "worse",
            Verdict::Better => "better",
            Verdict::Different => "different",
            Verdict::Missing => "not measured now",
            Verdict::Same if options.all => "same",
            Verdict::Same => continue,
        };
        let ratio = match change.ratio.is_finite() {
            true => format!("{:.2}×", change.ratio),
            false => "–".to_owned(),
        };
        let [was, is] = change.figures.clone();
        rows.push(vec![change.what.clone(), was, is, ratio, word.to_owned()]);
    }
    let same = changes
        .iter()
        .filter(|change| change.verdict == Verdict::Same)
        .count();
    if !rows.is_empty() {
        let head = ["figure", "before", "now", "now / before", ""].map(str::to_owned);
        println!("{}", table(&head, &rows));
    }
    println!(
        "{same} of {} figures did not change beyond noise.",
        changes.len()
    );
    Ok(())
}

/// Writes the sections of a document whose experiments are in the report.
pub fn document(options: &DocumentOptions) -> Result<()> {
    let report = read(&options.report)?;
    let text = read_file(&options.document)?;
    let conditions: Vec<String> = report
        .conditions
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let mut written = 0;
    for experiment in &report.experiments {
        if !text.contains(&format!("<!-- {} -->", experiment.name)) {
            continue;
        }
        let quick = if report.quick { ", quick" } else { "" };
        let section = format!(
            "Measured {}{quick}; medians (lowest–highest) over interleaved rounds. {}.\n\n{}",
            report.made,
            conditions.join("; "),
            experiment.document()
        );
        replace_section(&options.document, &experiment.name, &section)?;
        written += 1;
    }
    match written {
        0 => Err(Error::other(format!(
            "{} has no section for this",
            options.document.display()
        ))),
        _ => Ok(()),
    }
}
