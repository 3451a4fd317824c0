//! The files a plan names: found beside it, named by digest; all that are missing are told together.
//!
//! Which keys name files is here; whether a file is a good one is told by who reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ganger_shared::digest::ArtifactRef;
use ganger_shared::plan::{Agent, PlanFile, Unit, path};
use ganger_shared::problem::{Code, Problem};

use crate::error::Error;
use crate::transfer;

/// The files by the path the plan names them with, and a problem for each that is missing.
pub type Gathered = (BTreeMap<String, (PathBuf, ArtifactRef)>, Vec<Problem>);

/// Finds every file the plan names.
pub async fn gather(plan: &PlanFile, dir: &Path, max: u64) -> Result<Gathered, Error> {
    let (mut files, mut problems) = (BTreeMap::new(), Vec::new());
    for (place, name) in named(plan) {
        if files.contains_key(&name) {
            continue;
        }
        let file = within(dir, &name);
        if file.is_file() {
            let artifact = transfer::name(&file, max).await?;
            files.insert(name, (file, artifact));
        } else {
            problems.push(missing(place, &name, &file));
        }
    }
    Ok((files, problems))
}

/// The path beside the plan, without the steps that lead nowhere.
pub fn within(dir: &Path, name: &str) -> PathBuf {
    dir.join(name).components().collect()
}

fn missing(place: String, name: &str, file: &Path) -> Problem {
    let what = if file.is_dir() { "is a directory, not a file" } else { "is not there" };
    Problem::error(Code::BadValue, place, format!("`{name}` {what}: {}", file.display()))
        .with_fix("paths are relative to the plan file: correct it, or make the file")
}

/// Every key that names a file, with what it names.
fn named(plan: &PlanFile) -> Vec<(String, String)> {
    let of = |place: String, agent: Option<&Agent>| {
        agent.and_then(|agent| agent.script.clone()).map(|script| (place + ".script", script))
    };
    let units = plan.units.iter().enumerate().flat_map(|(index, unit)| {
        of(path::unit_key(index, "agent"), unit.agent.as_ref())
            .into_iter()
            .chain(lanes(&path::unit(index), unit))
    });
    of("defaults.agent".to_owned(), plan.defaults.agent.as_ref()).into_iter().chain(units).collect()
}

fn lanes(place: &str, unit: &Unit) -> Vec<(String, String)> {
    let lanes = unit.race.iter().flat_map(|race| race.lanes.iter().enumerate());
    lanes
        .filter_map(|(index, lane)| {
            let place = path::item(&format!("{place}.race.lanes"), index);
            Some((format!("{place}.agent.script"), lane.agent.script.clone()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::limits::Limits;

    use super::*;

    const PLAN: &str = "
version: 1
name: scripts
mode: autonomous
units:
  - { id: a, kind: agent, agent: { name: scripted, script: there.yaml } }
  - { id: b, kind: agent, agent: { name: scripted, script: gone.yaml } }
  - { id: c, kind: agent, agent: { name: scripted, script: also/gone.yaml } }
";

    /// R003: every missing file is told, not only the first.
    #[tokio::test]
    async fn all_missing_files_are_told_together() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there.yaml"), "- say: hello\n").unwrap();
        let plan = ganger_shared::plan::read_all(PLAN, &Limits::default()).plan.unwrap();
        let (files, problems) = gather(&plan, dir.path(), 1 << 20).await.unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["there.yaml"]);
        assert_eq!(files["there.yaml"].1, ArtifactRef::of(b"- say: hello\n"));
        let places: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(places, ["units[1].agent.script", "units[2].agent.script"]);
        assert!(problems[1].message.contains("also/gone.yaml"));
    }
}
