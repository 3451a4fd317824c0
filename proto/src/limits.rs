//! How large a message may be; everything larger is an artifact.
//!
//! Each number lies above our own limit for what the message carries, so that the error a user sees
//! is ours, with the limit and the field in it, and not the transport's.

use ganger_shared::limits;

/// The largest message of the public API: the largest plan an operator may allow, and room for the
/// rest of the request.
#[expect(clippy::cast_possible_truncation, reason = "64 MiB fits every usize we build for")]
pub const MESSAGE_BYTES: usize = limits::PLAN_BYTES_CAP as usize + (16 << 20);

/// The largest message of a worker's control stream.
///
/// A report carries one delivery, which fits one event of 32 KiB; a `Hello` names all the work a
/// worker holds.
pub const LINK_MESSAGE_BYTES: usize = 4 << 20;

/// The largest message of `ArtifactService`: one chunk and its frame.
pub const CHUNK_MESSAGE_BYTES: usize = limits::CHUNK_BYTES + (4 << 10);

/// The most bytes of details a status carries.
///
/// Details travel base64 in the trailers, and clients refuse header lists above 16 KiB by default: a
/// larger status would reach the user as a broken stream.
pub const DETAILS_BYTES: usize = 8 << 10;

/// The longest message of a status, percent-encoded in the trailers.
pub const STATUS_MESSAGE_BYTES: usize = 512;
