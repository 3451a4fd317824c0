//! Rule: nothing waits for itself, neither directly nor through others or their tasks (R002, P045).

use ganger_shared::problem::{Code, Problem};

use super::Draft;
use super::circuits::circuits;
use super::graph::{Graph, Node};

/// The most circles of one plan that are reported.
pub(super) const CYCLES_MAX: usize = 10;

/// The most names of one circle that are shown.
const NAMES_MAX: usize = 64;

/// Every circle with its whole path: `a -> b -> a` where a comes before b, and b before a.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let tasks = Graph::of_tasks(&draft.plan.tasks);
    let mut found = of(&tasks);
    // With a circle of tasks every unit of theirs lies on one, which would say the same many times.
    found.extend(of(&Graph::new(draft.plan, found.is_empty())));
    found
}

fn of(graph: &Graph<'_>) -> Vec<Problem> {
    let mut ways = circuits(&graph.later, CYCLES_MAX + 1);
    let more = ways.len() > CYCLES_MAX;
    ways.truncate(CYCLES_MAX);
    let mut found: Vec<Problem> = ways.iter().map(|way| circle(graph, way)).collect();
    if more {
        let message = format!("more than {CYCLES_MAX} circles; the rest is not shown");
        found.push(Problem::error(Code::Cycle, "units", message));
    }
    found
}

fn circle(graph: &Graph<'_>, way: &[usize]) -> Problem {
    let place = match (way.first(), way.last()) {
        (Some(first), Some(last)) => graph.reason(*last, *first),
        (None, _) | (_, None) => String::new(),
    };
    let message = format!("each waits for the one before it: {}", path(graph, way));
    Problem::error(Code::Cycle, place, message).with_fix("remove one of these dependencies")
}

fn path(graph: &Graph<'_>, way: &[usize]) -> String {
    let mut nodes: Vec<Node<'_>> = way.iter().map(|number| graph.node(*number)).collect();
    // The opening and the closing of a task that has no units are one step to a reader.
    nodes.dedup();
    let left_out = nodes.len().saturating_sub(NAMES_MAX);
    let mut names: Vec<String> = nodes.iter().take(NAMES_MAX).map(name).collect();
    if left_out > 0 {
        names.push(format!("… ({left_out} more)"));
    }
    names.extend(nodes.first().map(name));
    names.join(" -> ")
}

fn name(node: &Node<'_>) -> String {
    match node {
        Node::Unit(id) => id.to_string(),
        Node::Task(id) => format!("task {id}"),
    }
}
