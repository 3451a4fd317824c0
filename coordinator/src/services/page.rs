//! Lists a page at a time, all pages of one list as it was when it was begun.
//!
//! What does not fit onto the first page is kept here until it was read, in memory and bounded: the
//! oldest list makes room, and a token of it, or of an earlier start, is refused by name.

use std::collections::VecDeque;
use std::sync::Arc;

use ganger_proto::{Malformed, Reason, status};
use ganger_shared::limits;
use tokio::sync::watch;
use tonic::{Code, Status};
use uuid::Uuid;

/// Rows of a page whose size is not said.
const PAGE_DEFAULT: usize = 100;
/// Lists kept at once.
const LISTS: usize = 32;
/// Rows kept at once, over all lists but the newest.
const ROWS: usize = 200_000;

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page begins; empty after the last.
    pub next: String,
    /// The place in the journal that the list shows.
    pub sequence: u64,
}

/// A list under way.
struct Held<T> {
    id: String,
    rows: Arc<Vec<T>>,
    sequence: u64,
}

/// The lists under way of one service.
///
/// The channel is used as a cell: readers take an `Arc` out of it, one closure at a time changes it.
pub(super) struct Pages<T> {
    held: watch::Sender<VecDeque<Held<T>>>,
}

impl<T: Clone> Pages<T> {
    /// No lists.
    pub fn new() -> Self {
        Self { held: watch::channel(VecDeque::new()).0 }
    }

    /// The first page of a list of these rows.
    pub fn first(&self, size: usize, rows: Vec<T>, sequence: u64) -> Page<T> {
        if rows.len() <= size {
            return Page { rows, next: String::new(), sequence };
        }
        let id = Uuid::now_v7().simple().to_string();
        let list = Held { id, rows: Arc::new(rows), sequence };
        let page = cut(&list, 0, size);
        self.held.send_modify(|held| {
            held.push_back(list);
            let mut rows: usize = held.iter().map(|list| list.rows.len()).sum();
            while held.len() > LISTS || (held.len() > 1 && rows > ROWS) {
                rows -= held.pop_front().map_or(0, |list| list.rows.len());
            }
        });
        page
    }

    /// The page a token names.
    pub fn next(&self, size: usize, token: &str) -> Result<Page<T>, Status> {
        let unknown = || {
            let form = "it names no page of a list under way; begin the list again";
            Status::from(Malformed::new("page_token", Reason::Form(form.to_owned())))
        };
        let (id, from) = token.split_once('.').ok_or_else(unknown)?;
        let from: usize = from.parse().map_err(|_| unknown())?;
        let held = self.held.borrow();
        let list = held.iter().find(|list| list.id == id).ok_or_else(expired)?;
        if from > list.rows.len() {
            return Err(unknown());
        }
        Ok(cut(list, from, size))
    }
}

fn expired() -> Status {
    let message = "the list is not kept any more; begin it again without a page token";
    status::plain(Code::InvalidArgument, "page_token_expired", message)
}

fn cut<T: Clone>(list: &Held<T>, from: usize, size: usize) -> Page<T> {
    let to = from.saturating_add(size).min(list.rows.len());
    let next = if to < list.rows.len() { format!("{}.{to}", list.id) } else { String::new() };
    Page { rows: list.rows[from..to].to_vec(), next, sequence: list.sequence }
}

/// The rows of a page, as asked for.
pub(super) fn size(asked: u32) -> Result<usize, Malformed> {
    let size = usize::try_from(asked).unwrap_or(usize::MAX);
    if size > limits::PAGE {
        let form = format!("{asked} rows, and {} are the most of one page", limits::PAGE);
        return Err(Malformed::new("page_size", Reason::Form(form)));
    }
    Ok(if size == 0 { PAGE_DEFAULT } else { size })
}

/// The key to sort by, and whether downwards; nothing where nothing was asked.
pub(super) fn order<'a>(
    asked: &'a str,
    keys: &'static [&'static str],
) -> Result<Option<(&'a str, bool)>, Malformed> {
    if asked.is_empty() {
        return Ok(None);
    }
    let (key, down) = match asked.strip_suffix(" desc") {
        Some(key) => (key, true),
        None => (asked.strip_suffix(" asc").unwrap_or(asked), false),
    };
    if keys.contains(&key) {
        return Ok(Some((key, down)));
    }
    let form = format!("`{asked}` is not an order: {}, with ` desc` after it", keys.join(" or "));
    Err(Malformed::new("order_by", Reason::Form(form)))
}

/// Refuses a word of a filter that no row can have, so that a slip does not look like an empty list.
pub(super) fn known_words(field: &str, asked: &[String], known: &[&str]) -> Result<(), Malformed> {
    match asked.iter().find(|word| !known.contains(&word.as_str())) {
        None => Ok(()),
        Some(word) => {
            let form = format!("`{word}` is none of {}", known.join(", "));
            Err(Malformed::new(field, Reason::Form(form)))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a page that is not there is the failed test")]
    use super::*;

    #[test]
    fn pages_cover_the_list_once_as_it_was_when_it_was_begun() {
        let pages = Pages::new();
        let mut page = pages.first(3, (0..8).collect::<Vec<u32>>(), 7);
        let mut seen = page.rows.clone();
        while !page.next.is_empty() {
            // Another list under way does not disturb this one.
            pages.first(1, vec![90, 91], 8);
            page = pages.next(3, &page.next).unwrap();
            assert_eq!(page.sequence, 7);
            seen.extend(page.rows.clone());
        }
        assert_eq!(seen, (0..8).collect::<Vec<u32>>());
    }

    #[test]
    fn the_oldest_list_makes_room_and_its_token_is_refused_by_name() {
        let pages = Pages::new();
        let first = pages.first(1, vec![1, 2], 1);
        for _ in 0..LISTS {
            pages.first(1, vec![1, 2], 1);
        }
        let refused = pages.next(1, &first.next).unwrap_err();
        assert_eq!(refused.message(), expired().message());
        assert!(pages.next(1, "nonsense").is_err());
    }

    #[test]
    fn sizes_and_orders_outside_the_bounds_are_refused() {
        assert_eq!(size(0), Ok(PAGE_DEFAULT));
        assert_eq!(size(500), Ok(500));
        assert!(size(501).is_err());
        assert_eq!(order("name desc", &["name"]), Ok(Some(("name", true))));
        assert_eq!(order("", &["name"]), Ok(None));
        assert!(order("size", &["name"]).is_err());
        assert!(known_words("states", &["actve".to_owned()], &["active"]).is_err());
    }
}
