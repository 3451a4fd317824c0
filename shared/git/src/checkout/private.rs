//! The repository of its own that an attempt gets.
//!
//! It holds a copy of the history its base reaches, and nothing of what other attempts made. The
//! copy is a pack that the mirror keeps ready for a few bases; a later base is that pack and a small
//! one more. Past `Limits::history_max` the copy is shallow. All files are written by us: no git of
//! ours ever opens this repository.

use std::fs;
use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use super::layout::{make_git_dir, write};
use crate::command::{Call, Place};
use crate::error::Error;
use crate::mirror::{Mirror, is_ancestor};

const OPERATION: &str = "give the tree its own repository";
const HEAD: &str = "ref: refs/heads/attempt\n";
const BRANCH: &str = "refs/heads/attempt";
/// Its presence says that the repository is still the one we made.
const MARK: &str = "ganger-attempt";
/// How many bases the mirror keeps a pack for.
const PACKS_MAX: usize = 4;
/// How often a pack is looked for again that was cleaned away while it was copied.
const COPIES_MAX: usize = 3;

/// The attempt may commit without setting anything up first.
const CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = attempt
\temail = attempt@localhost
";

/// A pack of everything a base reaches.
struct BasePack {
    dir: PathBuf,
    base: CommitId,
}

impl BasePack {
    /// Whether it begins at its base instead of at the beginning.
    fn is_shallow(&self) -> bool {
        self.dir.join("shallow").is_file()
    }
}

/// Makes `tree/.git` with `base` as its only branch; the index is the caller's to add.
pub(super) async fn make(
    mirror: &Mirror,
    host: &Place,
    tree: &Path,
    base: &CommitId,
) -> Result<(), Error> {
    let git_dir = tree.join(".git");
    make_git_dir(&git_dir, HEAD, CONFIG)?;
    let packs = git_dir.join("objects/pack");
    let pack = copy_base_pack(mirror, &packs, base).await?;
    if pack.is_shallow() {
        write(&git_dir.join("shallow"), format!("{}\n", pack.base).as_bytes())?;
    }
    if pack.base != *base {
        pack_between(mirror, host, &packs, (&pack.base, base)).await?;
    }
    write(&git_dir.join(BRANCH), format!("{base}\n").as_bytes())?;
    write(&git_dir.join(MARK), b"made by ganger\n")
}

/// Moves an unused repository from one base to another.
pub(super) async fn advance(
    mirror: &Mirror,
    host: &Place,
    tree: &Path,
    (from, to): (&CommitId, &CommitId),
) -> Result<(), Error> {
    let git_dir = tree.join(".git");
    pack_between(mirror, host, &git_dir.join("objects/pack"), (from, to)).await?;
    write(&git_dir.join(BRANCH), format!("{to}\n").as_bytes())
}

/// Whether nobody has worked with the repository since it was made for `base`.
pub(super) fn is_unused(tree: &Path, base: &CommitId) -> bool {
    let git_dir = tree.join(".git");
    let real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let is = |path: PathBuf, text: &str| fs::read_to_string(path).is_ok_and(|found| found == text);
    real(tree)
        && is_ours(tree)
        && real(&git_dir.join("objects/pack"))
        && is(git_dir.join("HEAD"), HEAD)
        && is(git_dir.join(BRANCH), &format!("{base}\n"))
        && !git_dir.join("logs").exists()
}

/// Whether the repository is still the one we made, and not another in its place.
pub(super) fn is_ours(tree: &Path) -> bool {
    let git_dir = tree.join(".git");
    fs::symlink_metadata(&git_dir).is_ok_and(|about| about.is_dir()) && git_dir.join(MARK).is_file()
}

/// Packs what `to` reaches and `from` does not, complete in itself, into the directory `packs`.
async fn pack_between(
    mirror: &Mirror,
    host: &Place,
    packs: &Path,
    (from, to): (&CommitId, &CommitId),
) -> Result<(), Error> {
    pack(mirror, host, &packs.join("pack"), format!("{to}\n^{from}\n")).await
}

