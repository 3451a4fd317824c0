//! Names of refs, validated once.
//!
//! Which name is given to what is the caller's business.

use std::fmt;

/// The full name of a ref, beginning with `refs/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

/// A text that is not a name git accepts for a ref.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use {name:?} as the name of a ref: {rule}")]
pub struct InvalidRefName {
    /// The text.
    pub name: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// Long enough for every name given here, short enough for every file system.
const NAME_MAX: usize = 512;

impl RefName {
    /// Reads a full name by the rules of `git check-ref-format`.
    pub fn parse(name: &str) -> Result<Self, InvalidRefName> {
        let refuse = |rule| Err(InvalidRefName { name: name.to_owned(), rule });
        if !name.starts_with("refs/") {
            return refuse("it begins with refs/");
        }
        if name.len() > NAME_MAX {
            return refuse("it has at most 512 bytes");
        }
        if name.bytes().any(|byte| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte)) {
            return refuse("it has no spaces, control characters or any of ~^:?*[\\");
        }
        if name.contains("..") || name.contains("@{") {
            return refuse("it contains neither `..` nor `@{`");
        }
        let broken = |part: &str| {
            let lock = part.as_bytes().ends_with(b".lock");
            part.is_empty() || part.starts_with('.') || part.ends_with('.') || lock
        };
        if name.split('/').any(broken) {
            return refuse("no part of it is empty, begins or ends with `.`, or ends with .lock");
        }
        Ok(Self(name.to_owned()))
    }

    /// The ref of the branch `branch`.
    pub fn branch(branch: &str) -> Result<Self, InvalidRefName> {
        if branch.starts_with('-') {
            let name = branch.to_owned();
            return Err(InvalidRefName { name, rule: "a branch does not begin with `-`" });
        }
        Self::parse(&format!("refs/heads/{branch}"))
    }

    /// The name as git takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch this ref is, if it is one.
    pub fn branch_name(&self) -> Option<&str> {
        self.0.strip_prefix("refs/heads/")
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RefName;

    #[test]
    fn names_that_git_refuses_are_refused() {
        for name in [
            "heads/x",
            "refs/",
            "refs/heads/",
            "refs/a..b",
            "refs/a b",
            "refs/a/.b",
            "refs/a.lock",
            "refs/a.lock/b",
            "refs/a@{1}",
            "refs/a\\b",
            "refs/a//b",
            "refs/a\n",
            "refs/a.",
        ] {
            assert!(RefName::parse(name).is_err(), "{name:?} was taken");
        }
        assert!(RefName::branch("-x").is_err());
    }

    #[test]
    fn names_of_ours_are_taken() {
        let name = RefName::branch("ganger/r-abc").map(|name| name.to_string());
        assert_eq!(name.as_deref(), Ok("refs/heads/ganger/r-abc"));
    }
}
