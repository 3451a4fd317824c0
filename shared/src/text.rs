//! Cutting text to a bound without splitting a character (P105).

/// `text`, cut to at most `max` bytes at a character boundary, with `…` where something is missing.
pub fn cut_bytes(mut text: String, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text;
    }
    let mut end = max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(MARK);
    text
}

/// The last `chars` characters of the last `lines` lines of `text`.
pub fn tail(text: &str, lines: usize, chars: usize) -> String {
    let text = text.trim_end_matches('\n');
    let start = text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    let part = &text[start..];
    let skip = part.chars().count().saturating_sub(chars);
    part.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc\nd\n", 2, 100), "c\nd");
        assert_eq!(tail("a", 5, 100), "a");
        assert_eq!(tail("", 5, 100), "");
        assert_eq!(tail("x\néé🙂", 1, 2), "é🙂");
    }

    proptest! {
        /// P105: no cut splits a character or panics, wherever it falls.
        #[test]
        fn no_cut_splits_a_character(text in ".{0,40}", max in 3_usize..60) {
            let cut = cut_bytes(text.clone(), max);
            prop_assert!(cut.len() <= max);
            prop_assert!(cut == text || cut.ends_with('…'));
        }
    }
}
