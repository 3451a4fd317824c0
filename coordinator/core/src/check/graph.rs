//! The order of a plan as a graph: what must come before what, and why.
//!
//! A task is two nodes, its opening and its closing: every unit of it lies between them, so that
//! the order of tasks costs one edge and not one for each pair of units. An edge leads from what
//! comes first to what comes later.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::ids::{TaskId, UnitId};
use ganger_shared::plan::{PlanFile, Task, Unit, path};

/// Nodes as numbers: the units in the order of the plan, then openings, then closings.
pub(super) struct Graph<'a> {
    units: &'a [Unit],
    tasks: &'a [Task],
    /// What comes directly after each node, without repetition, in rising order.
    pub later: Vec<Vec<usize>>,
    /// The key of the plan that says so, by (earlier, later).
    reasons: BTreeMap<(usize, usize), String>,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node<'a> {
    /// A unit.
    Unit(&'a UnitId),
    /// The beginning or end of a task.
    Task(&'a TaskId),
}

impl<'a> Graph<'a> {
    /// The order of units; that of tasks counts too unless it is a circle of its own.
    pub(super) fn new(plan: &'a PlanFile, with_tasks: bool) -> Self {
        let tasks: &[Task] = if with_tasks { &plan.tasks } else { &[] };
        let nodes = plan.units.len() + 2 * tasks.len();
        let mut graph = Self {
            units: &plan.units,
            tasks,
            later: vec![Vec::new(); nodes],
            reasons: BTreeMap::new(),
        };
        graph.order_units();
        graph.order_tasks();
        graph.sorted()
    }

    /// The order of tasks alone: one node for each.
    pub(super) fn of_tasks(tasks: &'a [Task]) -> Self {
        let mut graph = Self {
            units: &[],
            tasks,
            later: vec![Vec::new(); tasks.len()],
            reasons: BTreeMap::new(),
        };
        let by_id: BTreeMap<_, _> = numbered(tasks.iter().map(|task| &task.id));
        for (later, task) in tasks.iter().enumerate() {
            for (nth, id) in task.after.iter().enumerate() {
                if let Some(earlier) = by_id.get(id) {
                    graph.edge(*earlier, later, after_of_task(later, nth));
                }
            }
        }
        graph.sorted()
    }

    /// What a node is.
    pub(super) fn node(&self, number: usize) -> Node<'a> {
        match number.checked_sub(self.units.len()) {
            None => Node::Unit(&self.units[number].id),
            Some(rest) => Node::Task(&self.tasks[rest % self.tasks.len()].id),
        }
    }

    /// The place in the plan that puts one before the other.
    pub(super) fn reason(&self, earlier: usize, later: usize) -> String {
        self.reasons.get(&(earlier, later)).cloned().unwrap_or_default()
    }

    fn order_units(&mut self) {
        let units = self.units;
        let by_id = numbered(units.iter().map(|unit| &unit.id));
        for (later, unit) in units.iter().enumerate() {
            let after = unit.after.iter().enumerate();
            let after =
                after.map(|(nth, id)| (id, path::item(&path::unit_key(later, "after"), nth)));
            let of = unit.of.iter().map(|id| (id, path::unit_key(later, "of")));
            let inputs = unit.inputs.iter().enumerate().map(|(nth, input)| {
                let at = path::item(&path::unit_key(later, "inputs"), nth);
                (&input.from.unit, path::key(&at, "from"))
            });
            let join = unit
                .join
                .iter()
                .map(|join| (&join.of, path::key(&path::unit_key(later, "join"), "of")));
            for (id, reason) in after.chain(of).chain(inputs).chain(join) {
                if let Some(earlier) = by_id.get(id) {
                    self.edge(*earlier, later, reason);
                }
            }
        }
    }

    fn order_tasks(&mut self) {
        let (units, tasks) = (self.units, self.tasks);
        let by_id = numbered(tasks.iter().map(|task| &task.id));
        let opening = |task: usize| units.len() + task;
        let closing = |task: usize| units.len() + tasks.len() + task;
        let mut empty: BTreeSet<usize> = (0..tasks.len()).collect();
        for (number, unit) in units.iter().enumerate() {
            if let Some(task) = unit.task.as_ref().and_then(|task| by_id.get(task)) {
                empty.remove(task);
                self.edge(opening(*task), number, path::unit_key(number, "task"));
                self.edge(number, closing(*task), path::unit_key(number, "task"));
            }
        }
        for (later, task) in tasks.iter().enumerate() {
            for (nth, id) in task.after.iter().enumerate() {
                if let Some(earlier) = by_id.get(id) {
                    self.edge(closing(*earlier), opening(later), after_of_task(later, nth));
                }
            }
        }
        for task in empty {
            self.edge(opening(task), closing(task), path::item("tasks", task));
        }
    }

    fn edge(&mut self, earlier: usize, later: usize, reason: String) {
        self.later[earlier].push(later);
        self.reasons.entry((earlier, later)).or_insert(reason);
    }

    fn sorted(mut self) -> Self {
        for later in &mut self.later {
            later.sort_unstable();
            later.dedup();
        }
        self
    }
}

/// The first of a name counts; that it is there twice is another rule's word.
fn numbered<'a, T: Ord>(ids: impl Iterator<Item = &'a T>) -> BTreeMap<&'a T, usize> {
    let mut numbers = BTreeMap::new();
    for (number, id) in ids.enumerate() {
        numbers.entry(id).or_insert(number);
    }
    numbers
}

fn after_of_task(task: usize, nth: usize) -> String {
    path::item(&path::key(&path::item("tasks", task), "after"), nth)
}
