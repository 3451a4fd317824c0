//! A plan on its way to the coordinator: its text, the files it names and the repository it is about.
//!
//! Everything that can be found wrong is found before anything is made or sent, and told at once
//! with what the coordinator finds wrong. The user's tree is only read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ganger_proto::convert::SubmittedSource;
use ganger_proto::{read, v1};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::limits::Limits;
use ganger_shared::plan::{self, PlanFile, Reading};
use ganger_shared::problem::Problem;
use ganger_telemetry::names::span;
use thiserror::Error as ThisError;
use tracing::Instrument as _;

use crate::error::Error;
use crate::exit::Exit;
use crate::redial::patiently;
use crate::server::Server;
use crate::state_dir::StateDir;
use crate::transfer;

pub mod files;
pub mod source;
pub mod text;

use source::Found;
use text::PlanText;

/// Why a plan could not be sent.
#[derive(Debug, ThisError)]
pub enum SubmissionError {
    /// The plan's text.
    #[error(transparent)]
    Text(#[from] text::TextError),
    /// The plan's repository.
    #[error(transparent)]
    Source(#[from] source::SourceError),
}

impl SubmissionError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Text(error) => error.exit(),
            Self::Source(_) => Exit::Refused,
        }
    }
}

/// A plan with problems; all of them are here.
#[derive(Debug, ThisError)]
#[error("{name} is refused: {} problem(s)", problems.iter().filter(|p| p.is_error()).count())]
pub struct PlanRefused {
    /// The plan's file.
    pub name: String,
    /// Every problem, in the order of the text.
    pub problems: Vec<Problem>,
}

impl PlanRefused {
    /// A line each, as a compiler would.
    pub fn lines(&self) -> Vec<String> {
        told(&self.name, &self.problems)
    }
}

/// Problems, a line each, with the file before the place.
pub fn told(name: &str, problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| {
        let between = if problem.line.is_some() { ":" } else { ": " };
        format!("  {name}{between}{problem}")
    };
    problems.iter().map(line).collect()
}

/// What came of a submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The run.
    pub run: String,
    /// It was submitted before, with this key.
    pub replayed: bool,
    /// What a person should look at.
    pub warnings: Vec<Problem>,
    /// The repository made of a seed.
    pub seeded: Option<PathBuf>,
}

/// A plan, read as far as it can be, and what it needs.
struct Draft {
    text: PlanText,
    reading: Reading,
    files: BTreeMap<String, (PathBuf, ArtifactRef)>,
    found: Found,
    problems: Vec<Problem>,
    artifact_max: u64,
}

/// Says everything that is wrong with a plan; makes and sends nothing.
pub async fn check(server: &mut Server, path: &Path) -> Result<(String, Vec<Problem>), Error> {
    let draft = Draft::read(server, path).await?;
    let problems = draft.check(server).await?;
    Ok((draft.text.name, problems))
}

/// Makes a run of a plan.
pub async fn submit(
    server: &mut Server,
    state: &StateDir,
    path: &Path,
    key: &str,
) -> Result<Submitted, Error> {
    let calling = tracing::info_span!(span::CLIENT_SUBMIT);
    async {
        let draft = Draft::read(server, path).await?;
        let problems = draft.check(server).await?;
        if problems.iter().any(Problem::is_error) {
            return Err(PlanRefused { name: draft.text.name, problems }.into());
        }
        draft.send(server, (state, key), problems).await
    }
    .instrument(calling)
    .await
}

impl Draft {
    async fn read(server: &mut Server, path: &Path) -> Result<Self, Error> {
        let path = text::find(path).map_err(SubmissionError::from)?;
        let (plan_max, artifact_max) = limits(server).await?;
        let text = text::read(&path, plan_max).map_err(SubmissionError::from)?;
        let allowed = Limits { plan_bytes: plan_max, ..Limits::default() };
        let reading = plan::read_all(&text.text, &allowed);
        let mut draft = Self {
            text,
            reading,
            files: BTreeMap::new(),
            found: Found::Nothing,
            problems: Vec::new(),
            artifact_max,
        };
        if let Some(plan) = draft.reading.plan.clone() {
            draft.look(&plan).await?;
        }
        Ok(draft)
    }

    async fn look(&mut self, plan: &PlanFile) -> Result<(), Error> {
        let (files, missing) = files::gather(plan, &self.text.dir, self.artifact_max).await?;
        self.files = files;
        self.problems.extend(missing);
        match source::look(plan, &self.text.dir).await.map_err(SubmissionError::from)? {
            Ok((found, warnings)) => {
                self.found = found;
                self.problems.extend(warnings);
            }
            Err(problem) => {
                self.found = Found::Missing;
                self.problems.push(problem);
            }
        }
        Ok(())
    }

