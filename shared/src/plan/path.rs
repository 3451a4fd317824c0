//! How a place in a plan is written: `units[2].checks[0].run`.
//!
//! The reader and every later checker build paths here, so that they name the same place alike.

/// The path of a key below `parent`; the empty path is the whole file.
pub fn key(parent: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key.len() <= 64
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    match (plain, parent.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{parent}.{key}"),
        (false, _) => format!("{parent}[\"{}\"]", super::walk::shown(key)),
    }
}

/// The path of an item below `parent`, counted from 0.
pub fn item(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// The path of a unit.
pub fn unit(index: usize) -> String {
    item("units", index)
}

/// The path of a key of a unit.
pub fn unit_key(index: usize, name: &str) -> String {
    key(&unit(index), name)
}

/// Whether `path` is `ancestor` or lies below it.
pub fn within(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| {
        ancestor.is_empty() || rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
    })
}

/// The path one step up, or nothing for the whole file.
pub fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    let quoted = path.ends_with("\"]").then(|| path.rfind("[\"")).flatten();
    let end = quoted.or_else(|| path.rfind(['.', '['])).unwrap_or(0);
    Some(&path[..end])
}
