//! The groups of contenders and the rows of the table that compare them.

use crate::BoxError;
use crate::contender::{self, Entry, Out, Program};
use crate::data::{Data, LINE_BYTES};

/// Contenders that run in the same rounds.
pub struct Group {
    /// The argument that chooses the group.
    pub name: &'static str,
    pub title: &'static str,
    /// The unit of the figures: byte or line.
    pub unit: &'static str,
    pub budget_s: f64,
    pub entries: Vec<Entry>,
    pub rows: Vec<TargetRow>,
}

/// The time that a row compares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// CPU time minus that of the bare system calls.
    User,
    Cpu,
    Elapsed,
}

/// The target of a row.
#[derive(Clone, Copy)]
pub enum Requirement {
    /// At least this many times as fast.
    TimesAsFast(f64),
    /// Faster, with the whole interval.
    Faster,
    /// At most this many times the rival's time.
    Within(f64),
    /// At most this many times the rival's time within the noise: the lower end of the interval counts.
    NotSlowerThan(f64),
    /// Two runs of the same entry, whose times differ at most by this share.
    SameTwice(f64),
}

/// A row of the table of targets.
pub struct TargetRow {
    pub name: &'static str,
    pub ours: String,
    pub theirs: String,
    pub time: Time,
    pub requirement: Requirement,
}

fn row(name: &'static str, ours: &str, theirs: &str, time: Time, requirement: Requirement) -> TargetRow {
    TargetRow { name, ours: ours.into(), theirs: theirs.into(), time, requirement }
}

fn twice(name: &'static str, label: &str, time: Time, apart: f64) -> TargetRow {
    row(name, label, &format!("{label}, again"), time, Requirement::SameTwice(apart))
}

/// Sizes of the default buffers, in bytes. stdio uses st_blksize.
#[derive(Clone, Copy)]
struct Buffers {
    weir: u64,
    stdio: u64,
}

/// Returns all groups in the order in which they run.
pub fn groups(data: &Data) -> Result<Vec<Group>, BoxError> {
    let default_buffer = Entry::new("default buffer", Program::Weir, "buffer", "default").out(Out::Over);
    let weir = contender::run(&default_buffer, data, 0)?.units as u64;
    let buffers = Buffers { weir, stdio: data.block_bytes()? };
    Ok(vec![
        bytes(buffers),
        locked(buffers),
        lines_user(buffers),
        lines_elapsed(),
        formatted(),
        calls(),
        blocks(),
    ])
}

const OURS: &str = "libweir";
const BARE: &str = "bare system calls, libweir's buffer";
const BARE_STDIO: &str = "bare system calls, glibc's buffer";
const BARE_8K: &str = "bare system calls, 8 KiB";
const BARE_64K: &str = "bare system calls, 64 KiB";
const LOCKED: &str = "glibc, locked";
const UNLOCKED: &str = "glibc, unlocked";
const MEMORY: &str = "hand loop, state in memory";
const REGISTERS: &str = "hand loop, state in registers";

/// Returns an entry that only calls read(2) and write(2) with this size.
fn bare(label: &str, buffer_bytes: u64) -> Entry {
    Entry::new(label, Program::Hand, "blocks", "system-calls").buffer(buffer_bytes)
}

