//! Compiles `ganger/v1/*.proto` into Rust and into the descriptors that reflection serves.
//!
//! No system `protoc` is needed and nothing generated is committed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=ganger");
    let descriptors = protox::compile(protos(Path::new("ganger/v1"))?, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("ganger.v1.fds"), descriptors.encode_to_vec())?;
    // Ordered maps, so that the same message is always the same bytes; chunks without a copy.
    tonic_prost_build::configure()
        .btree_map(".")
        .bytes(".ganger.v1.ArtifactServiceUploadRequest.data")
        .bytes(".ganger.v1.ArtifactServiceDownloadResponse.data")
        .compile_fds(descriptors)?;
    Ok(())
}

/// Every `.proto` file of the folder, in order.
fn protos(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
