//! The screens of `weir log`: the last line of a run, the status of a collector, the check of a log.

mod page;

use weir_model::Untrusted;
use weir_model::duration::format_seconds;
use weir_model::log::{BadRecord, LogCheckDocument, LogCounts, LogDocument, LogSource, LogWriter, Overflow};
use weir_model::number::{counted, thousands};

pub use page::{page, page_title};

use crate::number::in_binary;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};
use crate::text::{clean, wrap};

/// The most writers and sources that a screen shows.
const ROWS: usize = 40;

/// Returns what a run has collected, as a sentence.
pub fn summary_line(document: &LogDocument) -> String {
    let totals = &document.totals;
    let records = counted(totals.records, "record");
    let mut parts = vec![format!(
        "{records}, {} in {}",
        in_binary(document.log_bytes),
        format_seconds(document.elapsed_s)
    )];
    if document.rotations > 0 {
        parts.push(counted(document.rotations, "finished file"));
    }
    if document.syncs > 0 {
        parts.push(counted(document.syncs, "sync"));
    }
    parts.extend(exceptions(totals));
    parts.join("; ")
}

/// Returns what is not as the sources meant it.
fn exceptions(counts: &LogCounts) -> Vec<String> {
    let kinds = [
        (counts.dropped, "dropped"),
        (counts.refused, "refused because they are too long"),
        (counts.unfinished, "unfinished"),
        (counts.split, "split"),
        (counts.cut, "cut"),
    ];
    kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", thousands(count)))
        .collect()
}

/// Returns the status of a collector as text for a terminal.
pub fn status_screen(document: &LogDocument, style: &Style) -> String {
    let log = document.log.as_ref().map_or("standard output".to_string(), ToString::to_string);
    let title =
        format!("{log} · weir log, process {}, for {}", document.pid, format_seconds(document.elapsed_s));
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&title, style))];
    let rate = document.totals.records as f64 / document.elapsed_s.max(0.001);
    let mut facts = vec![format!("{}, {rate:.1} a second on average", summary_line(document))];
    facts.push(match document.pending_bytes {
        0 => "everything that was received is written".into(),
        bytes => format!("{} are not written yet", in_binary(bytes)),
    });
    if document.stalled {
        facts.push(format!("the log cannot be written now; {}", overflow_clause(document.overflow)));
    }
    match (&document.sync_error, document.last_sync_s) {
        (Some(error), _) => facts.push(error.clone()),
        (None, Some(seconds)) => facts.push(format!("the last sync was {} ago", format_seconds(seconds))),
        (None, None) => {}
    }
    for fact in facts {
        lines.extend(wrap(&clean(&fact, style), style.width, "  ", "  "));
    }
    if !document.sources.is_empty() {
        lines.push(String::new());
        lines.extend(sources_table(&document.sources).lines(2, style));
    }
    let more = document.sources.len().saturating_sub(ROWS);
    if more > 0 {
        lines.push(format!("  and {}; all are in --json", counted(more as u64, "more source")));
    }
    joined(&lines)
}

/// Returns what happens to records while the log cannot be written.
fn overflow_clause(overflow: Option<Overflow>) -> &'static str {
    match overflow {
        None => "new records wait, spill or are dropped, as its --overflow says",
        Some(Overflow::Block) => "its senders wait until it can (--overflow block)",
        Some(Overflow::Spill) => {
            "new records go to a spill file, and into the log when it can (--overflow spill)"
        }
        Some(Overflow::DropOldest) => {
            "when the memory of a source is full, its oldest records are dropped (--overflow drop-oldest)"
        }
        Some(Overflow::DropNewest) => {
            "when the memory of a source is full, its new records are dropped (--overflow drop-newest)"
        }
    }
}

