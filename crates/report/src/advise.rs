//! The screen of `weir advise`: the answer, the three best ways side by side, the reasons, the code.

use weir_model::Size;
use weir_model::advise::{AdviceDocument, AdviceHost, Choice, OtherWay, TracedProgram, WriteMethod};
use weir_model::duration::{format_seconds, percent, three_digits};
use weir_model::number::{about_bytes, counted, thousands};

use crate::block::Block;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, Table, TableCell, TableRow};
use crate::terminal;

/// The most other ways that are named, without those that bypass the streams; the document has all.
const OTHERS: usize = 4;

/// Returns the document as text for a terminal, with the program of the first choice under `key`.
pub fn screen(document: &AdviceDocument, key: &str, style: &Style) -> String {
    let mut text = terminal::text(&blocks(document), style);
    if let Some(program) = document.choices.first().and_then(|first| first.code.get(key)) {
        text += &format!("\n  The first in {key}, a whole program:\n\n{program}");
    }
    text
}

fn blocks(document: &AdviceDocument) -> Vec<Block> {
    let mut blocks = vec![Block::Title(title(document))];
    if let Some(traced) = &document.traced {
        blocks.push(Block::Text(traced_text(traced)));
        blocks.extend(change(traced).map(Block::Text));
    }
    let Some(first) = document.choices.first() else { return blocks };
    blocks.push(Block::Lead(lead(first)));
    if let Some(problem) = &first.why_not {
        blocks.push(Block::Warning(format!(
            "No way holds all limits here. The nearest: {problem}. Ask for less, or use another device."
        )));
    }
    blocks.extend(document.prices.busy_share().map(|share| Block::Warning(busy(share))));
    blocks.push(Block::Table(beside(&document.choices)));
    for (at, choice) in document.choices.iter().enumerate().skip(1) {
        let why = choice.why_not.clone().unwrap_or_default();
        blocks.push(answer(&format!("Why not {}, {}?", at + 1, choice.name), &format!("{}.", capital(&why))));
    }
    blocks.extend(first.caveats.iter().map(|text| Block::Warning(text.clone())));
    blocks.extend(document.notes.iter().map(|text| Block::Text(text.clone())));
    for other in shown(&document.others) {
        blocks.push(Block::Missing { what: other.name.clone(), why: other.why_not.clone() });
    }
    blocks.extend(document.assumptions.iter().map(|text| Block::Aside(text.clone())));
    blocks.push(Block::Facts(facts(document)));
    blocks
}

fn busy(share: f64) -> String {
    format!(
        "Other processes had the processors for {:.0} % of the time in which the prices were measured, so that times are too \
         high and the order may differ. Ask again with --recalibrate when the machine is quiet.",
        share * 100.0
    )
}

fn answer(question: &str, answer: &str) -> Block {
    Block::Answer { question: question.into(), answer: answer.into() }
}

/// Returns a text with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    first + letters.as_str()
}

/// Formats bytes at risk: the size of a buffer exactly, others as an estimate.
fn bytes(bytes: u64) -> String {
    if bytes.is_power_of_two() { Size(bytes).to_string() } else { about_bytes(bytes as f64) }
}

fn title(document: &AdviceDocument) -> String {
    let asked = &document.question;
    let mut parts = vec![
        format!("{} records", Size(asked.record_bytes)),
        format!("{} a second", rate(asked.rate)),
        format!("may lose: {}", asked.loss.word()),
        format!("visible within {}", format_seconds(asked.latency_s)),
    ];
    if asked.sharers > 1 {
        parts.push(format!("{} writers", asked.sharers));
    }
    parts.push(format!("{} ({})", document.host.fs, asked.dir));
    format!("advise · {}", parts.join(" · "))
}

/// Formats records or calls per second.
fn rate(value: f64) -> String {
    if value >= 1000.0 { thousands(value.round() as u64) } else { three_digits(value) }
}

fn lead(first: &Choice) -> String {
    let cost = &first.predicted;
    let loss = match (cost.at_risk_kill_bytes, cost.at_risk_power_bytes) {
        (0, 0) => "Neither a kill nor a power cut loses a record that was accepted.".into(),
        (0, power) => format!("A kill loses nothing, a power cut up to {}.", bytes(power)),
        (kill, power) => format!("A kill loses up to {}, a power cut up to {}.", bytes(kill), bytes(power)),
    };
    let name = match first.method {
        WriteMethod::Libweir => first.name.clone(),
        _ => capital(&first.name),
    };
    format!(
        "{name}: {} calls a second, {} of one CPU. {loss}",
        rate(cost.calls_per_s),
        percent(cost.cpu_percent)
    )
}

