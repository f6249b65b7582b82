//! Findings that differ in the file only, for screens and verdicts. Documents have each finding.

use std::collections::{HashMap, HashSet};

use super::Process;
use crate::{Finding, Gain, Severity};

/// Figures whose sum over several files means something: bytes that are lost, or may be.
const SUMMED: [&str; 3] = ["lost_bytes", "pending_bytes", "unsynced_bytes"];

/// A finding, and the same finding about other files of the same program.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingGroup<'a> {
    /// The first finding, with the gain of all.
    pub first: Finding,
    /// The findings about other files.
    pub others: Vec<&'a Finding>,
    /// Lost or pending bytes of all; `None` if the findings have no such figure.
    pub bytes: Option<u64>,
}

/// Identifies findings with one cause and one fix: the identifier, severity, process, program, fix and command.
type GroupKey<'a> = (&'a str, Severity, u32, Option<usize>, &'a str, Option<&'a str>);

impl<'a> FindingGroup<'a> {
    /// Groups findings. The groups have the order of their first findings. `elapsed_s` is the duration of the run: a gain cannot
    /// be larger.
    pub fn of(
        findings: impl IntoIterator<Item = &'a Finding>,
        processes: &[Process],
        elapsed_s: f64,
    ) -> Vec<Self> {
        let processes: HashMap<u32, &Process> =
            processes.iter().map(|process| (process.pid, process)).collect();
        let mut groups: Vec<Self> = Vec::new();
        let mut known: HashMap<GroupKey, usize> = HashMap::new();
        let mut files = HashSet::new();
        for finding in findings {
            let at = key(finding, &processes).map(|key| *known.entry(key).or_insert(groups.len()));
            let Some(at) = at.filter(|&at| at < groups.len()) else {
                files.insert((groups.len(), &finding.path));
                groups.push(Self::new(finding));
                continue;
            };
            // A second finding about one file differs in more than the file.
            if files.insert((at, &finding.path)) {
                groups[at].add(finding, elapsed_s);
            } else {
                groups.push(Self::new(finding));
            }
        }
        groups
    }

    fn new(finding: &Finding) -> Self {
        Self { first: finding.clone(), others: Vec::new(), bytes: bytes(finding) }
    }

    fn add(&mut self, finding: &'a Finding, elapsed_s: f64) {
        let sum = |one: Option<Gain>, other: Option<Gain>| match (one, other) {
            (Some(one), Some(other)) => Some(Gain {
                elapsed_s: (one.elapsed_s + other.elapsed_s).min(elapsed_s),
                calls: one.calls + other.calls,
            }),
            (one, other) => one.or(other),
        };
        self.first.gain = sum(self.first.gain, finding.gain);
        self.first.command_gain = sum(self.first.command_gain, finding.command_gain);
        self.bytes = self.bytes.zip(bytes(finding)).map(|(one, other)| one + other);
        self.others.push(finding);
    }

    /// Returns the number of the other files as text; `None` for a finding that is alone.
    pub fn more(&self) -> Option<String> {
        let are_files = self.others.iter().all(|finding| finding.path.exact().starts_with('/'));
        let name = if are_files { "file" } else { "stream" };
        match self.others.len() {
            0 => None,
            1 => Some(format!("1 more {name}")),
            number => Some(format!("{number} more {name}s")),
        }
    }
}

/// Returns the key of a finding about a file; `None` for one about a whole program, or about a program that is not known.
fn key<'a>(finding: &'a Finding, processes: &HashMap<u32, &Process>) -> Option<GroupKey<'a>> {
    if finding.fd < 0 || finding.path.is_empty() {
        return None;
    }
    let at_s = ["at_s", "since_s"].iter().find_map(|name| finding.evidence.get(*name).copied());
    let process = processes.get(&finding.pid);
    let image = process.and_then(|process| process.image_at(at_s?)).map(|(image, _)| image);
    if image.is_none() && process.is_some_and(|process| process.images.len() > 1) {
        return None;
    }
    let Finding { severity, pid, fix, command, .. } = finding;
    Some((finding.id.as_str(), *severity, *pid, image, fix, command.as_deref()))
}

