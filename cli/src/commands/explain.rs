//! `ganger explain RUN [UNIT]`: says why units do not run.

use std::fmt::Write as _;

use ganger_proto::{read, v1};
use ganger_shared::view::Explanation;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::style::Style;
use crate::output::table::plain;
use crate::session;

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// The unit; without it, every unit that is not done.
    pub unit: Option<String>,
}

/// Explains.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let request =
        v1::UnitServiceExplainRequest { run: args.run, unit: args.unit.unwrap_or_default() };
    let answer = session::with(context, async |server| {
        Ok(server.clients().units().explain(request).await?.into_inner())
    })
    .await?;
    let rows: Vec<Explanation> = read::each("explanations", answer.explanations)?;
    context.out.list("explanations", &rows, |style| text(&rows, style))?;
    Ok(Exit::Ok)
}

fn text(rows: &[Explanation], style: Style) -> String {
    if rows.is_empty() {
        return "every unit is done".to_owned();
    }
    let mut text = String::new();
    for row in rows {
        let place = row.position.map(|at| format!(", number {at} in the queue"));
        let (state, place) = (style.state(&row.state), place.unwrap_or_default());
        let _ = writeln!(text, "{}: {state}{place}", row.unit);
        for reason in &row.reasons {
            let _ = writeln!(text, "  {}", plain(reason));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::ids::UnitId;

    use super::*;

    #[test]
    fn a_unit_is_told_with_its_place_and_reasons() {
        let row = Explanation {
            unit: UnitId::parse("build").unwrap(),
            state: "ready".into(),
            position: Some(2),
            reasons: vec!["no worker offers gpu=h100".into()],
        };
        let expected = "build: ready, number 2 in the queue\n  no worker offers gpu=h100\n";
        assert_eq!(text(&[row], Style::new(false)), expected);
        assert_eq!(text(&[], Style::new(false)), "every unit is done");
    }
}
