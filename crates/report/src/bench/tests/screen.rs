//! Tests of the screen of a run.

use weir_model::bench::{BenchRow, GroupKey, RowGroup};
use weir_model::{Knee, Size};

use super::at;
use crate::bench::fixture::{self, everything, textbook};
use crate::bench::screen;
use crate::number::TimeUnit;
use crate::style::Style;
use crate::text::width;

/// Returns the lines between two lines that begin with the given texts.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let after = text.lines().skip_while(|line| !line.starts_with(from)).skip(1);
    after.take_while(|line| !line.starts_with(to)).collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for document in [textbook(), everything()] {
        for columns in [60, 80, 100, 120, 200] {
            for unicode in [true, false] {
                let text = screen(&document, &Style { unicode, width: columns, ..Style::default() });
                let widest = text.lines().max_by_key(|line| width(line)).unwrap();
                assert!(width(widest) <= columns, "{columns}: {widest}");
            }
        }
    }
}

/// Draws every knee and checks that the headline agrees with its interval: of one directory, and of two.
#[test]
fn the_headline_agrees_with_the_interval_of_the_knee() {
    let sizes = [1, 64, 1024, 16384, 65536];
    let below = |end: usize| sizes[..=end].iter().copied();
    for (end, high) in sizes.into_iter().enumerate() {
        let knees = below(end).flat_map(|low| sizes.map(|bytes| (low, bytes)));
        for (low, bytes) in knees.filter(|(low, bytes)| low <= bytes && *bytes <= high) {
            check_headline(Knee { bytes, ci95: [low, high] });
        }
    }
}

/// Checks the headlines of a table whose largest record has 64 KiB.
fn check_headline(knee: Knee) {
    let [low, high] = knee.ci95;
    let mut document = textbook();
    document.groups[0].knee = Some(knee);
    let single = screen(&document, &at(1000));
    group_of_two(&mut document);
    let text = screen(&document, &at(1000));
    let lead = text.lines().find(|line| line.contains("From /a to /b:")).expect(&text);
    let (is_last, is_open) = (knee.bytes == 65536, high == 65536);
    let context = format!("{low} {} {high}: {lead}\n{single}", knee.bytes);
    assert_eq!(lead.contains("larger ones win less than 5 %"), knee.bytes == high && !is_open, "{context}");
    assert_eq!(lead.contains("may gain more"), is_open, "{context}");
    let above = format!("those above {} win less than 5 %", Size(high));
    assert_eq!(lead.contains(&above), knee.bytes < high && !is_open, "{context}");
    assert_eq!(single.contains("No knee: gains of syscall go on"), is_last, "{context}");
    assert_eq!(single.contains("] or more."), is_open && !is_last, "{context}");
}

/// Makes the first group one that copies from a directory to another.
fn group_of_two(document: &mut weir_model::bench::BenchDocument) {
    let before = document.groups[0].key.clone();
    document.groups[0].key.dir = format!("/a{}/b", weir_model::bench::FROM_TO);
    let key = document.groups[0].key.clone();
    document.rows.iter_mut().filter(|row| row.group == before).for_each(|row| row.group = key.clone());
}

#[test]
fn colour_adds_escapes_and_nothing_else() {
    let plain = screen(&everything(), &at(80));
    let coloured = screen(&everything(), &Style { colour: true, ..at(80) });
    assert!(!plain.contains('\u{1b}') && coloured.contains('\u{1b}'));
    let mut bare = String::new();
    for (number, part) in coloured.split('\u{1b}').enumerate() {
        bare += if number == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    assert_eq!(bare, plain);
}

#[test]
fn ascii_style_writes_ascii_only() {
    let text = screen(&everything(), &Style { unicode: false, ..at(80) });
    let foreign: String = text.chars().filter(|c| !c.is_ascii()).collect();
    assert_eq!(foreign, "");
    assert!(
        text.contains("< knee") && text.contains("* syscall") && text.contains("noise: CPU +-1.4 %"),
        "{text}"
    );
}

#[test]
fn the_verdict_stands_above_the_table() {
    let text = screen(&textbook(), &at(120));
    let lead =
        text.find("Smallest record, 1 B: syscall about 60.8 s (2668× the best), stdio-char 1.25 s.").unwrap();
    assert!(
        text.contains("Best: syscall 64 KiB, 22.8 ms (ties\n  with stdio 64 KiB). Gains of syscall"),
        "{text}"
    );
    assert!(lead < text.find("elapsed    ±").unwrap());
    assert!(text.starts_with("copy · 100 MB · ext4 (/home) · warm cache · no sync\n"), "{text}");
    assert!(
        text.contains(
            "8 rounds in 48.3 s · 1 more disturbed and repeated · A/A noise: CPU ±1.4 %, wall ±3.1 %"
        )
    );
    let methods = screen(&everything(), &at(120));
    assert!(methods.starts_with("weir bench copy\n  Example CPU"), "{methods}");
    let flat = methods.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("No knee: gains of syscall go on up to 4 KiB, the largest record measured."),
        "{methods}"
    );
    assert!(
        methods.contains("Fastest: copy_file_range 64 KiB, 21.5 ms * (ties with sendfile 64 KiB)."),
        "{methods}"
    );
}

