//! weir is killed by SIGKILL at a random moment. The program goes on, and ends with its own output and status; nothing of
//! weir stays: no process, no file, no program in the kernel.
//!
//! `make campaign` kills each verb 300 times ($WEIR_KILLS), `make test-all` 20 times. The counts go to $WEIR_KILLS_FILE, and $WEIR_KILLS_OF
//! chooses verbs by name.

mod common;
#[path = "kills/kernel_objects.rs"]
mod kernel_objects;
#[path = "kills/victim.rs"]
mod victim;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{disk_dir, is_root, skip};
use victim::{Outcome, Victim};

/// A verb that is killed.
struct KilledVerb {
    name: &'static str,
    /// The words before the program, or before its PID.
    words: &'static [&'static str],
    attaches: bool,
    needs_root: bool,
}

const fn verb(name: &'static str, words: &'static [&'static str], attaches: bool) -> KilledVerb {
    KilledVerb { name, words, attaches, needs_root: false }
}

const VERBS: [KilledVerb; 12] = [
    KilledVerb { needs_root: true, ..verb("trace-ebpf", &["trace", "--engine", "ebpf", "--"], false) },
    verb("trace-ptrace", &["trace", "--engine", "ptrace", "--"], false),
    verb("trace-sample", &["trace", "--engine", "sample", "--"], false),
    KilledVerb { needs_root: true, ..verb("attach-ebpf", &["trace", "--engine", "ebpf", "-p"], true) },
    verb("attach-ptrace", &["trace", "--engine", "ptrace", "-p"], true),
    verb("attach-sample", &["trace", "--engine", "sample", "-p"], true),
    verb("run-max-delay", &["run", "--max-delay", "2ms", "--"], false),
    verb("run-rescue", &["run", "--rescue", "--"], false),
    verb("run-coalesce", &["run", "--coalesce", "--"], false),
    verb("flush", &["flush"], true),
    verb("peek", &["peek"], true),
    verb("top", &["top", "--interval", "200ms", "--once", "--pid"], true),
];

/// The counts of one verb.
#[derive(Debug, Default)]
struct KillCounts {
    tried: u32,
    lost: u32,
    left_behind: u32,
    /// Bytes came twice, as docs/run.md and docs/peek-and-flush.md say of a kill.
    doubled: u32,
    /// The kill came before the program's first instruction.
    before: u32,
    /// weir had already ended.
    after: u32,
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn wished(name: &str) -> bool {
    std::env::var("WEIR_KILLS_OF").map_or(true, |names| names.split(',').any(|one| one == name))
}

#[test]
#[ignore = "part of make campaign"]
fn no_kill_of_weir_harms_the_program() {
    let given = std::env::var("WEIR_KILLS").ok().map(|count| count.parse().expect("a number of kills"));
    let kills: u32 = given.unwrap_or(6);
    victim::adopt_orphans();
    for (seed, verb) in (1..).zip(VERBS).filter(|(_, verb)| wished(verb.name)) {
        if verb.needs_root && !is_root() {
            skip("no_kill_of_weir_harms_the_program", "the engine ebpf needs root");
            continue;
        }
        let counts = kill_often(&verb, kills, &mut Random(seed));
        report(verb.name, &counts);
        assert_eq!((counts.lost, counts.left_behind), (0, 0), "{}: {counts:?}", verb.name);
        let may_double = matches!(verb.name, "run-max-delay" | "flush");
        assert!(may_double || counts.doubled == 0, "{}: {counts:?}", verb.name);
    }
}

/// Kills the verb at moments that are spread over the time of a whole run.
fn kill_often(verb: &KilledVerb, kills: u32, random: &mut Random) -> KillCounts {
    let dir = disk_dir();
    Victim::build(dir.path());
    let whole = whole_run(verb, dir.path());
    let before = kernel_objects::orphans();
    let mut counts = KillCounts::default();
    while counts.tried < kills {
        let victim = Victim::start(dir.path(), verb.words, verb.attaches);
        std::thread::sleep(whole.mul_f64(random.fraction()));
        let outcome = victim.kill_weir_and_end();
        counts.tried += 1;
        match &outcome {
            Outcome::AsAlone { begun, weir_had_ended } => {
                counts.before += u32::from(!begun);
                counts.after += u32::from(*weir_had_ended);
            }
            Outcome::Doubled => counts.doubled += 1,
            Outcome::Lost(why) => {
                println!("{}, kill {}: {why}", verb.name, counts.tried);
                counts.lost += 1;
            }
            Outcome::LeftBehind(what) => {
                println!("{}, kill {}: left behind: {what}", verb.name, counts.tried);
                counts.left_behind += 1;
            }
        }
    }
    let left = kernel_objects::lasting_orphans(&before);
    if !left.is_empty() {
        println!("{}: left in the kernel: {left:?}", verb.name);
        counts.left_behind += left.len() as u32;
    }
    counts
}

/// Returns the duration of a run without a kill, which must be as the program alone.
fn whole_run(verb: &KilledVerb, dir: &Path) -> Duration {
    let began = Instant::now();
    let outcome = Victim::start(dir, verb.words, verb.attaches).end();
    assert!(
        matches!(outcome, Outcome::AsAlone { begun: true, .. }),
        "{}, not killed: {outcome:?}",
        verb.name
    );
    began.elapsed()
}

fn report(name: &str, counts: &KillCounts) {
    let KillCounts { tried, lost, left_behind, doubled, before, after } = counts;
    println!("{name}: {counts:?}");
    if let Some(path) = std::env::var_os("WEIR_KILLS_FILE") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let row = format!(
            "{{\"name\":\"{name}\",\"tried\":{tried},\"lost\":{lost},\"left_behind\":{left_behind},\
             \"doubled\":{doubled},\"before\":{before},\"after\":{after}}}\n"
        );
        file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the file of the counts");
    }
}
