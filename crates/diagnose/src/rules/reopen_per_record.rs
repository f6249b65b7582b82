//! reopen-per-record: a program opens and closes the same file for each record that it writes.
//!
//! Evidence: one process opened a regular file a hundred times or more by the same name and inode, without O_TRUNC and O_EXCL, and
//! wrote one piece after each open. The cost is the kernel's time for opening and closing: all that its reads and writes do not
//! explain if the process does little else, else a price. If calls were sampled, those whose stream is unknown count for this
//! file if nearly all known ones are on it.

use weir_model::number::about;
use weir_model::trace::{Op, StreamCounts, StreamSum};
use weir_model::{Direction, Finding, Gain, Severity, SourceLanguage, StreamKind};

use crate::context::RuleContext;
use crate::cost::priced_s;
use crate::flags::{O_EXCL, O_TRUNC};
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::thousands;

pub(crate) const RULE: Rule = Rule {
    id: "reopen-per-record",
    title: "Slow output, a file opened for each record",
    meaning: "a file is opened and closed for each record that is written to it",
    position: 35,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    supersedes: &[OnStream("line-buffered-bulk"), OnStream("tiny-writes")],
    judge,
    ..Rule::DEFAULT
};

/// Fewer openings are no loop.
const OPENINGS_MIN: u64 = 100;

/// Writes after one open that are still one record: its head, its text and its end.
const MAX_WRITES: f64 = 3.0;

/// The price of an open and a close, as a multiple of the price of the cheapest call. Measured on ext4 as 8 to 11 for an open with
/// O_APPEND and O_CREAT and its close.
const OPEN_CLOSE_CALLS: f64 = 8.0;

/// The most calls that move no bytes in one turn of a loop that does nothing else: open and close, and seeks, duplicates and
/// flags of the descriptor.
const TURN_CALLS: u64 = 12;

/// The share of a process's user time that its calls need, as in `cost.rs`.
const AROUND_SHARE: f64 = 0.6;

/// A file and the process that opens it again and again.
struct Reopened<'a> {
    stream: &'a StreamCounts,
    /// Openings that were recorded.
    seen: u64,
    /// Openings of the whole run, estimated if `exact` is false. Without `whole` it can be a lower limit, see `is_least`.
    openings: u64,
    writes: u64,
    bytes: u64,
    exact: bool,
    /// The writes include the calls whose stream is unknown.
    whole: bool,
}

impl Reopened<'_> {
    /// Returns whether the file was perhaps opened more often: calls in gaps belong to other streams too.
    fn is_least(&self) -> bool {
        !self.exact && !self.whole && self.stream.at_least
    }
}

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.merged_openings(Direction::Out);
    let reopened = streams.filter_map(|stream| reopened(context, stream));
    reopened.filter_map(|reopened| finding(context, &reopened)).collect()
}

fn reopened<'a>(context: &RuleContext, stream: &'a StreamSum<'a>) -> Option<Reopened<'a>> {
    let pid = stream.sum.pid;
    let first = context.file(stream.sum.file).filter(|file| file.kind == StreamKind::File)?;
    let own = stream.openings.iter().filter(|opening| {
        opening.bytes > 0
            && context.file(opening.file).is_some_and(|file| {
                file.opened_by == Some(pid)
                    && (file.dev, file.ino) == (first.dev, first.ino)
                    && file.flags & (O_TRUNC | O_EXCL) == 0
            })
    });
    let mut writes: Vec<u64> = own.map(|opening| opening.moving_calls()).collect();
    let seen = writes.len() as u64;
    if seen < OPENINGS_MIN || seen * 10 < stream.openings.len() as u64 * 9 {
        return None;
    }
    writes.sort_unstable();
    let each = writes[writes.len() / 2].max(1) as f64;
    let (calls, bytes, whole) = with_unknown(context, &stream.sum);
    // Without the events of some openings, their calls are those of others.
    let all_seen = calls == seen || context.recording.overhead.lost_events == 0;
    let exact = stream.sum.exact && calls == stream.sum.calls && all_seen;
    // Openings of one descriptor within a sampling window are counted as one, so the number of calls is the better estimate.
    let openings = if exact { seen } else { ((calls as f64 / each) as u64).max(seen) };
    let reopened = Reopened { stream: &stream.sum, seen, openings, writes: calls, bytes, exact, whole };
    (each <= MAX_WRITES && bytes / openings < BLOCK).then_some(reopened)
}

/// More bytes than this are not one record.
const BLOCK: u64 = 4096;

/// Returns the calls and bytes of a stream. If it made nearly all known calls of its process, the calls whose stream is unknown
/// count as its own, and the third value is true.
fn with_unknown(context: &RuleContext, stream: &StreamCounts) -> (u64, u64, bool) {
    let same = |other: &&StreamCounts| {
        (other.pid, other.image, other.direction) == (stream.pid, stream.image, stream.direction)
    };
    let (known, unknown): (Vec<&StreamCounts>, Vec<&StreamCounts>) =
        context.recording.counts.iter().filter(same).partition(|other| other.is_known());
    let known: u64 = known.iter().map(|other| other.calls).sum();
    if stream.calls * 10 < known * 9 {
        return (stream.calls, stream.bytes, false);
    }
    let add = |of: fn(&StreamCounts) -> u64| unknown.iter().map(|other| of(other)).sum::<u64>();
    (stream.calls + add(|other| other.calls), stream.bytes + add(|other| other.bytes), true)
}

