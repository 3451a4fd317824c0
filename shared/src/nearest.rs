//! The name somebody probably meant.
//!
//! Used for unknown keys, words, units, tasks, agents and workers alike. Not a search.

/// The candidate closest to `name`, if one is close enough to be a slip of the pen.
///
/// Close enough: at most one edit (insertion, deletion, substitution, swap of neighbours) for up to
/// five characters, and at most a third of the longer name beyond that. Ties go to the first.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate)
        })
        .filter(|(edits, candidate)| *edits <= edits_max(name, candidate))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

fn edits_max(name: &str, candidate: &str) -> usize {
    let longer = name.chars().count().max(candidate.chars().count());
    if longer <= 5 { 1 } else { longer / 3 }
}

/// `did you mean `x`?` for the nearest candidate, or an empty text.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!("did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let known = ["agent", "after", "objective", "on_disconnect", "run", "env"];
        for (name, meant) in [
            ("agnet", Some("agent")),
            ("Agent", Some("agent")),
            ("objectve", Some("objective")),
            ("on-disconnect", Some("on_disconnect")),
            ("rum", Some("run")),
            ("x", None),
            ("deploy", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(did_you_mean("agnet", known), "did you mean `agent`?");
        assert_eq!(did_you_mean("zebra", known), "");
    }
}
