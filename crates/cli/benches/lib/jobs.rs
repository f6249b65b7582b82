//! What is compared with what: the groups of contenders and the rows that are judged.

use crate::Failed;
use crate::contender::{self, Entry, Out, Program};
use crate::data::Data;

/// Contenders that run in the same rounds.
pub struct Group {
    /// As an argument chooses it.
    pub name: &'static str,
    pub title: &'static str,
    /// What the figures are for.
    pub unit: &'static str,
    pub budget_s: f64,
    pub entries: Vec<Entry>,
    pub rows: Vec<Row>,
}

/// Which time is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// CPU time without that of the system calls.
    User,
    /// CPU time, exact.
    Cpu,
    Elapsed,
}

/// What is asked of libweir.
#[derive(Clone, Copy)]
pub enum Want {
    /// So many times as fast.
    TimesAsFast(f64),
    /// Faster, beyond doubt: the whole interval is.
    Faster,
    /// At most so many times the other's time.
    Within(f64),
    /// At most so many times the other's time, but for the noise: the interval's lower end is.
    NotSlowerThan(f64),
    /// The same thing twice: they are to be no further apart than this.
    SameTwice(f64),
}

/// One line of the table of targets.
pub struct Row {
    pub name: &'static str,
    pub ours: String,
    pub theirs: String,
    pub time: Time,
    pub want: Want,
}

fn row(name: &'static str, ours: &str, theirs: &str, time: Time, want: Want) -> Row {
    Row { name, ours: ours.into(), theirs: theirs.into(), time, want }
}

fn twice(name: &'static str, label: &str, time: Time, apart: f64) -> Row {
    row(name, label, &format!("{label}, again"), time, Want::SameTwice(apart))
}

/// All of them, in the order in which they run.
pub fn groups(data: &Data) -> Result<Vec<Group>, Failed> {
    let asked = Entry::new("default buffer", Program::Weir, "buffer", "default");
    let buffer_bytes = contender::run(&asked, data)?.units as u64;
    Ok(vec![bytes(buffer_bytes), putc(), lines_user(buffer_bytes), lines_elapsed(), formatted(), blocks()])
}

const STDIO_BUFFER: u64 = 4096; // glibc's is st_blksize
const MEMCHR_BUFFER: u64 = 64 << 10;

const OURS: &str = "libweir";
const BARE: &str = "bare system calls, libweir's buffer";
const BARE_4K: &str = "bare system calls, 4 KiB";
const BARE_64K: &str = "bare system calls, 64 KiB";
const LOCKED: &str = "glibc, locked";
const UNLOCKED: &str = "glibc, unlocked";
const MEMORY: &str = "hand loop, state in memory";
const REGISTERS: &str = "hand loop, state in registers";

fn bare(label: &str, buffer_bytes: u64) -> Entry {
    Entry::new(label, Program::Hand, "blocks", "system-calls").buffer(buffer_bytes)
}

