//! A nested `clippy.toml` replaces the one above it, so it has to say again what that one says.
//! What the bans are is not judged here.

use crate::offence::Offence;

const FIX: &str = "repeat the root's lines: a nested file replaces it";

/// Lines of the root's file that a nested one has lost.
pub fn lost(path: &str, nested: &str, root: &str) -> Vec<Offence> {
    let said: Vec<&str> = settings(nested).collect();
    settings(root)
        .filter(|line| !said.contains(line))
        .map(|line| Offence::at(path, 0, format!("lost `{line}`"), FIX))
        .collect()
}

fn settings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_file_says_what_the_root_says_and_may_say_more() {
        let root = "# house\nlimit = 5\nbans = [\n  { path = \"a\" },\n]\n";
        let table = [
            ("limit = 5\nbans = [\n  { path = \"a\" },\n  { path = \"b\" },\n]\n", ""),
            ("limit = 6\nbans = [\n  { path = \"a\" },\n]\n", "lost `limit = 5`"),
            ("limit = 5\nbans = [\n]\n", "lost `{ path = \"a\" },`"),
        ];
        for (nested, expected) in table {
            let found: Vec<String> = lost("core/clippy.toml", nested, root)
                .into_iter()
                .map(|offence| offence.what)
                .collect();
            assert_eq!(found.join(";"), expected, "{nested}");
        }
    }
}
