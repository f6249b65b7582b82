//! Machine, rounds and noise, in small print above the tables.

use weir_model::bench::{BenchDocument, Machine, Noise};
use weir_model::duration::format_seconds;
use weir_model::number::counted;

use crate::block::Block;
use crate::number::{bytes_like, percent};

/// Returns the lines under the title.
pub(super) fn blocks(document: &BenchDocument) -> Vec<Block> {
    let mut blocks = vec![Block::Facts(machine(&document.machine)), Block::Facts(run(document))];
    if !document.complete {
        blocks.push(Block::Warning("The run did not finish: the tables have what it measured.".into()));
    }
    blocks
}

/// Returns the command line with the program's file name only.
pub(super) fn command(document: &BenchDocument) -> String {
    words(&document.command)
}

/// Returns a command line with the program's file name only.
pub(super) fn words(command: &[String]) -> String {
    let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_string();
    let words = command.iter().enumerate();
    words.map(|(at, word)| if at == 0 { name(word) } else { word.clone() }).collect::<Vec<_>>().join(" ")
}

fn machine(machine: &Machine) -> Vec<String> {
    let memory = (machine.memory_bytes > 0).then(|| format!("{} of memory", memory(machine.memory_bytes)));
    let cpus = (machine.cpus > 0).then(|| counted(machine.cpus as u64, "processor"));
    let linux = (!machine.kernel.is_empty()).then(|| format!("Linux {}", machine.kernel));
    let governor = machine.governor.as_ref().map(|governor| format!("governor {governor}"));
    let known = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let host = machine.virtualization.clone();
    let facts = [known(&machine.cpu), cpus, memory, linux, known(&machine.libc), host, governor];
    facts.into_iter().flatten().collect()
}

/// Returns the size of the memory with three digits, because MemTotal is never a round number.
fn memory(bytes: u64) -> String {
    bytes_like(bytes, 1 << 30)
}

fn run(document: &BenchDocument) -> Vec<String> {
    let repeated = document.rounds.iter().filter(|round| round.repeated).count();
    let used = document.rounds.len() - repeated;
    let mut facts = vec![format!("{} in {}", counted(used as u64, "round"), format_seconds(document.took_s))];
    if repeated > 0 {
        facts.push(format!("{repeated} more disturbed and repeated"));
    }
    facts.push(noise(&document.noise));
    let outliers: usize = document.rows.iter().map(|row| row.outliers).sum();
    if outliers > 0 {
        facts.push(format!("{} kept", counted(outliers as u64, "outlier")));
    }
    facts
}

fn noise(noise: &Noise) -> String {
    let share = |name: &str, share: Option<f64>| share.map(|share| format!("{name} ±{} %", percent(share)));
    let known: Vec<String> =
        [share("CPU", noise.cpu), share("wall", noise.wall)].into_iter().flatten().collect();
    match known.as_slice() {
        [] => "A/A noise: too few pairs to say".into(),
        known => format!("A/A noise: {}", known.join(", ")),
    }
}