/// Returns the lost or pending bytes of a finding; `None` if it stands for several processes, of which only one is known.
fn bytes(finding: &Finding) -> Option<u64> {
    if finding.evidence.contains_key("more") {
        return None;
    }
    SUMMED.iter().find_map(|name| finding.evidence.get(*name)).map(|bytes| *bytes as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::FindingId;

    fn finding(fd: i32, path: &str, fix: &str) -> Finding {
        Finding {
            id: FindingId::new("lost-at-exit"),
            severity: Severity::High,
            pid: 7,
            fd,
            path: path.into(),
            evidence: BTreeMap::from([("lost_bytes".into(), 390.0)]),
            why: format!("390 bytes for {path} are lost."),
            fix: fix.into(),
            command: None,
            gain: Some(Gain { elapsed_s: 0.4, calls: 3 }),
            command_gain: None,
            wrote: None,
        }
    }

    fn groups(findings: &[Finding]) -> Vec<FindingGroup<'_>> {
        FindingGroup::of(findings, &[], 1.0)
    }

    #[test]
    fn findings_that_differ_in_the_file_are_one_group() {
        let findings: Vec<Finding> = (3..33).map(|fd| finding(fd, &format!("/tmp/f{fd}"), "flush")).collect();
        let groups = groups(&findings);
        assert_eq!(groups.len(), 1);
        assert_eq!((groups[0].first.path.exact(), groups[0].others.len()), ("/tmp/f3", 29));
        assert_eq!((groups[0].bytes, groups[0].more().as_deref()), (Some(11_700), Some("29 more files")));
        assert_eq!(groups[0].first.gain, Some(Gain { elapsed_s: 1.0, calls: 90 }), "not more than the run");
    }

    #[test]
    fn bytes_of_several_processes_are_not_summed() {
        let mut findings = [finding(3, "/tmp/a", "flush"), finding(4, "/tmp/b", "flush")];
        findings[1].evidence.insert("more".into(), 2.0);
        let groups = groups(&findings);
        assert_eq!((groups.len(), groups[0].bytes), (1, None));
    }

    #[test]
    fn findings_that_differ_in_more_are_apart() {
        let base = finding(3, "/tmp/a", "flush");
        let others = [
            finding(4, "/tmp/b", "close"),
            Finding { pid: 8, ..finding(4, "/tmp/b", "flush") },
            Finding { severity: Severity::Warn, ..finding(4, "/tmp/b", "flush") },
            Finding { id: FindingId::new("lost-at-kill"), ..finding(4, "/tmp/b", "flush") },
            finding(4, "/tmp/a", "flush"),
            finding(-1, "/tmp/b", "flush"),
        ];
        for other in others {
            let findings = [base.clone(), other];
            assert_eq!(groups(&findings).len(), 2, "{findings:?}");
            assert_eq!(groups(&findings)[0].more(), None);
        }
    }

    #[test]
    fn programs_of_one_process_are_apart() {
        let image = |started_s| super::super::Image { started_s, ..Default::default() };
        let process = Process { pid: 7, images: vec![image(0.0), image(1.0)], ..Process::default() };
        let mut findings = [finding(3, "/tmp/a", "flush"), finding(4, "pipe:[4]", "flush")];
        findings[0].evidence.insert("at_s".into(), 0.5);
        for (at_s, number) in [(0.6, 1), (1.5, 2)] {
            findings[1].evidence.insert("at_s".into(), at_s);
            let groups = FindingGroup::of(&findings, std::slice::from_ref(&process), 2.0);
            assert_eq!(groups.len(), number, "{at_s}");
        }
        findings.iter_mut().for_each(|finding| finding.evidence.clear());
        assert_eq!(FindingGroup::of(&findings, &[process], 2.0).len(), 2, "not known which program");
    }
}
