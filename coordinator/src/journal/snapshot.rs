//! Snapshots: a stream's folded state at an event, as files that may be lost but never lie.
//!
//! A file is named `<stream>.<seq>.<schema>.<sha256>.snap` and holds the hash of the event it was
//! taken at, a newline and the state. A name that does not fit its content, or an event that is not
//! the stream's, makes it worthless: it is ignored and told of. Not here: what a state is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ganger_shared::digest::Digest;
use thiserror::Error;

use super::StreamName;
use super::files::{remove, write_whole};

/// How many snapshots of a stream are kept: the newest, and one to fall back on.
const KEPT: usize = 2;

/// A stream's state as of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event folded into it.
    pub seq: u64,
    /// The version of its encoding; others are not loaded.
    pub schema: u32,
    /// The state.
    pub bytes: Vec<u8>,
}

/// What loading found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedSnapshot {
    /// The newest good one.
    pub snapshot: Option<Snapshot>,
    /// Newer ones that were of no use.
    pub ignored: Vec<IgnoredSnapshot>,
}

/// A snapshot that was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSnapshot {
    /// Its file.
    pub file: PathBuf,
    /// Why.
    pub why: SnapshotFault,
}

/// Why a snapshot was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotFault {
    /// Its content is not what its name says.
    Damaged,
    /// It was taken at an event this journal does not have.
    OtherHistory,
}

/// Why a snapshot was not saved or loaded.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The event it was taken at is not in the journal.
    #[error("save a snapshot of {stream}: it has no event {seq}")]
    NoEvent {
        /// The stream.
        stream: StreamName,
        /// The event.
        seq: u64,
    },
    /// A file could not be read, written or removed.
    #[error("keep snapshots at {}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A snapshot's file as its name describes it.
struct Named {
    path: PathBuf,
    seq: u64,
    schema: u32,
    sha256: Digest,
}

/// Saves a snapshot taken at the event with this hash and removes those no longer needed.
pub(super) fn save(
    dir: &Path,
    stream: &StreamName,
    snapshot: &Snapshot,
    hash: Digest,
) -> Result<(), SnapshotError> {
    let content = [hash.to_string().as_bytes(), b"\n", &snapshot.bytes].concat();
    let Snapshot { seq, schema, .. } = snapshot;
    let name = format!("{}.{seq}.{schema}.{}.snap", file_stem(stream), Digest::of(&content));
    let path = dir.join(name);
    write_whole(&path, &[&content]).map_err(at(&path))?;
    let mut named = list(dir, stream)?;
    named.retain(|named| named.schema == *schema);
    for old in named.iter().skip(KEPT) {
        remove(&old.path).map_err(at(&old.path))?;
    }
    Ok(())
}

/// Loads the newest snapshot that is whole and belongs to this history.
pub(super) fn load(
    dir: &Path,
    stream: &StreamName,
    schema: u32,
    hash_of: impl Fn(u64) -> Option<Digest>,
) -> Result<LoadedSnapshot, SnapshotError> {
    let mut loaded = LoadedSnapshot::default();
    for named in list(dir, stream)?.into_iter().filter(|named| named.schema == schema) {
        let content = fs::read(&named.path).map_err(at(&named.path))?;
        match check(&named, content, &hash_of) {
            Ok(snapshot) => {
                loaded.snapshot = Some(snapshot);
                break;
            }
            Err(why) => loaded.ignored.push(IgnoredSnapshot { file: named.path, why }),
        }
    }
    Ok(loaded)
}

fn check(
    named: &Named,
    mut content: Vec<u8>,
    hash_of: impl Fn(u64) -> Option<Digest>,
) -> Result<Snapshot, SnapshotFault> {
    if Digest::of(&content) != named.sha256 || content.len() < 65 {
        return Err(SnapshotFault::Damaged);
    }
    let bytes = content.split_off(65);
    let hash = std::str::from_utf8(&content[..64]).ok().and_then(|hash| hash.parse().ok());
    match (hash, hash_of(named.seq)) {
        (Some(taken_at), Some(stored)) if taken_at == stored => {
            Ok(Snapshot { seq: named.seq, schema: named.schema, bytes })
        }
        (None, _) => Err(SnapshotFault::Damaged),
        (Some::<Digest>(_), _) => Err(SnapshotFault::OtherHistory),
    }
}

/// A stream's snapshots, the newest first.
fn list(dir: &Path, stream: &StreamName) -> Result<Vec<Named>, SnapshotError> {
    let prefix = format!("{}.", file_stem(stream));
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(named) = name.and_then(|name| parse(name.strip_prefix(&prefix)?, &path)) {
            found.push(named);
        }
    }
    found.sort_by(|a, b| b.seq.cmp(&a.seq).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

fn parse(rest: &str, path: &Path) -> Option<Named> {
    let mut parts = rest.strip_suffix(".snap")?.split('.');
    let seq = parts.next()?.parse().ok()?;
    let schema = parts.next()?.parse().ok()?;
    let sha256 = parts.next()?.parse().ok()?;
    parts.next().is_none().then(|| Named { path: path.to_owned(), seq, schema, sha256 })
}

/// A stream's name as a file name: no stream holds a `+`.
fn file_stem(stream: &StreamName) -> String {
    stream.as_str().replace('/', "+")
}

fn at(path: &Path) -> impl Fn(io::Error) -> SnapshotError + use<> {
    let path = path.to_owned();
    move |source| SnapshotError::Io { path: path.clone(), source }
}
