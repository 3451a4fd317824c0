//! One try to fetch an artifact: go on where the part file ends, verify the whole, then name it.
//!
//! Not here: how often it is tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ganger_proto::v1;
use ganger_shared::digest::ArtifactRef;
use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt;

use super::{Bulk, BulkError, Failure, sorted, upload};

pub(super) async fn once(bulk: &Bulk, artifact: &ArtifactRef, to: &Path) -> Result<(), Failure> {
    let part = part_of(to);
    let failed = |source| Failure::Final(BulkError::File { path: part.clone(), source });
    let mut file =
        OpenOptions::new().create(true).append(true).open(&part).await.map_err(failed)?;
    let mut have = file.metadata().await.map_err(failed)?.len();
    if have > artifact.bytes {
        file.set_len(0).await.map_err(failed)?;
        have = 0;
    }
    if have < artifact.bytes {
        receive(bulk, artifact, have, &mut file).await?;
    }
    file.sync_all().await.map_err(failed)?;
    let found = upload::name(&part).await?;
    if found.sha256 != artifact.sha256 {
        // What is damaged is not built upon: another download begins from nothing.
        fs::remove_file(&part).await.map_err(failed)?;
        let (wanted, found) = (artifact.sha256, found.sha256);
        return Err(Failure::Final(BulkError::Damaged { wanted, found }));
    }
    fs::rename(&part, to).await.map_err(failed)
}

async fn receive(
    bulk: &Bulk,
    artifact: &ArtifactRef,
    mut have: u64,
    file: &mut File,
) -> Result<(), Failure> {
    let what = artifact.sha256.to_string();
    let nonsense =
        |answer: String| Failure::Final(BulkError::Nonsense { what: what.clone(), answer });
    let mut store = bulk.clients()?.artifacts();
    let ask = v1::ArtifactServiceDownloadRequest { sha256: what.clone(), offset: have, length: 0 };
    let answer = store.download(ask).await.map_err(|status| sorted(&what, &status))?;
    let mut chunks = answer.into_inner();
    while let Some(chunk) = chunks.message().await.map_err(|status| sorted(&what, &status))? {
        if chunk.offset != have {
            return Err(nonsense(format!("a chunk at {} after {have} bytes", chunk.offset)));
        }
        have += chunk.data.len() as u64;
        if have > artifact.bytes {
            return Err(nonsense(format!("more than its {} bytes", artifact.bytes)));
        }
        file.write_all(&chunk.data).await.map_err(|source| {
            Failure::Final(BulkError::File { path: PathBuf::from(&what), source })
        })?;
    }
    file.flush()
        .await
        .map_err(|source| Failure::Final(BulkError::File { path: PathBuf::from(&what), source }))?;
    if have < artifact.bytes {
        return Err(Failure::Again(format!("only {have} of {} bytes came", artifact.bytes)));
    }
    Ok(())
}

/// The name of what is not yet whole.
fn part_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(".part");
    to.with_file_name(name)
}
