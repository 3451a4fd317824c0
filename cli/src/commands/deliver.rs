//! `ganger deliver RUN`: brings a run's branch into a repository here.

use std::path::PathBuf;

use ganger_proto::{read, v1};
use ganger_shared::ids::CommitId;

use super::get;
use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::server::Server;
use crate::{hand_over, session, transfer};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// The repository to bring it into [default: the one the plan was submitted with].
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Delivers.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let there = session::with(context, async |server| deliver(server, args).await).await?;
    let repository = there.repository.display().to_string();
    let answer = serde_json::json!({
        "branch": there.branch,
        "tip": there.tip,
        "repository": repository,
        "unchanged": there.unchanged,
    });
    context.out.one(&answer, |_| {
        let already = if there.unchanged { " already" } else { "" };
        format!("branch {} is{already} in {repository}", there.branch)
    })?;
    Ok(Exit::Ok)
}

async fn deliver(server: &Server, args: Args) -> Result<hand_over::HandedOver, Error> {
    let view = get::view(server, &args.run).await?;
    let path = match (args.into, &view.repository) {
        (Some(path), _) => path,
        (None, Some(path)) => PathBuf::from(path),
        (None, None) => {
            let run = &view.row.id;
            return Err(Error::Nothing(format!("run {run} has no repository, so no branch")));
        }
    };
    let source = hand_over::open(&path).await?;
    let have = hand_over::present(&source, view.base.as_ref()).await;
    let answer = apply(server, &args.mutation, view.row.id.as_str(), have).await?;
    let tip: CommitId = read::text("tip", &answer.tip)?;
    let mut bundle = transfer::named("bundle", answer.bundle)?;
    if bundle.is_none() {
        // The tip is the base: git wants a bundle to make a branch of.
        let again = Mutation { expect: None, key: None };
        let answer = apply(server, &again, view.row.id.as_str(), None).await?;
        bundle = transfer::named("bundle", answer.bundle)?;
    }
    let bundle = bundle.ok_or_else(|| hand_over::HandOverError::Empty {
        branch: answer.branch.clone(),
        tip: tip.clone(),
    })?;
    hand_over::take_in(server.clients(), &source, &bundle, (&answer.branch, &tip)).await
}

async fn apply(
    server: &Server,
    mutation: &Mutation,
    run: &str,
    have: Option<CommitId>,
) -> Result<v1::DeliveryServiceApplyResponse, Error> {
    let request = v1::DeliveryServiceApplyRequest {
        idempotency_key: mutation.key(),
        expected_sequence: mutation.expect,
        run: run.to_owned(),
        have: have.iter().map(ToString::to_string).collect(),
    };
    Ok(server.clients().deliveries().apply(request).await?.into_inner())
}