fn sources_table(sources: &[LogSource]) -> Table {
    let right = |head: &str| Column::new(head, "", Align::Right);
    let columns = vec![
        Column::new("source", "", Align::Left),
        right("records"),
        right("received"),
        right("held"),
        right("dropped"),
        right("unfinished").priority(ColumnPriority::Rank(1)),
    ];
    let row = |source: &LogSource| {
        let dropped = source.counts.dropped + source.counts.refused;
        let cells = vec![
            TableCell::from(source.name.to_string()),
            thousands(source.counts.records).into(),
            in_binary(source.counts.bytes).into(),
            in_binary(source.held_bytes).into(),
            TableCell::new(thousands(dropped), if dropped > 0 { Emphasis::Bad } else { Emphasis::Plain }),
            thousands(source.counts.unfinished).into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: sources.iter().take(ROWS).map(row).collect(), ..Table::default() }
}

/// Returns the check of a log as text for a terminal. The verdict comes last.
pub fn check_screen(document: &LogCheckDocument, style: &Style) -> String {
    let title = format!(
        "{} · {} · {}",
        Untrusted::from(document.log.as_str()),
        in_binary(document.bytes),
        counted(document.records, "record")
    );
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&title, style)), String::new()];
    if document.writers.iter().any(|writer| !writer.name.is_empty()) {
        lines.extend(writers_table(&document.writers).lines(2, style));
        let more = document.writers.len().saturating_sub(ROWS);
        if more > 0 {
            lines.push(format!("  and {}; all are in --json", counted(more as u64, "more writer")));
        }
        lines.push(String::new());
    }
    if !document.bad.is_empty() {
        lines.extend(bad_table(&document.bad).lines(2, style));
        lines.push(String::new());
    }
    let (emphasis, verdict) = verdict(document);
    for line in wrap(&clean(&verdict, style), style.width, "  ", "  ") {
        lines.push(style.paint(emphasis, &line));
    }
    joined(&lines)
}

fn verdict(document: &LogCheckDocument) -> (Emphasis, String) {
    let missing: u64 = document.writers.iter().map(|writer| writer.missing).sum();
    let repeated: u64 = document.writers.iter().map(|writer| writer.repeated).sum();
    let faults = [
        (document.torn, "torn"),
        (document.interleaved, "interleaved"),
        (missing, "missing"),
        (repeated, "repeated or late"),
    ];
    let mut faults: Vec<String> = faults
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", thousands(*count)))
        .collect();
    if document.unfinished_bytes > 0 {
        faults.push(format!("{} behind the last record", in_binary(document.unfinished_bytes)));
    }
    if document.nul_bytes > 0 {
        faults.push(format!("{} NUL bytes at the end", thousands(document.nul_bytes)));
    }
    match faults.is_empty() {
        true if document.records == 1 => (Emphasis::Good, "The only record is whole.".into()),
        true => (Emphasis::Good, format!("All {} are whole.", counted(document.records, "record"))),
        false => {
            let whole = thousands(document.whole);
            let verb = if document.whole == 1 { "is" } else { "are" };
            (
                Emphasis::Bad,
                format!(
                    "{whole} of {} {verb} whole; {}.",
                    counted(document.records, "record"),
                    faults.join(", ")
                ),
            )
        }
    }
}

