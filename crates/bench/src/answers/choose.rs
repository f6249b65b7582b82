//! What to choose here?

use weir_model::{Size, estimate};

use super::{Numbered, View, elapsed, figure, name};
use weir_model::bench::ratio;
use weir_model::bench::{BenchAnswer, BenchRow, FROM_TO};

/// Methods that copy inside the kernel. Among equally fast rows they are preferred: they need the least code and memory.
const IN_KERNEL: [&str; 2] = ["copy_file_range", "sendfile"];

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    if view.rows.len() < 2 || view.group.key.has_lines() {
        return None;
    }
    let best = view.fastest()?;
    if view.group.key.dir.contains(FROM_TO) {
        return block_size(view, best);
    }
    let tied: Vec<(usize, &BenchRow)> =
        view.rows.iter().copied().filter(|(_, row)| row.ties_with_best).collect();
    let calls = best_plain(view, "syscall");
    if view.group.key.workload == "copy"
        && let Some(kernel) = IN_KERNEL.iter().find_map(|method| fastest_tie(view, method))
    {
        return in_kernel(view, kernel, calls);
    }
    // Of rows that tie with the best, the one with the smallest buffers is enough.
    let enough = tied
        .iter()
        .copied()
        .filter(|(_, row)| row.method == best.1.method)
        .min_by_key(|(_, row)| row.record_bytes);
    let chosen = enough.unwrap_or(best);
    let mut text = format!("{} with {}", name(chosen.1), Size(chosen.1.record_bytes));
    let mut evidence = vec![elapsed(chosen)];
    if let Some(calls) = calls.filter(|calls| calls.1.method != chosen.1.method)
        && let Some(ahead) = ratio(calls.1, chosen.1)
    {
        let compared = if ahead.is_tie(view.noise) {
            format!(
                "; {} with {} ties with it and needs no library",
                view.plain_calls(),
                Size(calls.1.record_bytes)
            )
        } else {
            format!(
                "; {} with {} takes {} its time",
                view.plain_calls(),
                Size(calls.1.record_bytes),
                estimate::ratio(&ahead)
            )
        };
        text += &compared;
        evidence.extend([elapsed(calls), figure(None, "ratio", ahead.value)]);
    }
    view.answer(
        "What to choose here?",
        format!("For a program that must {} here: {text}.", purpose(view)),
        evidence,
    )
}

/// Returns the block size that is enough for a copy from one directory to another, as an option of dd, tar and cpio.
fn block_size(view: &View, best: (usize, &BenchRow)) -> Option<BenchAnswer> {
    let method = view.group.model_method.as_deref();
    let enough = method.and_then(|method| best_plain(view, method)).unwrap_or(best);
    let size = enough.1.record_bytes;
    let text = format!("Blocks of {}: {}.", Size(size), options(size));
    view.answer("What to choose here?", text, vec![elapsed(enough)])
}

/// Returns the options of dd, tar and cpio for a block size. tar counts blocks of 512 bytes; cpio knows no suffix.
fn options(bytes: u64) -> String {
    let dd = match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    };
    match bytes.is_multiple_of(512) {
        true => format!("dd bs={dd}, tar -b {}, cpio -C {bytes}", bytes / 512),
        false => format!("dd bs={dd}, cpio -C {bytes}"),
    }
}

fn purpose(view: &View) -> &'static str {
    match view.group.key.workload.as_str() {
        "copy" => "copy",
        "write" => "write",
        "read" => "read",
        _ => "translate",
    }
}

/// Returns the method's row with the smallest record that is enough; its fastest row if the knee is of another method.
fn best_plain<'a>(view: &View<'a>, method: &'a str) -> Option<(usize, &'a BenchRow)> {
    let of_method = view.gains().filter(|_| view.group.model_method.as_deref() == Some(method));
    match of_method {
        Some((_, gains)) => view.at(method, gains.enough()),
        None => view.plain(method).min_by(|a, b| super::seconds(a.1).total_cmp(&super::seconds(b.1))),
    }
}

/// Returns the fastest row of a method; `None` if it does not tie with the best row of the group.
fn fastest_tie<'a>(view: &View<'a>, method: &str) -> Option<Numbered<'a>> {
    let own = view.rows.iter().copied().filter(|(_, row)| row.method == method);
    own.min_by(|a, b| super::seconds(a.1).total_cmp(&super::seconds(b.1)))
        .filter(|(_, row)| row.ties_with_best)
}

/// Names a method that copies inside the kernel, with its record size if it was measured with several.
fn in_kernel(view: &View, kernel: Numbered, calls: Option<Numbered>) -> Option<BenchAnswer> {
    let (method, record) = (kernel.1.method.as_str(), kernel.1.record_bytes);
    let mut text = format!("For a copying tool here: {method}");
    if view.rows.iter().any(|(_, row)| row.method == method && row.record_bytes != record) {
        text += &format!(" with {}", Size(record));
    }
    let mut evidence = vec![elapsed(kernel)];
    if kernel.1.remark.as_deref().is_some_and(|remark| remark.contains("shared")) {
        text += ", which shared the blocks instead of copying them";
    }
    if let Some(calls) = calls {
        text += &format!(", else read/write with {}", Size(calls.1.record_bytes));
        evidence.push(elapsed(calls));
        if let Some(ahead) = ratio(calls.1, kernel.1) {
            let compared = if ahead.is_tie(view.noise) {
                "which ties with it".into()
            } else {
                format!("which takes {} its time", estimate::ratio(&ahead))
            };
            text += &format!(", {compared}");
            evidence.push(figure(None, "ratio", ahead.value));
        }
    }
    view.answer("What to choose here?", text + ".", evidence)
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn a_block_size_is_typed_as_each_program_takes_it() {
        assert_eq!(options(1 << 20), "dd bs=1M, tar -b 2048, cpio -C 1048576");
        assert_eq!(options(512), "dd bs=512, tar -b 1, cpio -C 512");
        assert_eq!(options(100), "dd bs=100, cpio -C 100");
    }
}
