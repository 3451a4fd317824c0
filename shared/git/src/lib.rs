//! The only caller of git in the product.
//!
//! Three things are done with git here, one type each: [`Mirror`] is the bare repository that the
//! coordinator and the workers keep, [`Source`] is the user's own repository as the client reads
//! it, [`Checkout`] is one attempt's (or one check's) private tree. All of them run the git command
//! line through one door (`command`) with forced options, a forced environment, a deadline and a
//! bound on what is read.
//!
//! Deliberately not here: which branch moves when, what a delivery is, who may write what. Nothing
//! here talks to a network: history travels as bundle files that others carry.

mod bundle;
mod checkout;
mod command;
mod diff;
mod error;
mod lock;
mod mirror;
mod name;
mod program;
mod source;

pub use bundle::{BundleError, Bundled};
pub use checkout::{
    Checkout, Delivered, OutsideLink, OwnGit, PrepareError, RescueError, Rescued, Residue,
    Restored, Snapshot, SnapshotError, Stamp, enclosing_repository,
};
pub use diff::{ChangeKind, ChangedPath, FileMode, Patch};
pub use error::Error;
pub use mirror::{CommitRequest, Merged, Mirror, RefError, Treeish};
pub use name::{InvalidRefName, RefName};
pub use program::{FindError, Git, GitVersion, Limits, VERSION_MIN};
pub use source::{
    BranchError, BranchFetched, DiscoverError, Hazard, ResolveError, SeedError, Source,
};