    fn attachments(&self) -> BTreeMap<String, v1::ArtifactRef> {
        let named = |(path, (_, artifact)): (&String, &(PathBuf, ArtifactRef))| {
            (path.clone(), artifact.clone().into())
        };
        self.files.iter().map(named).collect()
    }

    /// What the coordinator finds wrong and what we do, in the order of the text.
    async fn check(&self, server: &mut Server) -> Result<Vec<Problem>, Error> {
        let request = v1::PlanServiceCheckRequest {
            plan: self.text.text.clone().into_bytes(),
            plan_name: self.text.name.clone(),
            attachments: self.attachments(),
            repository: self.found.stand_in().map(Into::into),
        };
        let answer =
            patiently(server, async |clients| clients.plans().check(request.clone()).await)
                .await?
                .into_inner();
        let mut problems: Vec<Problem> = read::each("problems", answer.problems)?;
        let own = |problem: &Problem| self.problems.iter().any(|own| own.path == problem.path);
        // A file that is missing here is missing there, too: it is told once.
        problems.retain(|problem| !own(problem));
        problems.extend(self.problems.clone());
        Ok(self.reading.spans.placed(problems))
    }

    async fn send(
        self,
        server: &mut Server,
        (state, key): (&StateDir, &str),
        warnings: Vec<Problem>,
    ) -> Result<Submitted, Error> {
        for (name, (path, artifact)) in &self.files {
            transfer::send(server.clients(), path, artifact, name).await?;
        }
        let name = self.reading.plan.as_ref().map(|plan| plan.name.to_string()).unwrap_or_default();
        let place = (state, format!("{name}-{}", source::short_name(key)));
        let made = self.found.make(&place).await.map_err(SubmissionError::from)?;
        let sent = match &made {
            None => Ok(None),
            Some(made) => made.send(server.clients(), self.artifact_max).await.map(Some),
        };
        let seeded = made.as_ref().and_then(source::Made::seeded);
        let result = match sent {
            Ok(source) => self.call(server, key, source).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(answer) => {
                Ok(Submitted { run: answer.run_id, replayed: answer.replayed, warnings, seeded })
            }
            Err(error) => {
                // Nothing half done: a repository nobody knows of is not left behind.
                if let Some(made) = made {
                    made.undo();
                }
                Err(error)
            }
        }
    }

    async fn call(
        &self,
        server: &mut Server,
        key: &str,
        source: Option<SubmittedSource>,
    ) -> Result<v1::PlanServiceSubmitResponse, Error> {
        let request = v1::PlanServiceSubmitRequest {
            idempotency_key: key.to_owned(),
            plan: self.text.text.clone().into_bytes(),
            plan_name: self.text.name.clone(),
            attachments: self.attachments(),
            repository: source.map(Into::into),
        };
        let answer = patiently(server, async |clients| {
            let mut request = tonic::Request::new(request.clone());
            ganger_telemetry::context::inject_into(request.metadata_mut());
            clients.plans().submit(request).await
        });
        Ok(answer.await?.into_inner())
    }
}

/// The largest plan and the largest artifact this coordinator takes.
async fn limits(server: &mut Server) -> Result<(u64, u64), Error> {
    let answer = patiently(server, async |clients| {
        clients.fleet().assets(v1::FleetServiceAssetsRequest {}).await
    });
    let limits = answer.await?.into_inner().limits;
    let of = |name: &str, default: u64| limits.get(name).copied().unwrap_or(default);
    let defaults = Limits::default();
    Ok((of("plan_bytes", defaults.plan_bytes), of("artifact_bytes", defaults.artifact_bytes)))
}

#[cfg(test)]
mod tests {
    use ganger_shared::problem::Code;

    use super::*;

    #[test]
    fn problems_are_told_as_a_compiler_would() {
        let refused = PlanRefused {
            name: "plan.yaml".into(),
            problems: vec![
                Problem::error(Code::Cycle, "units", "a -> b -> a").at(Some((3, 1))),
                Problem::warning(Code::Advice, "", "no goal"),
            ],
        };
        assert_eq!(refused.to_string(), "plan.yaml is refused: 1 problem(s)");
        let expected = ["  plan.yaml:3:1 units: a -> b -> a", "  plan.yaml: warning: no goal"];
        assert_eq!(refused.lines(), expected);
    }
}