fn bytes(buffer_bytes: u64) -> Group {
    use Program::{Glibc, Go, Hand, Musl, Rust, Sfio, Weir};
    let weir = |label, name| Entry::new(label, Weir, "bytes", name).bare(BARE);
    let glibc = |label, name| Entry::new(label, Glibc, "bytes", name).bare(BARE_4K);
    let hand = |label, name| Entry::new(label, Hand, "bytes", name).buffer(buffer_bytes).bare(BARE);
    let ours = weir(OURS, "getc-putc");
    let entries = vec![
        ours.again(),
        ours,
        weir("libweir, cursor", "cursor"),
        weir("libweir, WEIR_THREADS", "threads"),
        weir("libweir, WEIR_THREADS, idle thread", "threads").with_idle_thread(),
        weir("libweir, lock held", "held"),
        glibc(LOCKED, "locked"),
        glibc("glibc, locked, idle thread", "locked").with_idle_thread(),
        glibc(UNLOCKED, "unlocked"),
        hand(MEMORY, "memory"),
        hand(REGISTERS, "registers"),
        Entry::new("musl, locked", Musl, "bytes", "locked"),
        Entry::new("musl, unlocked", Musl, "bytes", "unlocked"),
        Entry::new("sfio", Sfio, "bytes", "getc-putc"),
        Entry::new("Rust, bytes and write_all", Rust, "bytes", "-"),
        Entry::new("Go, ReadByte and WriteByte", Go, "bytes", "-"),
        bare(BARE, buffer_bytes),
        bare(BARE_4K, STDIO_BUFFER),
    ];
    let rows = vec![
        row("putc+getc: glibc's locked calls", OURS, LOCKED, Time::User, Want::TimesAsFast(2.5)),
        row("putc+getc: glibc's unlocked calls", OURS, UNLOCKED, Time::User, Want::NotSlowerThan(1.0)),
        row(
            "putc+getc, lock held: the same",
            "libweir, lock held",
            UNLOCKED,
            Time::User,
            Want::NotSlowerThan(1.0),
        ),
        row("putc+getc: a loop with its state in memory", OURS, MEMORY, Time::User, Want::Within(1.1)),
        row(
            "cursor: a loop with its state in registers",
            "libweir, cursor",
            REGISTERS,
            Time::User,
            Want::Within(1.1),
        ),
        row(
            "locked putc+getc: glibc's, one thread",
            "libweir, WEIR_THREADS",
            LOCKED,
            Time::User,
            Want::Faster,
        ),
        row(
            "locked putc+getc: glibc's, a second thread",
            "libweir, WEIR_THREADS, idle thread",
            "glibc, locked, idle thread",
            Time::User,
            Want::Faster,
        ),
        twice("A/A: putc+getc twice", OURS, Time::User, 0.03),
    ];
    let title = "bytes: getc and putc";
    Group { name: "bytes", title, unit: "byte", budget_s: 60.0, entries, rows }
}

/// Only writing, so that a fast weir_getc cannot hide a slow weir_putc.
fn putc() -> Group {
    use Program::{Glibc, Musl, Weir};
    const COUNT: u64 = 32 << 20;
    let weir = |label, name| Entry::new(label, Weir, "putc", name).count(COUNT);
    let other = |label, program| Entry::new(label, program, "putc", "locked").count(COUNT);
    let entries = vec![
        weir(OURS, "plain"),
        weir("libweir, WEIR_THREADS", "threads"),
        weir("libweir, WEIR_THREADS, idle thread", "threads").with_idle_thread(),
        other(LOCKED, Glibc),
        other("glibc, locked, idle thread", Glibc).with_idle_thread(),
        other("musl, locked", Musl),
    ];
    let rows = vec![
        row("locked putc: glibc's, one thread", "libweir, WEIR_THREADS", LOCKED, Time::Cpu, Want::Faster),
        row(
            "locked putc: glibc's, a second thread",
            "libweir, WEIR_THREADS, idle thread",
            "glibc, locked, idle thread",
            Time::Cpu,
            Want::Faster,
        ),
    ];
    let title = "bytes: putc alone, locked";
    Group { name: "putc", title, unit: "byte", budget_s: 15.0, entries, rows }
}

const FGETS: &str = "glibc, fgets and fputs";
const GETLINE: &str = "glibc, getline and fwrite";
const MEMCHR: &str = "memchr loop, 64 KiB";