/// One line of the table: its label, and the value of a choice.
type Line = (&'static str, fn(&Choice) -> String);

fn beside(choices: &[Choice]) -> Table {
    let mut lines: Vec<Line> = vec![
        ("keeps all limits", |choice| if choice.holds { "yes".into() } else { "no".into() }),
        ("calls a second", |choice| rate(choice.predicted.calls_per_s)),
        ("CPU", |choice| percent(choice.predicted.cpu_percent)),
        ("busy, with waits", |choice| percent(choice.predicted.busy_percent)),
        ("most records a second", |choice| rate(choice.predicted.max_rate)),
        ("added latency", |choice| format_seconds(choice.predicted.latency_s)),
        ("a kill loses", |choice| bytes(choice.predicted.at_risk_kill_bytes)),
        ("a power cut loses", |choice| bytes(choice.predicted.at_risk_power_bytes)),
    ];
    if choices.iter().any(|choice| choice.predicted.flash_bytes_per_day.is_some()) {
        lines.push(("flash written a day", |choice| {
            choice.predicted.flash_bytes_per_day.map_or(String::new(), about_bytes)
        }));
    }
    let mut columns = vec![Column::new("", "", Align::Left)];
    columns.extend((1..=choices.len()).map(|number| Column::new(&number.to_string(), "", Align::Right)));
    let row = |(label, value): &Line| {
        let mut cells: Vec<TableCell> = vec![(*label).into()];
        cells.extend(choices.iter().map(|choice| match value(choice) {
            no if no == "no" => TableCell::new(no, Emphasis::Bad),
            text => text.into(),
        }));
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: lines.iter().map(row).collect(), ..Table::default() }
}

/// Returns the ways that a reader expects to be named: the next best, and those that bypass the streams.
fn shown(others: &[OtherWay]) -> Vec<&OtherWay> {
    let expert = |other: &&OtherWay| {
        matches!(
            other.method,
            WriteMethod::Mmap | WriteMethod::Direct | WriteMethod::IoUring | WriteMethod::InKernel
        )
    };
    let next = others.iter().filter(|other| !expert(other)).take(OTHERS);
    next.chain(others.iter().filter(expert)).collect()
}

fn facts(document: &AdviceDocument) -> Vec<String> {
    let prices = &document.prices;
    let ns = |ns: f64| format_seconds(ns / 1e9);
    let mut facts = vec![format!("measured in {}", document.question.dir)];
    let ends = [prices.write.first(), prices.write.last()].into_iter().flatten();
    facts.extend(ends.map(|one| format!("write(2) of {} {}", Size(one.bytes), ns(one.price.elapsed_ns))));
    facts.extend(prices.fdatasync.map(|price| format!("write and fdatasync(2) {}", ns(price.elapsed_ns))));
    facts.extend(prices.o_dsync.map(|price| format!("O_DSYNC write {}", ns(price.elapsed_ns))));
    facts.extend(prices.device_bytes_per_s.map(|rate| format!("device {} a second", about_bytes(rate))));
    facts.push(host(&document.host));
    facts.push("all programs: --json".into());
    facts.push("that of another method: --code --method mmap".into());
    facts.push("again: --recalibrate".into());
    facts
}

fn host(host: &AdviceHost) -> String {
    format!("kernel {}, {} CPUs, {}", host.kernel, host.cpus, host.medium.text())
}

fn traced_text(traced: &TracedProgram) -> String {
    let mode = traced.mode.map_or("unknown", |mode| mode.name());
    let findings = match traced.findings.is_empty() {
        true => String::new(),
        false => format!(" Findings: {}.", traced.findings.join(", ")),
    };
    format!(
        "{} wrote {} to {} (descriptor {}) in {} and {} in {}; its buffering is {mode}.{findings}",
        traced.comm,
        about_bytes(traced.bytes as f64),
        traced.path,
        traced.fd,
        counted(traced.calls, "call"),
        counted(traced.syncs, "sync"),
        format_seconds(traced.elapsed_s),
    )
}

fn change(traced: &TracedProgram) -> Option<String> {
    let sites: Vec<String> = traced.change.iter().map(ToString::to_string).collect();
    (!sites.is_empty()).then(|| format!("Change there: {}.", sites.join("; ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_model::Mode;
    use weir_model::advise::{
        AdviceLanguage, AdvicePrices, AdviceQuestion, AllowedLoss, Medium, PredictedCost, SCHEMA, SyncPoint,
    };

    use super::*;

    fn choice(name: &str, why_not: Option<&str>) -> Choice {
        Choice {
            name: name.into(),
            method: WriteMethod::Syscall,
            mode: Mode::None,
            buffer_bytes: 0,
            sync: SyncPoint::Record,
            flush_period_s: None,
            sync_period_s: None,
            holds: true,
            predicted: PredictedCost {
                calls_per_s: 100.0,
                cpu_percent: 0.331,
                busy_percent: 0.906,
                record_ns: 181_000.0,
                record_ns_range: None,
                max_rate: 5520.0,
                latency_s: 181e-6,
                at_risk_kill_bytes: 0,
                at_risk_power_bytes: 65_536,
                flash_bytes_per_day: Some(8.64e9),
            },
            why_not: why_not.map(String::from),
            caveats: vec!["A sync that failed once is final.".into()],
            code: BTreeMap::from([("c".to_string(), "int main(void) { return 0; }\n".to_string())]),
        }
    }

    fn document() -> AdviceDocument {
        let other = |name: &str, method| OtherWay {
            name: name.into(),
            method,
            holds: false,
            predicted: None,
            why_not: "it does not apply".into(),
            code: BTreeMap::new(),
        };
        let mut others: Vec<OtherWay> =
            (0..9).map(|number| other(&format!("buffer {number}"), WriteMethod::Stdio)).collect();
        others.push(other("store into a shared mapping", WriteMethod::Mmap));
        AdviceDocument {
            schema: SCHEMA.into(),
            question: AdviceQuestion {
                record_bytes: 200,
                rate: 50.0,
                loss: AllowedLoss::None,
                latency_s: 1.0,
                sharers: 2,
                medium: Medium::Sd,
                lang: AdviceLanguage::C,
                dir: "/data".into(),
            },
            host: AdviceHost {
                fs: "ext4".into(),
                kernel: "6.1".into(),
                cpus: 2,
                medium: Medium::Sd,
                writeback_s: 35.0,
                dirty_limit_bytes: None,
            },
            prices: AdvicePrices::default(),
            assumptions: vec!["Assumed: pages of 16 KiB.".into()],
            choices: vec![
                choice("write each record", None),
                choice("second way", Some("takes twice the time")),
                choice("third way", Some("needs libweir")),
            ],
            others,
            notes: vec!["Check every result.".into()],
            traced: None,
        }
    }

    #[test]
    fn the_answer_comes_first_and_the_code_last() {
        let screen = screen(&document(), "c", &Style::default());
        let position = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
        let order = [
            "advise · 200 B records · 50.0 a second · may lose: none",
            "Write each record: 100 calls a second",
            "keeps all limits",
            "Why not 2, second way? Takes twice the time.",
            "Check every result.",
            "store into a shared mapping: it does not apply",
            "Assumed: pages",
            "The first in c",
            "int main(void)",
        ];
        let positions: Vec<usize> = order.into_iter().map(position).collect();
        assert!(positions.is_sorted(), "{screen}");
        assert!(
            screen.contains("8.64 GB") && screen.contains("64 KiB") && !screen.contains("buffer 4"),
            "{screen}"
        );
    }

    #[test]
    fn a_question_without_an_answer_is_a_warning() {
        let mut document = document();
        document.choices[0].holds = false;
        document.choices[0].why_not = Some("it does about 5,490 records a second here".into());
        let screen = screen(&document, "c", &Style::default());
        assert!(screen.contains("! No way holds all limits here") && screen.contains("no"), "{screen}");
    }

    #[test]
    fn prices_of_a_busy_machine_are_named_as_such() {
        let mut document = document();
        document.prices.cpu_wait_share = Some(0.05);
        assert!(!screen(&document, "c", &Style::default()).contains("Other processes"));
        document.prices.cpu_wait_share = Some(0.43);
        let screen = screen(&document, "c", &Style::default());
        assert!(screen.contains("! Other processes had the processors for 43 % of the time"), "{screen}");
        assert!(screen.contains("--recalibrate"), "{screen}");
    }

    #[test]
    fn names_of_a_traced_program_are_never_obeyed() {
        let mut document = document();
        document.traced = Some(TracedProgram {
            comm: "w\u{1b}[31m".into(),
            fd: 3,
            path: "/tmp/out".into(),
            calls: 5000,
            bytes: 5000,
            elapsed_s: 1.0,
            syncs: 0,
            mode: None,
            change: vec!["main at writer.c:12".into()],
            findings: vec!["tiny-writes".into()],
        });
        let screen = screen(&document, "c", &Style::default());
        assert!(!screen.contains('\u{1b}') && screen.contains("\\x1b"), "{screen}");
        assert!(screen.contains("Change there: main at writer.c:12."), "{screen}");
    }
}
