//! Filter and order of the processes.

use std::cmp::Ordering;

use weir_model::Untrusted;
use weir_model::top::{ProcessActivity, Survey};

/// Sort order of processes: largest first, except for `Size` and `Pid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Sort {
    /// Tiny calls per second.
    #[default]
    Tiny,
    Reads,
    Writes,
    /// Mean bytes of a call, smallest first; processes without calls are last.
    Size,
    /// CPU time in the kernel.
    System,
    /// Pending bytes of all streams.
    Pending,
    /// Age of the oldest pending bytes.
    Age,
    Pid,
}

impl Sort {
    /// All orders, in the order of the columns.
    pub const ALL: [Sort; 8] = [
        Sort::Tiny,
        Sort::Reads,
        Sort::Writes,
        Sort::Size,
        Sort::System,
        Sort::Pending,
        Sort::Age,
        Sort::Pid,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Tiny => "tiny",
            Sort::Reads => "reads",
            Sort::Writes => "writes",
            Sort::Size => "size",
            Sort::System => "system",
            Sort::Pending => "pending",
            Sort::Age => "age",
            Sort::Pid => "pid",
        }
    }

    /// Returns the order `steps` columns to the right, wrapping around.
    pub fn next(self, steps: usize) -> Sort {
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        Self::ALL[(at + steps) % Self::ALL.len()]
    }

    /// Returns the order of the previous column, wrapping around.
    pub fn previous(self) -> Sort {
        self.next(Self::ALL.len() - 1)
    }

    fn compare(self, a: &ProcessActivity, b: &ProcessActivity) -> Ordering {
        let most = |of: fn(&ProcessActivity) -> f64| of(b).total_cmp(&of(a));
        match self {
            Sort::Tiny => most(ProcessActivity::tiny_calls_s),
            Sort::Reads => most(|one| one.reads.map_or(-1.0, |rate| rate.calls_s)),
            Sort::Writes => most(|one| one.writes.map_or(-1.0, |rate| rate.calls_s)),
            Sort::Size => size(a).total_cmp(&size(b)),
            Sort::System => most(|one| one.system_share.unwrap_or(-1.0)),
            Sort::Pending => b.pending_bytes().cmp(&a.pending_bytes()),
            Sort::Age => most(|one| one.oldest().map_or(-1.0, |stream| stream.waits_s)),
            Sort::Pid => a.pid.cmp(&b.pid),
        }
    }
}

fn size(one: &ProcessActivity) -> f64 {
    one.calls().and_then(|calls| calls.mean_bytes()).unwrap_or(f64::INFINITY)
}

/// Filter and order of the visible processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Selection {
    pub sort: Sort,
    /// Selects processes by PID, or by text in the command or in the path of a pending stream. Empty selects all.
    pub filter: String,
    /// The user has named the processes: the table has a line for each, also for one that does nothing.
    pub named: bool,
}

impl Selection {
    /// Returns the selected processes in order. Equal ones are ordered by tiny calls, pending bytes, CPU time and PID.
    pub fn select<'a>(&self, survey: &'a Survey) -> Vec<&'a ProcessActivity> {
        let wanted = self.filter.to_lowercase();
        let mut found: Vec<&ProcessActivity> =
            survey.processes.iter().filter(|one| has(one, &wanted)).collect();
        found.sort_by(|a, b| {
            [self.sort, Sort::Tiny, Sort::Pending, Sort::System, Sort::Pid]
                .into_iter()
                .map(|sort| sort.compare(a, b))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        found
    }
}

fn has(one: &ProcessActivity, wanted: &str) -> bool {
    let is_in = |text: &Untrusted| text.exact().to_lowercase().contains(wanted);
    wanted.is_empty()
        || is_in(&one.command)
        || is_in(&one.comm)
        || one.pid.to_string() == wanted
        || one.waiting.iter().flatten().any(|stream| is_in(&stream.path))
}
