//! Reduces findings to one for each cause: leaves out consequences, and merges the same finding of many processes.

use std::collections::{BTreeMap, HashMap, HashSet};

use weir_model::{Finding, Gain, Untrusted};

use crate::context::RuleContext;
use crate::rule::{MergeKey, Supersedes};
use crate::rules::rule_of;

/// Returns the findings that remain, the worst first: by severity, gain, the rule's position, process and descriptor.
pub(crate) fn merge(context: &RuleContext, found: Vec<Finding>) -> Vec<Finding> {
    let mut merged = merge_processes(context, without_consequences(context, found));
    merged.sort_by(|a, b| {
        let gain_s = |finding: &Finding| finding.gain.map_or(0.0, |gain| gain.elapsed_s);
        let order = b.severity.cmp(&a.severity).then(gain_s(b).total_cmp(&gain_s(a)));
        order.then_with(|| (rank(a), a.pid, a.fd).cmp(&(rank(b), b.pid, b.fd)))
    });
    merged
}

/// Returns the position and the identifier of a finding's rule, by which rules are sorted.
fn rank(finding: &Finding) -> (u32, &'static str) {
    let rule = rule_of(finding);
    (rule.position, rule.id)
}

/// Removes each finding that another one supersedes.
fn without_consequences(context: &RuleContext, found: Vec<Finding>) -> Vec<Finding> {
    let first_names = first_names(context);
    let path = |finding: &Finding| first_names.get(&finding.path).unwrap_or(&finding.path).clone();
    let (mut on_stream, mut on_path) = (HashSet::new(), HashSet::new());
    for cause in &found {
        for supersedes in rule_of(cause).supersedes {
            match supersedes {
                Supersedes::OnStream(id) => on_stream.insert((cause.pid, cause.fd, path(cause), *id)),
                Supersedes::OnPath(id) => on_path.insert((path(cause), *id)),
            };
        }
    }
    let remains = |finding: &Finding| {
        let id = rule_of(finding).id;
        let superseded = on_stream.contains(&(finding.pid, finding.fd, path(finding), id))
            || !finding.path.is_empty() && on_path.contains(&(path(finding), id));
        !superseded
    };
    found.into_iter().filter(remains).collect()
}

/// Returns the first name of each path that is a further name of a file: findings may use any of its names.
fn first_names(context: &RuleContext) -> HashMap<Untrusted, Untrusted> {
    let files = context.recording.files.iter().filter_map(|file| Some((file, file.same_as?)));
    files.filter_map(|(file, first)| Some((file.path.clone(), context.file(first)?.path.clone()))).collect()
}

/// Merges the findings of one rule about one program, which may have run in many processes.
fn merge_processes(context: &RuleContext, found: Vec<Finding>) -> Vec<Finding> {
    let mut groups: BTreeMap<_, Vec<Finding>> = BTreeMap::new();
    for finding in found {
        let images = context.process(finding.pid).map(|process| process.images.last());
        let program = images
            .flatten()
            .map_or(format!("#{}", finding.pid), |image| image.exe.exact().to_string() + image.comm.exact());
        let fd = match rule_of(&finding).merge {
            MergeKey::Descriptor => finding.fd,
            MergeKey::Program => -1,
        };
        groups.entry((rank(&finding), program, fd)).or_default().push(finding);
    }
    groups.into_values().filter_map(|group| merge_group(context, group)).collect()
}

/// Returns the worst finding of a group, with the number of the others and the gain of all.
fn merge_group(context: &RuleContext, group: Vec<Finding>) -> Option<Finding> {
    // A finding about several files counts them.
    let times = |finding: &Finding| finding.evidence.get("files").map_or(1, |files| *files as u64);
    let all: u64 = group.iter().map(times).sum();
    let is_one = group.len() == 1;
    let sum = |gain: fn(&Finding) -> Option<Gain>| {
        let gains = || group.iter().filter_map(gain);
        let elapsed_s = gains().map(|gain| gain.elapsed_s).sum::<f64>().min(context.run_s());
        Gain { elapsed_s, calls: gains().map(|gain| gain.calls).sum() }
    };
    let (gain, command_gain) = (sum(|finding| finding.gain), sum(|finding| finding.command_gain));
    let cost =
        |finding: &Finding| (finding.severity, finding.gain.map_or(0, |gain| (gain.elapsed_s * 1e9) as u64));
    let mut worst = group.into_iter().max_by_key(cost)?;
    if is_one {
        return Some(worst);
    }
    let others = all.saturating_sub(times(&worst));
    worst.evidence.insert("more".into(), others as f64);
    worst.why += &format!(" The same happened {} more time{}.", others, if others == 1 { "" } else { "s" });
    worst.gain = worst.gain.map(|_| gain);
    worst.command_gain = worst.command_gain.map(|_| command_gain);
    Some(worst)
}