fn bytes(buffers: Buffers) -> Group {
    use Program::{Glibc, Go, Hand, Musl, Rust, Sfio, Weir};
    let plain = |label: &str, program, name| Entry::new(label, program, "bytes", name);
    let entry = |label: &str, program, name, calls| plain(label, program, name).bare(calls);
    let hand = |label, name| entry(label, Hand, name, BARE).buffer(buffers.weir);
    let ours = entry(OURS, Weir, "getc-putc", BARE);
    let entries = vec![
        ours.again(),
        ours,
        entry("libweir, cursor", Weir, "cursor", BARE),
        entry(LOCKED, Glibc, "locked", BARE_STDIO),
        entry(UNLOCKED, Glibc, "unlocked", BARE_STDIO),
        hand(MEMORY, "memory"),
        hand(REGISTERS, "registers"),
        plain("musl, locked", Musl, "locked"),
        plain("musl, unlocked", Musl, "unlocked"),
        entry("sfio", Sfio, "getc-putc", BARE_8K),
        entry("Rust, bytes and write_all", Rust, "-", BARE_8K),
        entry("Go, ReadByte and WriteByte", Go, "-", BARE_STDIO),
        bare(BARE, buffers.weir),
        bare(BARE_STDIO, buffers.stdio),
        bare(BARE_8K, 8 << 10),
    ];
    let cursor = "libweir, cursor";
    let rows = vec![
        row("putc+getc: glibc's locked calls", OURS, LOCKED, Time::User, Requirement::TimesAsFast(2.5)),
        row("putc+getc: glibc's unlocked calls", OURS, UNLOCKED, Time::User, Requirement::NotSlowerThan(1.0)),
        row("putc+getc: a loop with its state in memory", OURS, MEMORY, Time::User, Requirement::Within(1.1)),
        row(
            "cursor: a loop with its state in registers",
            cursor,
            REGISTERS,
            Time::User,
            Requirement::Within(1.1),
        ),
        twice("A/A: putc+getc twice", OURS, Time::User, 0.03),
    ];
    let title = "bytes: getc and putc";
    Group { name: "bytes", title, unit: "byte", budget_s: 50.0, entries, rows }
}

/// Returns the group of locked streams. With a second thread in the process a byte takes ten times as long, so the input
/// is short. putc is also measured alone, so that a fast getc does not hide it.
fn locked(buffers: Buffers) -> Group {
    use Program::{Glibc, Weir};
    const COUNT: u64 = 4 << 20;
    let (copy, put) = ("copy: libweir, WEIR_THREADS", "putc: libweir, WEIR_THREADS");
    let (copy_held, copy_unlocked) = ("copy: libweir, lock held", "copy: glibc, unlocked");
    let (copy_idle, put_idle) =
        ("copy: libweir, WEIR_THREADS, idle thread", "putc: libweir, WEIR_THREADS, idle thread");
    let (copy_glibc, put_glibc) = ("copy: glibc, locked", "putc: glibc, locked");
    let (copy_glibc_idle, put_glibc_idle) =
        ("copy: glibc, locked, idle thread", "putc: glibc, locked, idle thread");
    let copies = |label: &str, program, name, calls| {
        Entry::new(label, program, "bytes", name).short().passes(3).bare(calls)
    };
    let puts = |label: &str, program, name| Entry::new(label, program, "putc", name).count(COUNT).passes(3);
    let idle = |entry: Entry| entry.passes(1).with_idle_thread();
    let entries = vec![
        copies(copy, Weir, "threads", BARE),
        idle(copies(copy_idle, Weir, "threads", BARE)),
        copies(copy_held, Weir, "held", BARE),
        copies(copy_glibc, Glibc, "locked", BARE_STDIO),
        idle(copies(copy_glibc_idle, Glibc, "locked", BARE_STDIO)),
        copies(copy_unlocked, Glibc, "unlocked", BARE_STDIO),
        puts(put, Weir, "threads"),
        idle(puts(put_idle, Weir, "threads")),
        puts(put_glibc, Glibc, "locked"),
        idle(puts(put_glibc_idle, Glibc, "locked")),
        Entry::new("putc: musl, locked", Program::Musl, "putc", "locked").count(COUNT).passes(3),
        bare(BARE, buffers.weir).short().passes(3),
        bare(BARE_STDIO, buffers.stdio).short().passes(3),
    ];
    let rows = vec![
        row("locked putc: glibc's, one thread", put, put_glibc, Time::User, Requirement::Faster),
        row(
            "locked putc: glibc's, a second thread",
            put_idle,
            put_glibc_idle,
            Time::User,
            Requirement::Faster,
        ),
        row("locked putc+getc: glibc's, one thread", copy, copy_glibc, Time::User, Requirement::Faster),
        row(
            "locked putc+getc: glibc's, a second thread",
            copy_idle,
            copy_glibc_idle,
            Time::User,
            Requirement::Faster,
        ),
        row(
            "putc+getc, lock held: glibc's unlocked calls",
            copy_held,
            copy_unlocked,
            Time::User,
            Requirement::NotSlowerThan(1.0),
        ),
    ];
    let title = "bytes: locked streams";
    Group { name: "locked", title, unit: "byte", budget_s: 20.0, entries, rows }
}