fn writers_table(writers: &[LogWriter]) -> Table {
    let right = |head: &str| Column::new(head, "", Align::Right);
    let columns = vec![
        Column::new("writer", "", Align::Left),
        right("records"),
        right("runs"),
        right("missing"),
        right("repeated"),
    ];
    let row = |writer: &LogWriter| {
        let fault =
            |count| TableCell::new(thousands(count), if count > 0 { Emphasis::Bad } else { Emphasis::Plain });
        let cells = vec![
            TableCell::from(writer.name.to_string()),
            thousands(writer.records).into(),
            thousands(writer.runs).into(),
            fault(writer.missing),
            fault(writer.repeated),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: writers.iter().take(ROWS).map(row).collect(), ..Table::default() }
}

fn bad_table(bad: &[BadRecord]) -> Table {
    let columns = vec![
        Column::new("record", "", Align::Right),
        Column::new("at byte", "", Align::Right),
        Column::new("length", "", Align::Right),
        Column::new("fault", "", Align::Left),
        Column::new("begins", "", Align::Left),
    ];
    let row = |bad: &BadRecord| {
        let excerpt: String = bad.excerpt.to_string().chars().take(30).collect();
        let cells = vec![
            TableCell::from(thousands(bad.record)),
            thousands(bad.offset).into(),
            thousands(bad.bytes).into(),
            TableCell::new(bad.kind.clone(), Emphasis::Bad),
            excerpt.into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: bad.iter().map(row).collect(), ..Table::default() }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> LogDocument {
        let counts =
            LogCounts { records: 2500, bytes: 25_000_000, dropped: 3, unfinished: 1, ..LogCounts::default() };
        LogDocument {
            schema: "weir-log/1".into(),
            log: Some("all.log".into()),
            pid: 7,
            elapsed_s: 2.5,
            totals: counts,
            log_bytes: 24_997_500,
            pending_bytes: 0,
            syncs: 1,
            last_sync_s: Some(0.5),
            sync_error: None,
            rotations: 2,
            stalls: 0,
            stalled: false,
            overflow: None,
            connections: 1,
            sources: vec![LogSource { name: "web\u{1b}[31m".into(), held_bytes: 12, counts }],
        }
    }

    #[test]
    fn a_run_is_summed_up_in_a_line() {
        let round = summary_line(&LogDocument { log_bytes: 15_000, ..document() });
        assert!(round.contains(", 14.6 KiB in "), "units of 1,024 only: {round}");
        let line = summary_line(&document());
        assert!(line.starts_with("2,500 records, 23.8 MiB in 2.50 s"), "{line}");
        assert!(line.ends_with("; 2 finished files; 1 sync; 3 dropped; 1 unfinished"), "{line}");
    }

    /// The sources are read if records may be dropped or spilled.
    #[test]
    fn a_stall_is_described_for_every_overflow() {
        for (overflow, clause) in [
            (None, "new records wait, spill or are dropped, as its --overflow says"),
            (Some(Overflow::Block), "its senders wait until it can (--overflow block)"),
            (Some(Overflow::Spill), "new records go to a spill file"),
            (
                Some(Overflow::DropOldest),
                "when the memory of a source is full, its oldest records are dropped",
            ),
            (Some(Overflow::DropNewest), "when the memory of a source is full, its new records are dropped"),
        ] {
            let stalled = LogDocument { stalled: true, overflow, ..document() };
            let screen = status_screen(&stalled, &Style::default());
            let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("cannot be written now; {clause}")), "{screen}");
        }
    }

    #[test]
    fn a_status_never_prints_escape_sequences() {
        let screen = status_screen(&document(), &Style::default());
        assert!(
            screen.contains("web\\x1b[31m") && screen.contains("the last sync was 500 ms ago"),
            "{screen}"
        );
    }

    #[test]
    fn the_verdict_of_a_check_names_each_fault() {
        let mut log = LogCheckDocument {
            schema: "weir-log-check/1".into(),
            log: "out".into(),
            bytes: 100,
            records: 10,
            whole: 10,
            torn: 0,
            interleaved: 0,
            unfinished_bytes: 0,
            nul_bytes: 0,
            writers: vec![LogWriter { name: "a".into(), records: 10, runs: 2, missing: 0, repeated: 0 }],
            bad: Vec::new(),
            command: Vec::new(),
            environment: Default::default(),
        };
        assert!(check_screen(&log, &Style::default()).ends_with("  All 10 records are whole.\n"));
        (log.records, log.whole) = (1, 1);
        assert!(check_screen(&log, &Style::default()).ends_with("  The only record is whole.\n"));
        log.records = 10;
        (log.whole, log.torn, log.unfinished_bytes, log.writers[0].missing) = (9, 1, 5, 2);
        let bad = BadRecord { record: 4, offset: 40, bytes: 9, kind: "torn".into(), excerpt: "abc".into() };
        log.bad.push(bad);
        let screen = check_screen(&log, &Style::default());
        assert!(
            screen.ends_with("  9 of 10 records are whole; 1 torn, 2 missing, 5 B behind the last record.\n"),
            "{screen}"
        );
        assert!(screen.contains("torn") && screen.contains("abc"), "{screen}");
    }
}
