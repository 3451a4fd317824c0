//! Bundles: history as one file, carried by others from one repository to another.
//!
//! The file is git's own bundle format, version 2: a text header (what must be there, what comes)
//! and a pack. The header is written and read here rather than by `git bundle`, because that
//! command wants a ref in the sending repository for whatever it sends, and the sender may be the
//! user's repository, where nothing is to be changed. The pack is made and checked by git.
//!
//! Not here: which commits another side has. Nor any ref: a taken-in commit is pinned by callers.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use crate::command::{Call, Place, lines};
use crate::error::Error;
use crate::program::Git;

const SIGNATURE: &str = "# v2 git bundle";
/// A header holds one line per commit named; nobody names more than this.
const HEADER_LINES_MAX: usize = 10_000;
const HEADER_LINE_MAX: u64 = 4 << 10;
/// What the commits of a bundle are called in it; the taker goes by their ids.
const TIP: &str = "refs/ganger/tip";
const OPERATION_IN: &str = "take in a bundle";

/// What came of writing a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bundled {
    /// The file is complete.
    Written {
        /// Its size.
        bytes: u64,
    },
    /// The other side has the tip already; no file was written.
    NothingNew,
}

/// Why a bundle could not be written or taken in.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle builds on commits that are not here.
    #[error(
        "take in {bundle}: it builds on commits that are not here: {}; send those first",
        list(commits)
    )]
    MissingPrerequisite {
        /// The bundle.
        bundle: PathBuf,
        /// The commits that are missing.
        commits: Vec<CommitId>,
    },
    /// The file is not a whole, sound bundle.
    #[error("take in {bundle}: it is damaged ({reason}); send it again")]
    Damaged {
        /// The bundle.
        bundle: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bundle is sound, but what was wanted is not in it.
    #[error("take in {bundle}: commit {commit} is not in it")]
    WithoutCommit {
        /// The bundle.
        bundle: PathBuf,
        /// The wanted commit.
        commit: CommitId,
    },
    /// The bundle is larger than the limit.
    #[error("move {bundle}: a bundle has at most {max} bytes; raise the limit or split the change")]
    TooLarge {
        /// The bundle.
        bundle: PathBuf,
        /// The limit.
        max: u64,
    },
    /// A commit that was to be sent is not here.
    #[error("bundle commit {commit}: it is not in {dir}")]
    UnknownTip {
        /// The commit.
        commit: CommitId,
        /// The repository.
        dir: PathBuf,
    },
    /// The clone's history ends early, so what is sent would not be whole.
    #[error("bundle commit {commit}: {dir} is a shallow clone; run `git fetch --unshallow` there")]
    Shallow {
        /// The commit.
        commit: CommitId,
        /// The repository.
        dir: PathBuf,
    },
    /// Git or the file system failed.
    #[error(transparent)]
    Git(#[from] Error),
}

fn list(commits: &[CommitId]) -> String {
    commits.iter().map(CommitId::as_str).collect::<Vec<_>>().join(", ")
}

/// Writes what `tips` have and `have` has not to the file `out`.
///
/// Of `have` only what is here counts. A failure leaves no file behind.
pub(crate) async fn write(
    git: &Git,
    place: &Place,
    out: &Path,
    tips: &[CommitId],
    have: &[CommitId],
) -> Result<Bundled, BundleError> {
    let here = present(git, place, tips).await?;
    if let Some((commit, _)) = tips.iter().zip(here).find(|(_, here)| !here) {
        let dir = place.dir().to_owned();
        return Err(BundleError::UnknownTip { commit: commit.clone(), dir });
    }
    if tips.iter().all(|tip| have.contains(tip)) {
        return Ok(Bundled::NothingNew);
    }
    let known = present(git, place, have).await?;
    let known = have.iter().zip(known).filter(|(_, here)| *here).map(|(commit, _)| commit);
    let known: Vec<&CommitId> = known.collect();
    let mut partial = out.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = write_to(git, place, &partial, (tips, &known)).await;
    let finished = written.and_then(|bytes| {
        std::fs::rename(&partial, out).map_err(Error::files("finish a bundle", out))?;
        Ok(Bundled::Written { bytes })
    });
    if finished.is_err() {
        let _never_made = std::fs::remove_file(&partial);
    }
    finished
}

async fn write_to(
    git: &Git,
    place: &Place,
    partial: &Path,
    (tips, known): (&[CommitId], &[&CommitId]),
) -> Result<u64, BundleError> {
    const OPERATION: &str = "write a bundle";
    let named = tips.iter().enumerate().map(|(number, tip)| format!("{tip} {TIP}-{number}"));
    let header = format!("{SIGNATURE}\n{}{}\n", lines("-", known, '\n'), lines("", named, '\n'));
    let wanted = lines("^", known, '\n') + &lines("", tips, '\n');
    let mut file = File::create(partial).map_err(Error::files(OPERATION, partial))?;
    file.write_all(header.as_bytes()).map_err(Error::files(OPERATION, partial))?;
    let max = git.limits().bundle_max;
    let room = max.saturating_sub(header.len() as u64);
    let packed = Call::new(git, OPERATION, place)
        .args(["pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q"])
        .input(wanted)
        .into_file(file, room)
        .bulk()
        .run()
        .await;
    match packed {
        Ok(packed) => Ok(header.len() as u64 + packed.written),
        Err(Error::OutputTooLarge { .. }) => {
            Err(BundleError::TooLarge { bundle: partial.with_extension(""), max })
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes the bundle's objects in, once it is proved that `wants` and all they reach are whole.
///
/// They are unpacked beside the store and moved in at the end: a commit that is found here is
/// always one with all its files. The caller holds the repository's lock.
pub(crate) async fn take_in(
    git: &Git,
    place: &Place,
    objects: &Path,
    bundle: &Path,
    wants: &[CommitId],
) -> Result<(), BundleError> {
    let max = git.limits().bundle_max;
    let Header { prerequisites, pack, bytes } = Header::read(bundle)?;
    if bytes > max {
        return Err(BundleError::TooLarge { bundle: bundle.to_owned(), max });
    }
    let here = present(git, place, &prerequisites).await?;
    let missing: Vec<CommitId> = prerequisites
        .iter()
        .zip(here)
        .filter(|(_, here)| !here)
        .map(|(id, _)| id.clone())
        .collect();
    if !missing.is_empty() {
        let bundle = bundle.to_owned();
        return Err(BundleError::MissingPrerequisite { bundle, commits: missing });
    }
    let incoming = Incoming::make(objects)?;
    let apart = place.clone().objects(&incoming.0).beside_objects(objects);
    Call::new(git, OPERATION_IN, &apart)
        .args(["index-pack", "--stdin", "--fix-thin", &format!("--max-input-size={max}")])
        .input_file(pack)
        .bulk()
        .run()
        .await
        .map_err(|error| blame_bundle(bundle, error))?;
    let here = present(git, &apart, wants).await?;
    if let Some((commit, _)) = wants.iter().zip(here).find(|(_, here)| !here) {
        let bundle = bundle.to_owned();
        return Err(BundleError::WithoutCommit { bundle, commit: commit.clone() });
    }
    let whole = prove_whole(git, &apart, wants, &prerequisites).await;
    whole.map_err(|error| blame_bundle(bundle, error))?;
    Ok(incoming.move_into(objects)?)
}

/// Where objects wait for their proof; emptied when it is dropped.
struct Incoming(PathBuf);

impl Incoming {
    fn make(objects: &Path) -> Result<Self, Error> {
        let dir = objects.join("ganger-incoming");
        // What a killed predecessor left; the lock says that nobody uses it now.
        let _nothing_left = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("pack")).map_err(Error::files(OPERATION_IN, &dir))?;
        Ok(Self(dir))
    }

    /// Moves the packs over, each index last: git sees a pack by its index.
    fn move_into(&self, objects: &Path) -> Result<(), Error> {
        let from = self.0.join("pack");
        let into = objects.join("pack");
        let failed = |source| Error::files(OPERATION_IN, &into)(source);
        std::fs::create_dir_all(&into).map_err(failed)?;
        let names = std::fs::read_dir(&from).map_err(failed)?;
        let names = names.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names = names.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        names.sort_by_key(|name| Path::new(name).extension().is_some_and(|end| end == "idx"));
        for name in names {
            std::fs::rename(from.join(&name), into.join(&name)).map_err(failed)?;
        }
        File::open(&into).and_then(|dir| dir.sync_all()).map_err(failed)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let _left_to_the_next = std::fs::remove_dir_all(&self.0);
    }
}

/// Walks everything that is new, so that a commit here is always a commit with all its files.
async fn prove_whole(
    git: &Git,
    place: &Place,
    wants: &[CommitId],
    known: &[CommitId],
) -> Result<(), Error> {
    let ids = lines("", wants, '\n') + &lines("^", known, '\n');
    let call = Call::new(git, "check the objects of a bundle", place);
    call.args(["rev-list", "--objects", "--quiet", "--stdin"]).input(ids).bulk().run().await?;
    Ok(())
}

/// Git fails on a bad pack and on a full disk alike; only the first is the bundle's fault.
fn blame_bundle(bundle: &Path, error: Error) -> BundleError {
    const OURS: &[&str] = &["No space left", "quota exceeded", "Permission denied", "Read-only"];
    match &error {
        Error::Failed { message, .. } if !OURS.iter().any(|ours| message.contains(ours)) => {
            BundleError::Damaged { bundle: bundle.to_owned(), reason: message.clone() }
        }
        Error::Failed { .. }
        | Error::NotStarted { .. }
        | Error::Deadline { .. }
        | Error::OutputTooLarge { .. }
        | Error::Unexpected { .. }
        | Error::PathNotUtf8 { .. }
        | Error::RepoBusy { .. }
        | Error::Files { .. } => BundleError::Git(error),
    }
}

/// Which of `ids` are commits in the repository.
pub(crate) async fn present(
    git: &Git,
    place: &Place,
    ids: &[CommitId],
) -> Result<Vec<bool>, Error> {
    const OPERATION: &str = "look for commits";
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let asked = lines("", ids, '\n');
    let call = Call::new(git, OPERATION, place).args(["cat-file", "--batch-check", "--buffer"]);
    let answer = call.input(asked).run().await?;
    let text = answer.text();
    let found: Vec<bool> =
        text.lines().map(|line| line.split(' ').nth(1) == Some("commit")).collect();
    if found.len() == ids.len() {
        Ok(found)
    } else {
        Err(place.unexpected(OPERATION, &answer.stdout))
    }
}

/// A bundle's header, and the file standing where its pack begins.
#[derive(Debug)]
struct Header {
    prerequisites: Vec<CommitId>,
    pack: File,
    bytes: u64,
}

impl Header {
    fn read(bundle: &Path) -> Result<Self, BundleError> {
        const OPERATION: &str = "read a bundle";
        let damaged = |reason: &str| BundleError::Damaged {
            bundle: bundle.to_owned(),
            reason: reason.to_owned(),
        };
        let file = File::open(bundle).map_err(Error::files(OPERATION, bundle))?;
        let bytes = file.metadata().map_err(Error::files(OPERATION, bundle))?.len();
        let mut reader = BufReader::new(file);
        let mut next = || -> Result<String, BundleError> {
            let mut line = Vec::new();
            let mut bounded = std::io::Read::take(&mut reader, HEADER_LINE_MAX);
            bounded.read_until(b'\n', &mut line).map_err(Error::files(OPERATION, bundle))?;
            if line.pop() != Some(b'\n') {
                return Err(damaged("its header does not end"));
            }
            String::from_utf8(line).map_err(|_| damaged("its header is not text"))
        };
        if next()? != SIGNATURE {
            return Err(damaged("it does not begin as a version 2 bundle does"));
        }
        let mut prerequisites = Vec::new();
        for _ in 0..HEADER_LINES_MAX {
            let line = next()?;
            if line.is_empty() {
                let pack = rewind(reader).map_err(Error::files(OPERATION, bundle))?;
                return Ok(Self { prerequisites, pack, bytes });
            }
            let (id, prerequisite) = match line.strip_prefix('-') {
                Some(rest) => (rest, true),
                None => (line.as_str(), false),
            };
            let id = id.split(' ').next().unwrap_or_default();
            let id = CommitId::parse(id).map_err(|_| damaged("its header names no commit"))?;
            if prerequisite {
                prerequisites.push(id);
            }
        }
        Err(damaged("its header names too many commits"))
    }
}

/// The file at the position the reader was read to, not where its buffer was filled to.
fn rewind(mut reader: BufReader<File>) -> std::io::Result<File> {
    let position = reader.stream_position()?;
    let mut file = reader.into_inner();
    file.seek(SeekFrom::Start(position))?;
    Ok(file)
}
