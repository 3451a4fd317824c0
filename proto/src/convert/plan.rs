//! What goes with a plan: its problems and its repository.

use ganger_shared::digest::ArtifactRef;
use ganger_shared::event::Repository;
use ganger_shared::problem::Problem;

use crate::malformed::Malformed;
use crate::{read, v1};

/// The repository of a submitted plan, and what carries its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedSource {
    /// The repository as the run keeps it.
    pub repository: Repository,
    /// A bundle of the base; absent where the mirror is said to hold it.
    pub bundle: Option<ArtifactRef>,
}

impl TryFrom<v1::SubmittedRepository> for SubmittedSource {
    type Error = Malformed;
    fn try_from(wire: v1::SubmittedRepository) -> Result<Self, Malformed> {
        let v1::SubmittedRepository { id, shown, base, base_name, bundle } = wire;
        Ok(Self {
            repository: Repository {
                id: read::text("id", &id)?,
                shown,
                base: read::text("base", &base)?,
                base_name,
            },
            bundle: read::optional("bundle", bundle)?,
        })
    }
}

impl From<SubmittedSource> for v1::SubmittedRepository {
    fn from(source: SubmittedSource) -> Self {
        let SubmittedSource { repository: Repository { id, shown, base, base_name }, bundle } =
            source;
        Self {
            id: id.to_string(),
            shown,
            base: base.to_string(),
            base_name,
            bundle: bundle.map(Into::into),
        }
    }
}

impl TryFrom<v1::Problem> for Problem {
    type Error = Malformed;
    fn try_from(wire: v1::Problem) -> Result<Self, Malformed> {
        let v1::Problem { code, severity, path, line, column, message, fix } = wire;
        Ok(Self {
            code: read::word("code", code)?,
            severity: read::word("severity", severity)?,
            path,
            line,
            column,
            message,
            fix,
        })
    }
}

impl From<Problem> for v1::Problem {
    fn from(problem: Problem) -> Self {
        let Problem { code, severity, path, line, column, message, fix } = problem;
        Self {
            code: v1::ProblemCode::from(code).into(),
            severity: v1::Severity::from(severity).into(),
            path,
            line,
            column,
            message,
            fix,
        }
    }
}