const MEMCHR_BUFFER: u64 = 64 << 10;
const FGETS: &str = "glibc, fgets and fputs";
const GETLINE: &str = "glibc, getline and fwrite";
const MEMCHR: &str = "memchr loop, 64 KiB";

/// Returns the contenders for lines with the output `out`.
fn line_entries(out: Out) -> Vec<Entry> {
    use Program::{Glibc, Go, Hand, Musl, Rust, Sfio, Weir};
    let entry = |label: &str, program, name| Entry::new(label, program, "lines", name).out(out);
    let ours = entry(OURS, Weir, "getrec-write").bare(BARE);
    vec![
        ours.again(),
        ours,
        entry(FGETS, Glibc, "fgets").bare(BARE_STDIO),
        entry("glibc, fgets_unlocked and fputs_unlocked", Glibc, "fgets-unlocked").bare(BARE_STDIO),
        entry(GETLINE, Glibc, "getline").bare(BARE_STDIO),
        entry(MEMCHR, Hand, "memchr").buffer(MEMCHR_BUFFER).bare(BARE_64K),
        entry("musl, fgets and fputs", Musl, "fgets"),
        entry("musl, getline and fwrite", Musl, "getline"),
        entry("sfio, sfgetr and sfwrite", Sfio, "getr-write").bare(BARE_8K),
        entry("Rust, read_until and write_all", Rust, "-").bare(BARE_8K),
        entry("Go, ReadSlice and Write", Go, "-").bare(BARE_STDIO),
    ]
}

fn lines_user(buffers: Buffers) -> Group {
    const PASSES: u32 = 2;
    let mut entries: Vec<Entry> =
        line_entries(Out::Null).into_iter().map(|entry| entry.passes(PASSES)).collect();
    let bares =
        [(BARE, buffers.weir), (BARE_STDIO, buffers.stdio), (BARE_8K, 8 << 10), (BARE_64K, MEMCHR_BUFFER)];
    entries.extend(bares.map(|(label, bytes)| bare(label, bytes).passes(PASSES).per_unit(LINE_BYTES)));
    let rows = vec![
        row("lines, user time: fgets+fputs", OURS, FGETS, Time::User, Requirement::TimesAsFast(2.5)),
        row("lines, user time: getline+fwrite", OURS, GETLINE, Time::User, Requirement::TimesAsFast(2.5)),
        row("lines, user time: memchr over 64 KiB", OURS, MEMCHR, Time::User, Requirement::Within(1.15)),
        twice("A/A: lines twice, user time", OURS, Time::User, 0.03),
    ];
    let title = "lines in and out, user time";
    Group { name: "lines", title, unit: "line", budget_s: 25.0, entries, rows }
}

fn lines_elapsed() -> Group {
    // Elapsed time includes the system calls, so the entries of bare calls do not run.
    let entries = line_entries(Out::New).into_iter().map(|entry| Entry { bare: None, ..entry }).collect();
    let rows = vec![
        row("lines, elapsed: fgets+fputs", OURS, FGETS, Time::Elapsed, Requirement::TimesAsFast(1.5)),
        row("lines, elapsed: getline+fwrite", OURS, GETLINE, Time::Elapsed, Requirement::TimesAsFast(1.5)),
        row("lines, elapsed: memchr over 64 KiB", OURS, MEMCHR, Time::Elapsed, Requirement::Within(1.15)),
        twice("A/A: lines twice, elapsed", OURS, Time::Elapsed, 0.1),
    ];
    let title = "lines in and out, elapsed, to a new file";
    Group { name: "lines-elapsed", title, unit: "line", budget_s: 20.0, entries, rows }
}