/// Returns the kernel's seconds for opening and closing.
fn opening_s(context: &RuleContext, reopened: &Reopened) -> f64 {
    let pid = reopened.stream.pid;
    let priced = reopened.openings as f64 * OPEN_CLOSE_CALLS * context.recording.prices.call_ns / 1e9;
    let own = context.recording.counts.iter().filter(|stream| stream.pid == pid);
    let moving_s: f64 = own.map(|stream| priced_s(context.recording, stream)).sum();
    // The stream of these writes is unknown, so they are priced like those of a device.
    let prices = &context.recording.prices;
    let unknown = (reopened.writes - reopened.stream.calls) as f64;
    let moving_s = moving_s + unknown * (prices.file_write_ns - prices.call_ns).max(0.0) / 1e9;
    let rest_s = (context.system_s(pid) - moving_s).max(0.0);
    let others = || context.recording.other_calls.iter().filter(|other| other.pid == pid);
    let opens: u64 =
        others().filter(|other| other.op.opens()).map(|other| other.calls - other.failed()).sum();
    let all: u64 = others().filter(|other| other.op != Op::Mmap).map(|other| other.calls).sum();
    // Programs open libraries at their start, which sampling windows cover in full, so the openings in gaps count too.
    let in_gaps = reopened.openings - reopened.seen;
    let is_all =
        reopened.openings * 10 >= (opens + in_gaps) * 9 && all <= reopened.seen.max(opens) * TURN_CALLS;
    match () {
        () if rest_s == 0.0 => context.cap_to_cpu(pid, priced),
        () if is_all && opens > 0 => rest_s,
        () => priced.min(rest_s),
    }
}

fn finding(context: &RuleContext, reopened: &Reopened) -> Option<Finding> {
    let stream = reopened.stream;
    let pid = stream.pid;
    let opening_s = opening_s(context, reopened);
    let severity = RULE.severity_of(context, pid, opening_s)?;
    let language = context.language(pid, stream.first_s);
    let user_s = context.process(pid).map_or(0.0, |process| process.user_s);
    let writes_s = reopened.writes as f64 * context.recording.prices.file_write_ns / 1e9;
    let around_s = (user_s * AROUND_SHARE).min(opening_s);
    let saved_s = match language {
        // Most of a shell's user time is for the commands of the loop, and it still writes each line.
        SourceLanguage::Shell => opening_s,
        SourceLanguage::Php => opening_s + around_s,
        _ => opening_s + around_s + writes_s,
    };
    let saved_s = context.cap_to_cpu(pid, saved_s);
    let share = context.share(opening_s);
    let (number, name) = match reopened.exact {
        true => (thousands(reopened.openings), "openings"),
        false if reopened.is_least() => {
            (format!("at least {}", thousands(reopened.openings)), "least_openings")
        }
        false => (about(reopened.openings), "openings"),
    };
    let why = format!(
        "{} opened {} {} times and closed it again, to write {:.0} bytes each time: opening and closing it takes \
            about {:.0} % of the run.",
        context.stream_name(stream),
        context.file(stream.file).map_or("a file".into(), |file| file.path.to_string()),
        number,
        reopened.bytes as f64 / reopened.openings as f64,
        share * 100.0
    );
    let calls = reopened.openings.saturating_mul(2);
    let finding = context.finding(&RULE, severity, pid, stream.fd, Some(stream.file));
    let finding = finding.gain(Gain { elapsed_s: saved_s, calls });
    let finding = finding.count(name, reopened.openings).count("bytes", reopened.bytes);
    let finding = finding.figure("share", share).figure("cost_s", opening_s);
    Some(finding.build(why, format!("{}.", fix(language))))
}

fn fix(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::Shell => {
            "redirect the whole loop: done >> FILE; or exec 3>> FILE before it, and echo … >&3 in it"
        }
        SourceLanguage::Python => "with open(path, 'a') as f: around the loop, and f.write() in it",
        SourceLanguage::Perl => {
            "open(my $f, '>>', $path) before the loop, print {$f} in it, close($f) after it"
        }
        SourceLanguage::Ruby => "File.open(path, 'a') { |f| … } around the loop, and f.write in it",
        SourceLanguage::Node => {
            "const f = fs.createWriteStream(path, { flags: 'a' }) before the loop, and f.write() in it; no \
                fs.appendFileSync"
        }
        SourceLanguage::Php => {
            "$f = fopen($path, 'a') before the loop, fwrite($f, $data) in it, fclose($f) after it; no \
                file_put_contents"
        }
        SourceLanguage::Lua => {
            "local f = io.open(path, 'a') before the loop, f:write() in it, f:close() after it"
        }
        SourceLanguage::Tcl => "set f [open $path a] before the loop, puts $f in it, close $f after it",
        SourceLanguage::Awk => "print >> file without close(file) in the loop",
        SourceLanguage::Java => "new BufferedWriter(new FileWriter(path, true)) before the loop, write in it",
        SourceLanguage::C => "FILE *f = fopen(path, \"a\"); before the loop, fprintf in it, fclose after it",
        SourceLanguage::Cpp => "std::ofstream f(path, std::ios::app); before the loop, and f << … in it",
        SourceLanguage::Go => {
            "os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) before the loop, and a bufio.Writer on it"
        }
        SourceLanguage::Rust => {
            "BufWriter::new(OpenOptions::new().append(true).create(true).open(path)?) before the loop"
        }
        _ => "open the file once, before the loop, write in it, and close the file after it",
    }
}
