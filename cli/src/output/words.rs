//! How lengths of time, sizes and digests are put for people.

use ganger_shared::time::{DurationMs, Timestamp};

/// A length of time at a glance: `340ms`, `4.2s`, `3m 12s`, `2h 5m`.
pub fn length(length: DurationMs) -> String {
    let ms = length.0;
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{}h {}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// A number of bytes at a glance.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes >> 30, ((bytes & 0x3fff_ffff) * 10) >> 30),
    }
}

/// The beginning of a hash, enough for people.
pub fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// The text with every commit or tree in it cut short.
pub fn with_short_hashes(text: &str) -> String {
    let hex = |char: char| matches!(char, '0'..='9' | 'a'..='f');
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(hex) {
        let run = rest[start..].find(|char| !hex(char)).unwrap_or(rest.len() - start);
        let (before, from) = rest.split_at(start);
        let (digits, after) = from.split_at(run);
        shown.push_str(before);
        shown.push_str(if matches!(run, 40 | 64) { short(digits) } else { digits });
        rest = after;
    }
    shown + rest
}

/// The time of day, in UTC.
pub fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(11..19).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sizes_are_short() {
        let lengths = [(340, "340ms"), (4_250, "4.2s"), (192_000, "3m 12s"), (7_500_000, "2h 5m")];
        for (ms, expected) in lengths {
            assert_eq!(length(DurationMs(ms)), expected);
        }
        let sizes = [(12, "12 B"), (2_048, "2 KiB"), (5 << 20, "5 MiB"), (3 << 29, "1.5 GiB")];
        for (bytes, expected) in sizes {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn only_whole_hashes_are_cut() {
        let hash = "5974d303a6f28753ce9585a844f96635b57c7923";
        let text = format!("a/1@final:{hash}: pass, deadbeef, {hash}");
        let expected = "a/1@final:5974d303a6f2: pass, deadbeef, 5974d303a6f2";
        assert_eq!(with_short_hashes(&text), expected);
        assert_eq!(with_short_hashes("ünïcode"), "ünïcode");
    }

    #[test]
    fn a_time_of_day_is_cut_from_the_time() {
        assert_eq!(clock(Timestamp::from_unix_ms(1_700_000_000_123)), "22:13:20");
    }
}
