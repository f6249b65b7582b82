//! The pages of `weir bench` and `weir bench compare`.

use std::collections::BTreeMap;

use weir_model::Size;
use weir_model::bench::compare::{BenchComparison, ComparedRow, ComparedRun};
use weir_model::bench::{BenchDocument, GroupKey, Machine};
use weir_model::duration::format_seconds;

use super::section::Section;
use super::{GROUPS_WITHOUT_OVERVIEW, blocks_compare};
use super::{answers, header, labels, lead, notes, overview, pictures, published, rows, section};
use crate::block::Block;
use crate::page::Body;
use crate::svg::Picture;

/// Returns the title of the page of a run.
pub fn page_title(document: &BenchDocument) -> String {
    let mut words: Vec<&str> = Vec::new();
    for group in &document.groups {
        if !words.contains(&group.key.workload.as_str()) {
            words.push(&group.key.workload);
        }
    }
    let size = document.groups.first().map_or(String::new(), |group| format!(", {}", Size(group.key.bytes)));
    format!("What buffering costs here: {}{size}", words.join(", "))
}

/// Adds a run to a page: verdict first, then the pictures with their tables, then the circumstances.
pub fn page(document: &BenchDocument, body: &mut Body, prefix: &str) {
    let sections = section::sections(document);
    body.blocks(&header::blocks(document));
    let alone = sections.len() == 1;
    if !alone && sections.len() <= GROUPS_WITHOUT_OVERVIEW {
        body.blocks(&sections.iter().filter_map(lead::lead).map(Block::Lead).collect::<Vec<_>>());
    }
    if sections.len() > GROUPS_WITHOUT_OVERVIEW {
        body.blocks(&overview::blocks(&sections));
    }
    for (number, section) in sections.iter().enumerate() {
        let prefix = format!("{prefix}{}", if alone { String::new() } else { format!("g{}-", number + 1) });
        body.heading(&format!("{prefix}group"), &labels::title(section.key()));
        group(document, section, number, body, &prefix);
    }
    body.blocks(&answers::strays(document, sections.len()));
    for comparison in &document.published {
        body.heading(&format!("{prefix}{}", comparison.id), &format!("Published table: {}", comparison.id));
        let behind = published::table_blocks(comparison);
        match pictures::published(comparison, prefix) {
            Some(picture) => body.picture(picture, &behind[1..]),
            None => body.blocks(&behind),
        }
        body.blocks(&published::verdict(comparison).collect::<Vec<_>>());
    }
    body.heading(&format!("{prefix}run"), "The run");
    if let Some(picture) = pictures::drift(document, prefix) {
        body.picture(picture, &[Block::Table(rounds(document))]);
    }
    body.blocks(&document.warnings.iter().cloned().map(Block::Warning).collect::<Vec<_>>());
    body.command(&header::command(document));
    body.facts(&environment(document));
}

/// Adds a group: its conclusions, its pictures, its table.
fn group(document: &BenchDocument, section: &Section, number: usize, body: &mut Body, prefix: &str) {
    body.blocks(&lead::lead(section).map(Block::Lead).into_iter().collect::<Vec<_>>());
    body.blocks(&answers::answers(document, number));
    let noise = document.noise.floor();
    let table = rows::table(section);
    let mut behind: Vec<Block> = Vec::new();
    behind.extend((!table.rows.is_empty()).then_some(Block::Table(table)));
    behind.extend(notes::missing(section));
    behind.extend(notes::asides(section));
    let drawn: Vec<Option<Picture>> = vec![
        pictures::sweep(section, prefix),
        pictures::heat(section, prefix),
        pictures::per_call(section, prefix),
        pictures::stacked(section, prefix),
        pictures::forest(section, noise, prefix),
        pictures::samples(section, prefix),
    ];
    let mut drawn = drawn.into_iter().flatten();
    match drawn.next() {
        Some(picture) => body.picture(picture, &behind),
        None => body.blocks(&behind),
    }
    drawn.for_each(|picture| body.picture(picture, &[]));
    let model = answers::model(section);
    match pictures::residuals(section, prefix) {
        Some(picture) => {
            body.picture(picture, &[]);
            body.blocks(&model);
        }
        None => body.blocks(&model),
    }
}