/// Everyone, with `out`, and with what its own system calls cost.
fn line_entries(out: Out, passes: u32) -> Vec<Entry> {
    use Program::{Glibc, Go, Hand, Musl, Rust, Sfio, Weir};
    let entry =
        |label: &str, program, name| Entry::new(label, program, "lines", name).out(out).passes(passes);
    let ours = entry(OURS, Weir, "getrec-write").bare(BARE);
    vec![
        ours.again(),
        ours,
        entry(FGETS, Glibc, "fgets").bare(BARE_4K),
        entry("glibc, fgets_unlocked and fputs_unlocked", Glibc, "fgets-unlocked").bare(BARE_4K),
        entry(GETLINE, Glibc, "getline").bare(BARE_4K),
        entry(MEMCHR, Hand, "memchr").buffer(MEMCHR_BUFFER).bare(BARE_64K),
        entry("musl, fgets and fputs", Musl, "fgets"),
        entry("musl, getline and fwrite", Musl, "getline"),
        entry("sfio, sfgetr and sfwrite", Sfio, "getr-write"),
        entry("Rust, read_until and write_all", Rust, "-"),
        entry("Go, ReadSlice and Write", Go, "-"),
    ]
}

fn lines_user(buffer_bytes: u64) -> Group {
    const PASSES: u32 = 2;
    let mut entries = line_entries(Out::Null, PASSES);
    let bares = [(BARE, buffer_bytes), (BARE_4K, STDIO_BUFFER), (BARE_64K, MEMCHR_BUFFER)];
    entries.extend(bares.map(|(label, buffer_bytes)| bare(label, buffer_bytes).passes(PASSES)));
    let rows = vec![
        row("lines, user time: fgets+fputs", OURS, FGETS, Time::User, Want::TimesAsFast(2.5)),
        row("lines, user time: getline+fwrite", OURS, GETLINE, Time::User, Want::TimesAsFast(2.5)),
        row("lines, user time: memchr over 64 KiB", OURS, MEMCHR, Time::User, Want::Within(1.15)),
        twice("A/A: lines twice, user time", OURS, Time::User, 0.03),
    ];
    let title = "lines in and out, user time";
    Group { name: "lines", title, unit: "line", budget_s: 30.0, entries, rows }
}

fn lines_elapsed() -> Group {
    // Of new files nothing is taken off: the bare calls are not run here.
    let entries = line_entries(Out::New, 1).into_iter().map(|entry| Entry { bare: None, ..entry }).collect();
    let rows = vec![
        row("lines, elapsed: fgets+fputs", OURS, FGETS, Time::Elapsed, Want::TimesAsFast(1.5)),
        row("lines, elapsed: getline+fwrite", OURS, GETLINE, Time::Elapsed, Want::TimesAsFast(1.5)),
        row("lines, elapsed: memchr over 64 KiB", OURS, MEMCHR, Time::Elapsed, Want::Within(1.15)),
        twice("A/A: lines twice, elapsed", OURS, Time::Elapsed, 0.1),
    ];
    let title = "lines in and out, elapsed, to a new file";
    Group { name: "lines-elapsed", title, unit: "line", budget_s: 25.0, entries, rows }
}

fn formatted() -> Group {
    use Program::{Glibc, Go, Musl, Rust, Sfio, Weir};
    const COUNT: u64 = 300_000;
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
        row("%s %d %f: weir_printf, fprintf", printf, fprintf, Time::Cpu, Want::TimesAsFast(1.5)),
        row("%s %d %f: weir_put_*, fprintf", put, fprintf, Time::Cpu, Want::TimesAsFast(4.0)),
        row("%s %d %f: weir_printf, Rust's write!", printf, rust, Time::Cpu, Want::Faster),
        row("%s %d %f: weir_put_*, Rust's write!", put, rust, Time::Cpu, Want::Faster),
        twice("A/A: weir_put_* twice", put, Time::Cpu, 0.03),
    ];
    let title = "formatted lines: %s %d %f";
    Group { name: "formatted", title, unit: "line", budget_s: 20.0, entries, rows }
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
        rows.extend(
            [(names[0], Time::Elapsed), (names[1], Time::Cpu)]
                .map(|(name, time)| row(name, &ours.label, &system.label, time, Want::NotSlowerThan(1.02))),
        );
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
    Group { name: "blocks", title, unit: "byte", budget_s: 25.0, entries, rows }
}
