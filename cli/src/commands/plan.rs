//! `ganger plan`: looks at plans without running them.

use std::path::PathBuf;

use ganger_shared::problem::Problem;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::submission::{self, SubmissionError};
use crate::{output, session};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say everything that is wrong with a plan; makes no run.
    Check {
        /// The plan file.
        plan: PathBuf,
    },
    /// Print the JSON Schema of plans.
    Schema,
}

/// Carries one out.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Error> {
    match command {
        Command::Check { plan } => check(plan, context).await,
        Command::Schema => {
            let schema = ganger_shared::plan::schema();
            let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
            output::line(&text)?;
            Ok(Exit::Ok)
        }
    }
}

async fn check(plan: PathBuf, context: &Context) -> Result<Exit, Error> {
    submission::text::find(&plan).map_err(SubmissionError::from)?;
    let (name, problems) =
        session::with(context, async |server| submission::check(server, &plan).await).await?;
    let refused = problems.iter().any(Problem::is_error);
    let answer = serde_json::json!({ "plan": name, "ok": !refused, "problems": problems });
    context.out.one(&answer, |_| match problems.as_slice() {
        [] => format!("{name}: nothing is wrong"),
        problems => {
            let errors = problems.iter().filter(|problem| problem.is_error()).count();
            let (warnings, lines) = (problems.len() - errors, submission::told(&name, problems));
            format!("{name}: {errors} errors, {warnings} warnings\n{}", lines.join("\n"))
        }
    })?;
    if refused && context.out.format != output::Format::Table {
        output::note(&format!("error: {name} is refused"));
    }
    Ok(if refused { Exit::Refused } else { Exit::Ok })
}