/// Returns the rounds as a table.
fn rounds(document: &BenchDocument) -> crate::table::Table {
    use crate::number::percent;
    use crate::table::{Align, Column, Table, TableRow};
    let columns = vec![
        Column::new("round", "", Align::Right),
        Column::new("samples", "", Align::Right),
        Column::new("took", "s", Align::Decimal),
        Column::new("steal", "%", Align::Decimal),
        Column::new("other processes", "%", Align::Decimal),
        Column::new("disturbed", "", Align::Left),
    ];
    let row = |(number, round): (usize, &weir_model::bench::Round)| TableRow {
        cells: vec![
            (number + 1).to_string().into(),
            round.samples.to_string().into(),
            format!("{:.2}", round.took_s).into(),
            percent(round.steal).into(),
            percent(round.foreign_cpu).into(),
            round.disturbed.join(", ").into(),
        ],
        ..TableRow::default()
    };
    Table { columns, rows: document.rounds.iter().enumerate().map(row).collect(), ..Table::default() }
}

/// Returns the circumstances of the run: machine, file systems, time.
fn environment(document: &BenchDocument) -> Vec<(&'static str, String)> {
    let mut facts = circumstances(
        &document.machine,
        &document.places(),
        &document.settings,
        document.seed,
        &document.started,
    );
    facts.push(("Took", format_seconds(document.took_s)));
    facts
}

fn circumstances(
    machine: &Machine,
    places: &[String],
    settings: &BTreeMap<String, String>,
    seed: Option<u64>,
    started: &str,
) -> Vec<(&'static str, String)> {
    let memory = (machine.memory_bytes > 0).then(|| crate::number::bytes_like(machine.memory_bytes, 1 << 30));
    vec![
        ("Processor", machine.cpu.clone()),
        ("Processors, architecture", format!("{}, {}", machine.cpus, machine.arch)),
        ("Memory", memory.unwrap_or_default()),
        ("Kernel", machine.kernel.clone()),
        ("C library", machine.libc.clone()),
        ("Virtualisation", machine.virtualization.clone().unwrap_or_default()),
        ("Frequency governor", machine.governor.clone().unwrap_or_default()),
        ("Directory, file system, mount options", places.join("; ")),
        ("Settings", crate::page::environment::settings(settings)),
        ("Seed", seed.map_or(String::new(), |seed| seed.to_string())),
        ("Started", started.into()),
    ]
}

/// Adds a comparison to a page.
pub fn page_compare(comparison: &BenchComparison, body: &mut Body, prefix: &str) {
    let blocks = blocks_compare(comparison);
    let is_head = |block: &&Block| matches!(block, Block::Lead(_) | Block::Aside(_));
    body.blocks(&blocks.iter().filter(is_head).cloned().collect::<Vec<_>>());
    let mut groups: Vec<&GroupKey> = Vec::new();
    for row in &comparison.rows {
        if !groups.contains(&&row.group) {
            groups.push(&row.group);
        }
    }
    let mut tables = blocks.iter().filter(|block| matches!(block, Block::Table(_)));
    for (number, key) in groups.into_iter().enumerate() {
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.group == *key).collect();
        let id = format!("{prefix}g{}", number + 1);
        body.heading(&id, &labels::title(key));
        let behind: Vec<Block> = tables.next().cloned().into_iter().collect();
        match pictures::compared(&rows, comparison.noise, &format!("{id}-ratios")) {
            Some(picture) => body.picture(picture, &behind),
            None => body.blocks(&behind),
        }
    }
    let is_rest = |block: &&Block| matches!(block, Block::Missing { .. } | Block::Warning(_));
    body.blocks(&blocks.iter().filter(is_rest).cloned().collect::<Vec<_>>());
    let names = [("A", &comparison.a), ("B", &comparison.b)];
    if comparison.runs.is_empty() {
        body.facts(&names.map(|(name, file)| (name, file.clone())));
    }
    for (run, (name, file)) in comparison.runs.iter().zip(names) {
        body.heading(&format!("{prefix}run-{}", name.to_lowercase()), &format!("Run {name}: {file}"));
        run_of_several(run, body);
    }
}

/// Adds the circumstances of one of several runs.
pub(super) fn run_of_several(run: &ComparedRun, body: &mut Body) {
    body.command(&header::words(&run.command));
    body.facts(&circumstances(&run.machine, &run.places, &run.settings, run.seed, &run.started));
}
