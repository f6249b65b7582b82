//! One cause, one finding: consequences of a finding are left out, the same one of many processes is one.

use std::collections::{BTreeMap, HashMap};

use weir_model::{Finding, FindingId, Gain};

use crate::context::Context;

use FindingId::*;

/// What a finding explains away where both are about one descriptor of one process.
const SAME_STREAM: &[(FindingId, &[FindingId])] = &[
    (SyncTinyWrites, &[SyncEveryWrite, TinyWrites, LineBufferedBulk, UnalignedWrites]),
    (SyncEveryWrite, &[TinyWrites, LineBufferedBulk, UnalignedWrites]),
    (TinyWrites, &[LineBufferedBulk, UnalignedWrites, CouldCopyInKernel, DoubleBuffered, SmallPipe]),
    (LineBufferedBulk, &[CouldCopyInKernel, DoubleBuffered, UnalignedWrites]),
    (TerminalBulk, &[TinyWrites]),
    (ReadAfterEofSpin, &[TinyReads]),
    (SeekAndReread, &[TinyReads, RandomWithoutAdvice]),
    (LostAtKill, &[StuckOutput]),
    (IgnoredWriteError, &[LostAtExit, ShortWriteUnhandled, IgnoredCloseError]),
    (DoubledAtFork, &[MixedOrder]),
    (DoubleBuffered, &[SmallPipe]),
];

/// The same where both are about one open file or path, whoever has it.
const SAME_PATH: &[(FindingId, &[FindingId])] = &[
    (EatenStdin, &[OverRead, SharedOffset]),
    (OverRead, &[SharedOffset]),
    (DoubledAtFork, &[TornRecords]),
    (MissingSyncBeforeRename, &[MissingDirSync]),
];

/// The findings that are left, the worst first.
pub(crate) fn merge(context: &Context, found: Vec<Finding>) -> Vec<Finding> {
    let mut left = together(context, without_consequences(context, found));
    left.sort_by(|a, b| {
        let cost = |finding: &Finding| finding.gain.map_or(0.0, |gain| gain.elapsed_s);
        let order = b.severity.cmp(&a.severity).then(cost(b).total_cmp(&cost(a)));
        order.then(a.id.cmp(&b.id)).then(a.pid.cmp(&b.pid)).then(a.fd.cmp(&b.fd))
    });
    left
}

fn without_consequences(context: &Context, found: Vec<Finding>) -> Vec<Finding> {
    // Of a file with several names, findings may have one each.
    let files = context.recording.files.iter().filter_map(|file| Some((file, file.same_as?)));
    let files =
        files.filter_map(|(file, first)| Some((file.path.clone(), context.file(first)?.path.clone())));
    let firsts: HashMap<String, String> = files.collect();
    let name = |finding: &Finding| firsts.get(&finding.path).unwrap_or(&finding.path).clone();
    let mut streams: HashMap<(u32, i32), Vec<(FindingId, String)>> = HashMap::new();
    let mut paths: HashMap<String, Vec<FindingId>> = HashMap::new();
    for finding in &found {
        streams.entry((finding.pid, finding.fd)).or_default().push((finding.id, name(finding)));
        paths.entry(name(finding)).or_default().push(finding.id);
    }
    let explains = |rules: &[(FindingId, &[FindingId])], cause: FindingId, effect: FindingId| {
        rules.iter().any(|(id, effects)| *id == cause && effects.contains(&effect))
    };
    let explained = |finding: &Finding| {
        let stream = streams[&(finding.pid, finding.fd)].iter();
        let own = name(finding);
        let here = stream.filter(|(_, path)| *path == own);
        here.into_iter().any(|(id, _)| explains(SAME_STREAM, *id, finding.id))
            || !finding.path.is_empty() && paths[&own].iter().any(|id| explains(SAME_PATH, *id, finding.id))
    };
    let (left, _): (Vec<_>, Vec<_>) = found.iter().cloned().partition(|finding| !explained(finding));
    left
}

/// About files that are gone from their descriptors: the number says nothing.
const BY_NAME: &[FindingId] = &[MissingSyncBeforeRename, MissingDirSync];

/// Findings of one kind about one descriptor number of one program, in however many processes, become one.
fn together(context: &Context, found: Vec<Finding>) -> Vec<Finding> {
    let mut groups: BTreeMap<(FindingId, String, i32), Vec<Finding>> = BTreeMap::new();
    for finding in found {
        let images = context.process(finding.pid).map(|process| process.images.last());
        let program =
            images.flatten().map_or(format!("#{}", finding.pid), |image| image.exe.clone() + &image.comm);
        let fd = if BY_NAME.contains(&finding.id) { -1 } else { finding.fd };
        groups.entry((finding.id, program, fd)).or_default().push(finding);
    }
    groups.into_values().filter_map(|group| one_of(context, group)).collect()
}

/// The worst of a group, with the others' number and what they would save together.
fn one_of(context: &Context, group: Vec<Finding>) -> Option<Finding> {
    let others = group.len() as u64 - 1;
    let gains: Vec<Gain> = group.iter().filter_map(|finding| finding.gain).collect();
    let cost =
        |finding: &Finding| (finding.severity, finding.gain.map_or(0, |gain| (gain.elapsed_s * 1e9) as u64));
    let mut worst = group.into_iter().max_by_key(cost)?;
    if others == 0 {
        return Some(worst);
    }
    worst.evidence.insert("more".into(), others as f64);
    worst.why += &format!(" So it is {} more time{}.", others, if others == 1 { "" } else { "s" });
    if let Some(gain) = &mut worst.gain {
        let sum: f64 = gains.iter().map(|gain| gain.elapsed_s).sum();
        *gain =
            Gain { elapsed_s: sum.min(context.run_s()), calls: gains.iter().map(|gain| gain.calls).sum() };
    }
    Some(worst)
}
