//! A report as one page of HTML that needs nothing beside: the charts' library, the figures and the
//! layout are all in it. Light and dark, for large screens, phones and paper.

use std::io::{Error, Result};

use crate::results::Report;

const PAGE: &str = include_str!("../assets/page.html");
const D3: &str = include_str!("../assets/d3-7.9.2.min.js");
const PLOT: &str = include_str!("../assets/plot-0.6.17.umd.min.js");

/// The page.
///
/// # Errors
/// A figure is not a number that JSON can say.
pub fn html(report: &Report) -> Result<String> {
    // What ends a script must not stand inside one.
    let json = serde_json::to_string(report).map_err(Error::other)?;
    let mut page = String::with_capacity(PAGE.len() + D3.len() + PLOT.len() + json.len());
    let mut rest = PAGE;
    for (mark, text) in [
        ("{{REPORT}}", json.replace("</", "<\\/")),
        ("{{D3}}", D3.replace("</script", "<\\/script")),
        ("{{PLOT}}", PLOT.replace("</script", "<\\/script")),
    ] {
        let (before, after) = rest
            .split_once(mark)
            .ok_or_else(|| Error::other(format!("the page lacks {mark}")))?;
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Experiment, FORMAT};

    #[test]
    fn the_page_is_whole_and_holds_its_figures() {
        let report = Report {
            format: FORMAT,
            made: "today".to_owned(),
            quick: false,
            conditions: vec![("a".to_owned(), "</script>".to_owned())],
            experiments: vec![Experiment::default()],
        };
        let page = html(&report).unwrap();
        assert!(page.ends_with("</html>\n"));
        assert!(
            page.contains("<\\/script>") && !page.contains("{{"),
            "marks are left"
        );
        assert!(!page.contains("src=\"http"), "it needs something beside");
    }
}
