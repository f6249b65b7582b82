//! The definition of a rule: the name and meaning of its findings, how they relate to those of other rules, and the function
//! that derives them from a recording.

use weir_model::{Direction, Finding, FindingId, Severity};

use crate::context::RuleContext;

/// One kind of finding. Each file in rules/ defines one as `RULE`.
pub struct Rule {
    /// Identifier in JSON, in the labelled set and on the screen: lower-case words joined by hyphens.
    pub id: &'static str,
    /// The symptom that a user notices, in a few words.
    pub title: &'static str,
    /// The cause, in one line without a full stop.
    pub meaning: &'static str,
    /// Rank in the documentation and among findings of equal severity and gain; lower comes first. Equal positions are
    /// ordered by identifier.
    pub position: u32,
    #[allow(missing_docs)]
    pub severity: SeverityRule,
    #[allow(missing_docs)]
    pub gain: GainKind,
    /// Findings of other rules that are consequences of this one and are left out beside it.
    pub supersedes: &'static [Supersedes],
    /// The findings of this rule that are reported as one.
    pub merge: MergeKey,
    /// How the verdict words a finding of this rule.
    pub verdict: VerdictForm,
    /// An `info` of this rule leaves open whether bytes are late or lost, so the run cannot be called right.
    pub info_is_undecided: bool,
    pub(crate) judge: fn(&RuleContext) -> Vec<Finding>,
}

/// How a rule sets the severity of its findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeverityRule {
    /// By the share of the run that the fault costs (`Context::severity`).
    Cost {
        /// The highest severity that the rule reports, whatever the cost.
        most: Severity,
    },
    /// By what happens to the bytes.
    #[allow(missing_docs)]
    Effect { least: Severity, most: Severity },
}

/// The kind of time that a finding's gain counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GainKind {
    /// No gain is predicted.
    None,
    /// CPU time of the process, which shortens the run.
    CpuTime,
    /// CPU time that a busy loop uses while the process would wait anyway: only calls are saved. The seconds are in
    /// `cost_s` of the evidence.
    SpinTime,
    /// Time in which the process waits for a device, a terminal or another process.
    WaitTime,
}

/// A consequence that a rule's finding explains. The text is the identifier of the other rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supersedes {
    /// The other finding is about the same descriptor of the same process, and the same path.
    OnStream(&'static str),
    /// The other finding is about the same path, in any process.
    OnPath(&'static str),
}

/// The property that findings of one rule must share to be reported as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeKey {
    /// The program and the descriptor's number.
    Descriptor,
    /// The program. This is for files that are no longer open: the number of their descriptor means nothing.
    Program,
}

/// The form of the verdict's sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictForm {
    /// The finding's own sentence and its gain.
    Sentence,
    /// The number, size and cost of many small calls. Such findings of one process are added up.
    SmallCalls {
        /// The direction of the calls.
        direction: Direction,
        /// Each call moves one line.
        by_line: bool,
    },
}

impl Rule {
    /// The fields that most rules leave alone.
    pub(crate) const DEFAULT: Self = Self {
        id: "",
        title: "",
        meaning: "",
        position: u32::MAX,
        severity: SeverityRule::Cost { most: Severity::High },
        gain: GainKind::None,
        supersedes: &[],
        merge: MergeKey::Descriptor,
        verdict: VerdictForm::Sentence,
        info_is_undecided: false,
        judge: |_| Vec::new(),
    };

    /// Returns the findings of this rule, in no particular order.
    pub(crate) fn apply(&self, context: &RuleContext) -> Vec<Finding> {
        let findings = (self.judge)(context);
        debug_assert!(findings.iter().all(|finding| finding.id == self.id && self.allows(finding.severity)));
        findings
    }

    /// Returns the identifier as the model has it.
    pub(crate) const fn finding_id(&self) -> FindingId {
        FindingId::new(self.id)
    }

    /// Returns the severity of a fault that wastes this many seconds, or None if it is not worth reporting.
    pub(crate) fn severity_of(&self, context: &RuleContext, pid: u32, wasted_s: f64) -> Option<Severity> {
        context.severity(pid, wasted_s).map(|severity| severity.min(self.most()))
    }

    /// Returns the highest severity that the rule reports.
    pub(crate) fn most(&self) -> Severity {
        match self.severity {
            SeverityRule::Cost { most } | SeverityRule::Effect { most, .. } => most,
        }
    }

    fn allows(&self, severity: Severity) -> bool {
        match self.severity {
            SeverityRule::Cost { most } => severity <= most,
            SeverityRule::Effect { least, most } => (least..=most).contains(&severity),
        }
    }
}