#[test]
fn a_textbook_row_has_all_its_figures() {
    let text = screen(&textbook(), &at(80));
    let rows = between(&text, "  ● syscall", "  ○ stdio");
    assert_eq!(rows.len(), 14);
    let words = |row: &str| row.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(rows[0])[..9], ["1", "B", "60.8", "~", "0.7", "60.8", "9.1", "51.7", "2097152"]);
    assert_eq!(words(rows[10])[..8], ["1", "KiB", "0.0813", "1.1", "0.0805", "0.0089", "0.0716", "2048"]);
    assert!(rows[13].contains("best") && !rows[13].contains("1.00×"), "{}", rows[13]);
    assert!(text.contains("= 1.02×"), "{text}");
    let wide = screen(&textbook(), &at(120));
    assert!(wide.contains("in all") && wide.contains("200 M") && wide.contains("model"), "{wide}");
}

#[test]
fn every_row_of_the_document_is_shown() {
    let document = everything();
    let unit = |key: &GroupKey| {
        let rows = document.rows.iter().filter(|row| row.group == *key);
        TimeUnit::for_values(rows.filter_map(|row| Some(row.elapsed_s?.median)))
    };
    for columns in [60, 80, 120] {
        let text = screen(&document, &at(columns));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for row in &document.rows {
            // Finds the record size followed by the elapsed time, once for each row with both.
            let figures = |row: &BenchRow| {
                let shown = row.elapsed_s.map(|summary| unit(&row.group).show(summary.median));
                format!(" {} {} ", Size(row.record_bytes), shown.unwrap_or_default())
            };
            match &row.cannot {
                Some(why) => {
                    assert!(flat.contains(why) && flat.contains(&format!("– {} ", row.method)), "{text}")
                }
                None => {
                    let alike = document.rows.iter().filter(|other| figures(other) == figures(row)).count();
                    assert!(flat.matches(&figures(row)).count() >= alike, "{}: {text}", figures(row));
                }
            }
        }
        assert!(flat.contains("– direct 64 KiB, 4 KiB: EOPNOTSUPP"), "{text}");
    }
}

#[test]
fn the_knee_is_marked_once_a_group_at_its_row() {
    for (columns, mark) in [(60, "◀ knee"), (80, "◀ knee"), (120, "◀ knee: 16 KiB [4 KiB, 64 KiB]")] {
        let text = screen(&textbook(), &at(columns));
        let marked: Vec<&str> = text.lines().filter(|line| line.contains('◀')).collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].trim_start().starts_with("16 KiB") && marked[0].ends_with(mark), "{}", marked[0]);
        let all = screen(&everything(), &at(columns));
        let document = everything();
        let is_below_largest = |group: &&RowGroup| {
            let own = document.rows.iter().filter(|row| row.group == group.key);
            let own = own.filter(|row| Some(&row.method) == group.model_method.as_ref());
            own.map(|row| row.record_bytes).max() > group.knee.map(|knee| knee.bytes) && group.knee.is_some()
        };
        let knees = document.groups.iter().filter(is_below_largest).count();
        assert_eq!((all.matches('◀').count(), knees), (2, 2));
    }
}

