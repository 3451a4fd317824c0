//! Every way around in a directed graph, each once, up to a number of them.
//!
//! Johnson's algorithm (1975): from the least node of a strongly connected part, all ways that
//! come back to it, then the same without that node. The wait for the next one is linear in the
//! graph, so a bound on their number bounds the time. No recursion: a plan may be a chain as long
//! as it is large.

use std::collections::BTreeSet;

/// At most `max` elementary circuits, each beginning with its least node, in a fixed order.
pub(super) fn circuits(later: &[Vec<usize>], max: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut least = 0;
    while found.len() < max {
        let parts = Parts::new(later, least);
        let Some(start) = (least..later.len()).find(|node| parts.leads_back(later, *node)) else {
            break;
        };
        Search::new(later, &parts, start).run(max, &mut found);
        least = start + 1;
    }
    found
}

/// The strongly connected parts of the nodes from `least` on (Tarjan 1972).
struct Parts {
    /// The part of each node; nothing for nodes that are left out.
    of: Vec<Option<usize>>,
    /// How many nodes each part has.
    sizes: Vec<usize>,
}

impl Parts {
    fn new(later: &[Vec<usize>], least: usize) -> Self {
        let mut parts = Self { of: vec![None; later.len()], sizes: Vec::new() };
        let mut index = vec![usize::MAX; later.len()];
        let mut low = vec![0; later.len()];
        let mut count = 0;
        let mut open: Vec<usize> = Vec::new();
        for root in least..later.len() {
            let mut frames = if index[root] == usize::MAX { vec![(root, 0)] } else { Vec::new() };
            while let Some((node, next)) = frames.last_mut() {
                let node = *node;
                if *next == 0 {
                    (index[node], low[node]) = (count, count);
                    count += 1;
                    open.push(node);
                }
                let child = later[node].get(*next).copied();
                *next += 1;
                match child {
                    Some(child) if child < least || parts.of[child].is_some() => {}
                    Some(child) if index[child] == usize::MAX => frames.push((child, 0)),
                    Some(child) => low[node] = low[node].min(index[child]),
                    None => {
                        frames.pop();
                        if let Some((parent, _)) = frames.last() {
                            low[*parent] = low[*parent].min(low[node]);
                        }
                        if low[node] == index[node] {
                            parts.close(node, &mut open);
                        }
                    }
                }
            }
        }
        parts
    }

    fn close(&mut self, root: usize, open: &mut Vec<usize>) {
        let part = self.sizes.len();
        let from = open.iter().rposition(|node| *node == root).expect("a root is open until here");
        let nodes = open.split_off(from);
        self.sizes.push(nodes.len());
        for node in nodes {
            self.of[node] = Some(part);
        }
    }

    fn leads_back(&self, later: &[Vec<usize>], node: usize) -> bool {
        self.of[node].is_some_and(|part| self.sizes[part] > 1) || later[node].contains(&node)
    }
}

/// All circuits through one node.
struct Search<'a> {
    later: &'a [Vec<usize>],
    parts: &'a Parts,
    start: usize,
    blocked: Vec<bool>,
    /// Nodes to unblock when this one is.
    waiting: Vec<BTreeSet<usize>>,
}

/// A node of the way so far.
struct Step {
    node: usize,
    next: usize,
    came_back: bool,
}

impl<'a> Search<'a> {
    fn new(later: &'a [Vec<usize>], parts: &'a Parts, start: usize) -> Self {
        let nodes = later.len();
        Self {
            later,
            parts,
            start,
            blocked: vec![false; nodes],
            waiting: vec![BTreeSet::new(); nodes],
        }
    }

    fn run(&mut self, max: usize, found: &mut Vec<Vec<usize>>) {
        let mut way = vec![self.step(self.start)];
        while let Some(step) = way.last_mut() {
            let Some(next) = self.later[step.node].get(step.next).copied() else {
                self.leave(&mut way);
                continue;
            };
            step.next += 1;
            if next == self.start {
                step.came_back = true;
                found.push(way.iter().map(|step| step.node).collect());
                if found.len() == max {
                    return;
                }
            } else if self.inside(next) && !self.blocked[next] {
                let step = self.step(next);
                way.push(step);
            }
        }
    }

    fn step(&mut self, node: usize) -> Step {
        self.blocked[node] = true;
        Step { node, next: 0, came_back: false }
    }

    fn leave(&mut self, way: &mut Vec<Step>) {
        let Some(Step { node, came_back, .. }) = way.pop() else { return };
        if came_back {
            self.unblock(node);
            if let Some(before) = way.last_mut() {
                before.came_back = true;
            }
            return;
        }
        for next in &self.later[node] {
            if self.inside(*next) {
                self.waiting[*next].insert(node);
            }
        }
    }

    fn unblock(&mut self, node: usize) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            if std::mem::take(&mut self.blocked[node]) {
                nodes.extend(std::mem::take(&mut self.waiting[node]));
            }
        }
    }

    fn inside(&self, node: usize) -> bool {
        self.parts.of[node].is_some() && self.parts.of[node] == self.parts.of[self.start]
    }
}

#[cfg(test)]
mod tests;
