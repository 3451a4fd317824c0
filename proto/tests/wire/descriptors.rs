//! The descriptors of our own package, decoded.

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

/// Every file of `ganger.v1`.
pub fn files() -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode(ganger_proto::FILE_DESCRIPTOR_SET)
        .unwrap()
        .file
        .into_iter()
        .filter(|file| file.package() == "ganger.v1")
        .collect()
}