#[test]
fn notes_explain_only_marks_that_occur() {
    let text = screen(&everything(), &at(100));
    let sections: Vec<&str> = text.split("log scale").collect();
    assert!(text.contains("~ measured in part and scaled up; --exact measures all of it"));
    assert!(text.contains(
        "98.3 MB of the written 100 MB were only in memory at the end of a sample: no sync was requested"
    ));
    assert!(text.contains("* copy_file_range 64 KiB: the file system shared the blocks"), "{text}");
    let tmpfs = text.split("copy · 100 MB · tmpfs").nth(1).unwrap().split("read · 100 MB").next().unwrap();
    assert!(
        !tmpfs.contains("~ measured") && !tmpfs.contains("only in memory") && sections.len() > 2,
        "{tmpfs}"
    );
}

#[test]
fn a_sync_policy_adds_its_columns() {
    let text = screen(&everything(), &at(80));
    let synced = text.split("\nwrite · 1 MB").nth(1).unwrap();
    let head = synced.lines().find(|line| line.contains("elapsed")).unwrap();
    let head = between(synced, "  Smallest", "  ● syscall")
        .into_iter()
        .find(|line| line.contains("±"))
        .unwrap_or(head);
    let words: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(words[..7], ["record", "elapsed", "±", "CPU", "write", "sync", "close"], "{synced}");
    assert!(!screen(&textbook(), &at(200)).contains("sync  close"));
}

#[test]
fn single_records_make_a_table_without_a_plot() {
    let text = screen(&everything(), &at(80));
    let tmpfs = text.split("copy · 100 MB · tmpfs").nth(1).unwrap().split("\nread · 100 MB").next().unwrap();
    assert!(!tmpfs.contains('┤') && !tmpfs.contains('●'), "{tmpfs}");
    let row = |method: &str| tmpfs.lines().find(|line| line.starts_with(&format!("  {method} "))).unwrap();
    assert!(row("vector").contains("16 a call") && row("stdio-unlocked").contains("1 MiB, full"), "{tmpfs}");
    assert!(row("io_uring").contains("8 in flight") && row("copy_file_range").contains("21.5 *"), "{tmpfs}");
}

#[test]
fn model_answers_and_published_tables_are_shown() {
    let text = screen(&everything(), &at(200));
    assert!(text.contains(
        "syscall: one call costs 303 ns, one byte 0.210 ns: fits its 14 rows within 14 %, half of them within 3 %."
    ));
    assert!(text.contains("one byte 0.210 ns, one sync 612 µs: fits"));
    assert!(text.contains("stdio 18.0 ns a record and stdio-char 9.00 ns to 15.0 ns a byte"));
    assert!(text.contains("Where do gains stop? At 16 KiB: above it"));
    let answer = text.find("What does a sync cost?").unwrap();
    assert!(answer > text.find("write · 1 MB").unwrap() && answer < text.find("All groups").unwrap());
    let published: Vec<&str> = between(&text, "Published beside ours: tlpi-13-1", "  ! ");
    let row: Vec<&str> =
        published.iter().find(|line| line.contains("64 B")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["64", "B", "2.19", "0.971", "1.07×", "42.6×"]);
    assert!(published.iter().any(|line| line.contains("The shape agrees")));
    assert!(text.contains("! the frequency governor is powersave"));
}

#[test]
fn many_groups_get_an_overview() {
    let text = screen(&everything(), &at(120));
    let rows = between(&text, "All groups", "Published");
    let synced = rows.iter().find(|line| line.contains("write · 1 MB · ext4 · warm · fdatasync")).unwrap();
    assert!(synced.contains("614 s") && synced.contains("  –  ") && synced.ends_with("612"), "{synced}");
    assert!(!screen(&textbook(), &at(120)).contains("All groups"));
}

#[test]
fn unmeasured_and_unlisted_rows_are_shown() {
    let mut document = textbook();
    document.complete = false;
    document.groups.clear();
    document.rows.push(fixture::blank(&fixture::key("log", "xfs", "/mnt", "warm", "none"), "stdio", 80));
    for row in &mut document.rows[5..8] {
        (row.elapsed_s, row.vs_best) = (None, None);
    }
    let text = screen(&document, &at(80));
    assert!(text.contains("The run did not finish"), "{text}");
    assert_eq!(text.matches("not measured").count(), 4, "{text}");
    assert!(text.contains("log · 100 MB · xfs (/mnt)") && text.contains("80 B"), "{text}");
}
