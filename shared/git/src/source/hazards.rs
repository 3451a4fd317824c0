//! What in a user's repository will not travel to an attempt, named before anything starts.
//!
//! Whether a hazard stops a run is the client's business.

use ganger_shared::ids::CommitId;

use super::Source;
use crate::command::Call;
use crate::error::Error;

/// Something in a repository that attempts will not see as its owner does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hazard {
    /// Submodules are empty directories in an attempt's tree.
    Submodules {
        /// Where they are.
        paths: Vec<String>,
    },
    /// Files kept by Git LFS are pointer files in an attempt's tree.
    Lfs {
        /// The attribute files that say so.
        attributes: Vec<String>,
    },
    /// The clone is shallow: its history ends early, so it cannot be sent on.
    Shallow,
    /// The clone leaves objects at its remote, so it cannot be sent on whole.
    Partial,
}

impl std::fmt::Display for Hazard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Submodules { paths } => {
                write!(f, "submodules are empty directories for agents: {}", paths.join(", "))
            }
            Self::Lfs { attributes } => {
                let attributes = attributes.join(", ");
                write!(f, "lfs_missing: agents see Git LFS pointer files (named in {attributes})")
            }
            Self::Shallow => {
                f.write_str("the clone is shallow; run `git fetch --unshallow` to send it on")
            }
            Self::Partial => {
                f.write_str("the clone is partial; run `git fetch --refetch --no-filter` first")
            }
        }
    }
}

impl Source {
    /// Lists what in the tree of `commit`, and in the clone itself, will not travel.
    pub async fn hazards(&self, commit: &CommitId) -> Result<Vec<Hazard>, Error> {
        const OPERATION: &str = "look for submodules and LFS";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let answer = call.args(["ls-tree", "-r", "-z", commit.as_str()]).bulk().run().await?;
        let mut submodules = Vec::new();
        let mut attributes = Vec::new();
        for entry in answer.parts() {
            let entry = String::from_utf8_lossy(entry);
            let Some((about, path)) = entry.split_once('\t') else {
                return Err(self.place.unexpected(OPERATION, entry.as_bytes()));
            };
            if about.starts_with("160000") {
                submodules.push(path.to_owned());
            } else if path.rsplit('/').next() == Some(".gitattributes") {
                let object = about.rsplit(' ').next().unwrap_or_default();
                attributes.push((path.to_owned(), object.to_owned()));
            }
        }
        let mut hazards = Vec::new();
        if !submodules.is_empty() {
            hazards.push(Hazard::Submodules { paths: submodules });
        }
        let attributes = self.naming_lfs(attributes).await?;
        if !attributes.is_empty() {
            hazards.push(Hazard::Lfs { attributes });
        }
        hazards.extend(self.is_shallow().then_some(Hazard::Shallow));
        hazards.extend(self.is_partial().await?.then_some(Hazard::Partial));
        Ok(hazards)
    }

    pub(super) fn is_shallow(&self) -> bool {
        self.common.join("shallow").is_file()
    }

    async fn is_partial(&self) -> Result<bool, Error> {
        let call = Call::new(&self.git, "look for a partial clone", &self.place);
        let pattern = r"^(extensions\.partialclone|remote\..*\.promisor)$";
        let args = ["config", "--local", "--name-only", "--get-regexp", pattern];
        Ok(call.args(args).run_any().await?.code == Some(0))
    }

    async fn naming_lfs(&self, files: Vec<(String, String)>) -> Result<Vec<String>, Error> {
        let mut naming = Vec::new();
        for (path, object) in files {
            let call = Call::new(&self.git, "read an attribute file", &self.place);
            let answer = call.args(["cat-file", "blob", &object]).run().await?;
            if answer.text().contains("filter=lfs") {
                naming.push(path);
            }
        }
        Ok(naming)
    }
}