fn formatted() -> Group {
    use Program::{Glibc, Go, Musl, Rust, Sfio, Weir};
    const COUNT: u64 = 100_000;
    let entry = |label: &str, program, name| Entry::new(label, program, "formatted", name).count(COUNT);
    let (printf, put) = ("libweir, weir_printf", "libweir, weir_put_*");
    let (fprintf, rust) = ("glibc, fprintf", "Rust, write!");
    let ours = entry(put, Weir, "put");
    let entries = vec![
        ours.again(),
        ours,
        entry(printf, Weir, "printf"),
        entry(fprintf, Glibc, "printf"),
        entry(rust, Rust, "-"),
        entry("musl, fprintf", Musl, "printf"),
        entry("sfio, sfprintf", Sfio, "printf"),
        entry("Go, Fprintf", Go, "-"),
    ];
    let rows = vec![
        row("%s %d %f: weir_printf, fprintf", printf, fprintf, Time::Cpu, Requirement::TimesAsFast(1.5)),
        row("%s %d %f: weir_put_*, fprintf", put, fprintf, Time::Cpu, Requirement::TimesAsFast(4.0)),
        row("%s %d %f: weir_printf, Rust's write!", printf, rust, Time::Cpu, Requirement::Faster),
        row("%s %d %f: weir_put_*, Rust's write!", put, rust, Time::Cpu, Requirement::Faster),
        twice("A/A: weir_put_* twice", put, Time::Cpu, 0.03),
    ];
    let title = "formatted lines: %s %d %f";
    Group { name: "formatted", title, unit: "line", budget_s: 15.0, entries, rows }
}

/// Returns the group of single calls: the same program compiled with glibc's stdio and with weir/stdio.h.
fn calls() -> Group {
    const COUNT: u64 = 500_000;
    let fast = Requirement::TimesAsFast(1.5);
    let equal = Requirement::NotSlowerThan(1.0);
    let jobs = [
        ("literal", "one call: printf of a literal text", fast),
        ("string", "one call: fprintf of %s", fast),
        ("integer", "one call: fprintf of %d", fast),
        ("15 digits", "one call: fprintf of %.15g", equal),
        ("17 digits", "one call: fprintf of %.17g", equal),
        ("fputs", "one call: fputs of 4 to 11 bytes", equal),
        ("fwrite", "one call: fwrite of 8 bytes", equal),
    ];
    let label = |who: &str, name: &str| format!("{who}, {name}");
    let entry = |who: &str, program, name: &'static str| {
        Entry::new(&label(who, name), program, "calls", name).count(COUNT)
    };
    let mut entries = Vec::new();
    let mut rows = Vec::new();
    for (name, title, requirement) in jobs {
        entries.push(entry("weir/stdio.h", Program::CallsWeir, name));
        entries.push(entry("glibc", Program::CallsGlibc, name));
        rows.push(row(title, &label("weir/stdio.h", name), &label("glibc", name), Time::Cpu, requirement));
    }
    entries.push(entry("weir/stdio.h", Program::CallsWeir, "string").again());
    rows.push(twice("A/A: fprintf of %s twice", "weir/stdio.h, string", Time::Cpu, 0.03));
    let title = "single calls of stdio";
    Group { name: "calls", title, unit: "call", budget_s: 20.0, entries, rows }
}

fn blocks() -> Group {
    use Program::{Glibc, Hand, Weir};
    let mut entries = Vec::new();
    let mut rows = Vec::new();
    for (size, bytes, names) in [
        ("64 KiB", 64 << 10, ["calls of 64 KiB, elapsed: read, write", "calls of 64 KiB, CPU: read, write"]),
        ("1 MiB", 1 << 20, ["calls of 1 MiB, elapsed: read, write", "calls of 1 MiB, CPU: read, write"]),
    ] {
        let entry = |label: String, program, name| {
            Entry::new(&label, program, "blocks", name).out(Out::Over).buffer(bytes).passes(3)
        };
        let ours = entry(format!("libweir, {size}"), Weir, "read-write");
        let system = entry(format!("read and write, {size}"), Hand, "system-calls");
        rows.extend([(names[0], Time::Elapsed), (names[1], Time::Cpu)].map(|(name, time)| {
            row(name, &ours.label, &system.label, time, Requirement::NotSlowerThan(1.02))
        }));
        let stdio = entry(format!("glibc, fread and fwrite, {size}"), Glibc, "fread");
        entries.extend([system.again(), system, ours, stdio]);
    }
    rows.push(twice(
        "A/A: read and write of 64 KiB twice, elapsed",
        "read and write, 64 KiB",
        Time::Elapsed,
        0.1,
    ));
    rows.push(twice("A/A: read and write of 64 KiB twice, CPU", "read and write, 64 KiB", Time::Cpu, 0.03));
    let title = "large calls";
    Group { name: "blocks", title, unit: "byte", budget_s: 20.0, entries, rows }
}