async fn pack(mirror: &Mirror, place: &Place, name: &Path, wanted: String) -> Result<(), Error> {
    let call = Call::new(&mirror.git, OPERATION, place)
        .args(["pack-objects", "--revs", "--delta-base-offset", "-q"])
        .args([name]);
    call.input(wanted).bulk().run().await?;
    Ok(())
}

async fn copy_base_pack(mirror: &Mirror, into: &Path, base: &CommitId) -> Result<BasePack, Error> {
    let mut tried = 0;
    loop {
        let pack = base_pack(mirror, base).await?;
        let (from, to) = (pack.dir.clone(), into.to_owned());
        let copied = tokio::task::spawn_blocking(move || copy_packs(&from, &to)).await;
        match copied.expect("copying files does not panic") {
            Ok(()) => return Ok(pack),
            // Cleaned away by somebody who made room for another base.
            Err(_) if tried < COPIES_MAX && !pack.dir.exists() => tried += 1,
            Err(source) => return Err(Error::files(OPERATION, &pack.dir)(source)),
        }
    }
}

fn copy_packs(from: &Path, into: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"pack-") {
            fs::copy(entry.path(), into.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The pack of the base, or of a commit before it, made now if there is none.
async fn base_pack(mirror: &Mirror, base: &CommitId) -> Result<BasePack, Error> {
    let root = mirror.path().join("ganger-packs");
    if let Some(pack) = kept_pack(mirror, &root, base).await? {
        return Ok(pack);
    }
    let _held = mirror.lock(OPERATION).await?;
    if let Some(pack) = kept_pack(mirror, &root, base).await? {
        return Ok(pack);
    }
    make_room(&root)?;
    let partial = root.join("partial");
    let _nothing_left = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(Error::files(OPERATION, &partial))?;
    let mut wanted = format!("{base}\n");
    if history_bytes(mirror)? > mirror.git.limits().history_max {
        write(&partial.join("shallow"), b"\n")?;
        wanted = format!("--shallow {base}\n{wanted}");
    }
    pack(mirror, &mirror.place, &partial.join("pack"), wanted).await?;
    let dir = root.join(base.as_str());
    fs::rename(&partial, &dir).map_err(Error::files(OPERATION, &dir))?;
    Ok(BasePack { dir, base: base.clone() })
}

async fn kept_pack(
    mirror: &Mirror,
    root: &Path,
    base: &CommitId,
) -> Result<Option<BasePack>, Error> {
    let dir = root.join(base.as_str());
    if dir.is_dir() {
        return Ok(Some(BasePack { dir, base: base.clone() }));
    }
    for (dir, kept) in kept(root)? {
        if is_ancestor(&mirror.git, &mirror.place, &kept, base).await? {
            return Ok(Some(BasePack { dir, base: kept }));
        }
    }
    Ok(None)
}

/// The kept packs, the newest first.
fn kept(root: &Path) -> Result<Vec<(PathBuf, CommitId)>, Error> {
    let Ok(entries) = fs::read_dir(root) else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::files(OPERATION, root))?;
        let Ok(base) = CommitId::parse(&entry.file_name().to_string_lossy()) else { continue };
        let made = entry.metadata().and_then(|about| about.modified());
        kept.push((made.map_err(Error::files(OPERATION, root))?, entry.path(), base));
    }
    kept.sort_by_key(|(made, _, _)| std::cmp::Reverse(*made));
    Ok(kept.into_iter().map(|(_, dir, base)| (dir, base)).collect())
}

fn make_room(root: &Path) -> Result<(), Error> {
    for (dir, _) in kept(root)?.into_iter().skip(PACKS_MAX - 1) {
        fs::remove_dir_all(&dir).map_err(Error::files(OPERATION, &dir))?;
    }
    Ok(())
}

fn history_bytes(mirror: &Mirror) -> Result<u64, Error> {
    let packs = mirror.objects().join("pack");
    let failed = |source| Error::files(OPERATION, &packs)(source);
    let mut bytes = 0;
    for entry in fs::read_dir(&packs).map_err(failed)? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
    }
    Ok(bytes)
}
