//! The search for circuits against one that tries every way.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Every circuit that begins with its least node, by trying all ways.
fn all_ways(later: &[Vec<usize>]) -> BTreeSet<Vec<usize>> {
    let mut found = BTreeSet::new();
    let mut open: Vec<Vec<usize>> = (0..later.len()).map(|node| vec![node]).collect();
    while let Some(way) = open.pop() {
        let (start, end) = (way[0], way[way.len() - 1]);
        for next in &later[end] {
            if *next == start {
                found.insert(way.clone());
            } else if *next > start && !way.contains(next) {
                open.push([way.as_slice(), &[*next]].concat());
            }
        }
    }
    found
}

fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1..8_usize).prop_flat_map(|nodes| {
        proptest::collection::vec(
            proptest::collection::btree_set(0..nodes, 0..4)
                .prop_map(|later| later.into_iter().collect::<Vec<_>>()),
            nodes,
        )
    })
}

proptest! {
    /// P045: every circuit once, none twice, none invented.
    #[test]
    fn exactly_the_circuits_there_are(later in graph()) {
        let found = circuits(&later, usize::MAX);
        let distinct: BTreeSet<Vec<usize>> = found.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), found.len());
        prop_assert_eq!(distinct, all_ways(&later));
    }

    #[test]
    fn a_bound_keeps_the_first_of_them(later in graph(), max in 0..5_usize) {
        let all = circuits(&later, usize::MAX);
        let some = circuits(&later, max);
        prop_assert_eq!(&all[..max.min(all.len())], &some[..]);
    }
}

#[test]
fn a_ring_of_a_hundred_thousand_is_one_circuit() {
    let nodes = 100_000;
    let later: Vec<Vec<usize>> = (0..nodes).map(|node| vec![(node + 1) % nodes]).collect();
    assert_eq!(circuits(&later, 10), [(0..nodes).collect::<Vec<_>>()]);
}
