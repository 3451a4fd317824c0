//! The files of this tree as the rules see them. Reads the disk and judges nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Source;

/// The checked-out tree.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Where it is.
    pub root: PathBuf,
    /// Every file, relative to the root, sorted; build output and git's own folder are left out.
    pub files: Vec<String>,
}

impl Tree {
    /// Walks the tree this crate was built from.
    ///
    /// # Panics
    /// When a folder of it cannot be read.
    pub fn here() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("this crate lies two folders below the root")
            .to_path_buf();
        let mut files = Vec::new();
        collect(&root, Path::new(""), &mut files);
        files.sort();
        Self { root, files }
    }

    /// The text of one file, or nothing when there is no such file.
    ///
    /// # Panics
    /// When the file is there and cannot be read as text.
    pub fn text(&self, path: &str) -> Option<String> {
        let full = self.root.join(path);
        full.is_file().then(|| {
            fs::read_to_string(&full).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
        })
    }

    /// Whether a file, or a folder with a file in it, lies at `path`: git keeps no empty folder.
    pub fn holds(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.files.iter().any(|file| file == path || file.starts_with(&below))
    }

    /// The files with one of these endings, with their texts.
    pub fn with_ending(&self, endings: &[&str]) -> Vec<(String, String)> {
        self.files
            .iter()
            .filter(|path| endings.iter().any(|ending| path.ends_with(ending)))
            .filter_map(|path| Some((path.clone(), self.text(path)?)))
            .collect()
    }

    /// Every Rust file, split into code and comments.
    pub fn sources(&self) -> Vec<Source> {
        self.with_ending(&[".rs"]).iter().map(|(path, text)| Source::split(path, text)).collect()
    }
}

fn collect(root: &Path, below: &Path, files: &mut Vec<String>) {
    let folder = root.join(below);
    let entries = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    for entry in entries {
        let entry =
            entry.unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        let name = entry.file_name();
        let path = below.join(&name);
        let kind = entry.file_type().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if kind.is_dir() && !is_left_out(&name.to_string_lossy()) {
            collect(root, &path, files);
        } else if kind.is_file() {
            files.push(path.to_string_lossy().into_owned());
        }
    }
}

/// Build output, git's own folder and the hidden folders of tools are not the tree.
fn is_left_out(name: &str) -> bool {
    name == "target" || name == "node_modules" || (name.starts_with('.') && name != ".ci")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_holds_its_manifest_and_no_build_output() {
        let tree = Tree::here();
        assert!(tree.files.iter().any(|path| path == "Cargo.toml"));
        assert!(tree.files.iter().any(|path| path == "tests/tidy/src/tree.rs"));
        assert!(!tree.files.iter().any(|path| path.starts_with("target/")));
        assert!(!tree.files.iter().any(|path| path.starts_with(".git/")));
    }
}
