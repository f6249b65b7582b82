//! Streams that have no line of their own, by where they lead: files by directory, other things by their kind.

use std::collections::{BTreeMap, HashSet};

use weir_model::StreamKind;

use super::streams::Stream;
use super::words::{bytes, thousands};
use crate::number::percent;
use crate::table::{Align, Column, Keep, Row, Table};

/// So many places are shown; directories near each other are one until they are no more.
const MOST: usize = 6;
/// Of more directories the deepest are taken together at once, not two by two.
const COMPARED: usize = 256;

/// What is known of the streams at one place.
#[derive(Debug, Default)]
struct Sum<'a> {
    /// Files by their numbers, where these are known, and names.
    files: HashSet<(Option<(u64, u64)>, &'a str)>,
    openings: HashSet<u32>,
    streams: u64,
    calls: u64,
    bytes: u64,
    share: f64,
}

/// Streams that lead to one place.
struct Place<'a> {
    name: String,
    sum: Sum<'a>,
}

/// A table of where they lead, the place that took most time or bytes first, with all of them at its end. Nothing where
/// that is one place.
pub(super) fn table(streams: &[&Stream]) -> Option<Table> {
    let mut places = places(streams);
    if places.len() < 2 {
        return None;
    }
    places.sort_by(|a, b| {
        let rounded = |place: &Place| (place.sum.share * 1000.0).round() as u64;
        rounded(b).cmp(&rounded(a)).then(b.sum.bytes.cmp(&a.sum.bytes)).then(a.name.cmp(&b.name))
    });
    let mut all = Sum::default();
    streams.iter().for_each(|stream| all.add(stream));
    let mut rows: Vec<Row> = places.iter().map(|place| row(&place.name, &place.sum)).collect();
    rows.push(row("all of these", &all));
    Some(Table { columns: columns(streams.len()), rows, ..Table::default() })
}

fn columns(streams: usize) -> Vec<Column> {
    vec![
        Column::new(&format!("the {} other streams", thousands(streams as u64)), "", Align::Path),
        Column::new("streams", "", Align::Right),
        Column::new("files", "", Align::Right).keep(Keep::Rank(1)),
        Column::new("openings", "", Align::Right).keep(Keep::Rank(2)),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right),
        Column::new("time", "%", Align::Decimal),
    ]
}

fn row(name: &str, sum: &Sum) -> Row {
    let cells = vec![
        name.into(),
        thousands(sum.streams).into(),
        thousands(sum.files.len() as u64).into(),
        thousands(sum.openings.len() as u64).into(),
        thousands(sum.calls).into(),
        bytes(sum.bytes).into(),
        percent(sum.share.min(1.0)).into(),
    ];
    Row { cells, ..Row::default() }
}

impl<'a> Sum<'a> {
    fn add(&mut self, stream: &Stream<'a>) {
        if stream.kind == StreamKind::File {
            // The number alone may be that of a file that is gone.
            let name = stream.also.iter().copied().chain([stream.path]).min().unwrap_or_default();
            self.files.insert((stream.inode, name));
        }
        self.openings.extend(&stream.openings);
        self.streams += 1;
        self.calls += stream.flow.calls;
        self.bytes += stream.flow.bytes;
        self.share += stream.share;
    }

    fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        self.openings.extend(other.openings);
        self.streams += other.streams;
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.share += other.share;
    }
}

/// Where the streams lead, in at most [`MOST`] places.
fn places<'a>(streams: &[&Stream<'a>]) -> Vec<Place<'a>> {
    let mut kinds: BTreeMap<&str, Sum> = BTreeMap::new();
    let mut directories: BTreeMap<Vec<&str>, Sum> = BTreeMap::new();
    for stream in streams {
        match directory(stream) {
            Some(directory) => directories.entry(directory).or_default().add(stream),
            None => kinds.entry(kind(stream.kind)).or_default().add(stream),
        }
    }
    let kinds = kinds.into_iter().map(|(name, sum)| Place { name: name.into(), sum });
    let room = MOST.saturating_sub(kinds.len()).max(1);
    let directories = gathered(directories, room).into_iter();
    directories.map(|found| Place { name: found.name(), sum: found.sum }).chain(kinds).collect()
}

fn kind(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::File => "files without a name",
        StreamKind::Pipe => "pipes",
        StreamKind::Socket => "sockets",
        StreamKind::Terminal => "terminals",
        StreamKind::Device => "devices",
        StreamKind::Other => "other things",
    }
}

/// The directory of a file, name by name from the root; None: it has none.
fn directory<'a>(stream: &Stream<'a>) -> Option<Vec<&'a str>> {
    let path = stream.path.strip_prefix('/').filter(|_| stream.kind == StreamKind::File)?;
    // What memfd_create(2) made has a name and is nowhere.
    if path.starts_with("memfd:") {
        return None;
    }
    let mut names: Vec<&str> = path.split('/').collect();
    names.pop();
    Some(names)
}

/// A directory, and whether what is below it is meant as well.
struct Directory<'a, 'n> {
    names: Vec<&'n str>,
    below: bool,
    sum: Sum<'a>,
}

impl Directory<'_, '_> {
    fn name(&self) -> String {
        let path: String = self.names.iter().map(|name| format!("/{name}")).collect();
        match (path.as_str(), self.below) {
            (_, true) => path + "/…",
            ("", false) => "/".into(),
            _ => path,
        }
    }
}

/// Directories become one with those beside them, the deepest first, until there are at most `most`.
fn gathered<'a, 'n>(directories: BTreeMap<Vec<&'n str>, Sum<'a>>, most: usize) -> Vec<Directory<'a, 'n>> {
    // In the order of their names, those with most in common stand side by side.
    let mut all = not_too_deep(directories);
    while all.len() > most {
        let depth = |at: &usize| common(&all[*at].names, &all[at + 1].names);
        // Of several the lightest, so that what matters stands alone for longest.
        let weight = |at: &usize| all[*at].sum.bytes + all[at + 1].sum.bytes;
        let pairs = 0..all.len() - 1;
        let Some(at) = pairs.min_by_key(|at| (usize::MAX - depth(at), weight(at))) else { break };
        let next = all.remove(at + 1);
        let here = &mut all[at];
        here.names.truncate(common(&here.names, &next.names));
        here.below = true;
        here.sum.merge(next.sum);
    }
    all
}

/// The directories, in the order of their names; the deepest of very many as part of what they are in.
fn not_too_deep<'a, 'n>(directories: BTreeMap<Vec<&'n str>, Sum<'a>>) -> Vec<Directory<'a, 'n>> {
    let mut all: BTreeMap<(Vec<&str>, bool), Sum> = BTreeMap::new();
    let mut depth = directories.keys().map(Vec::len).max().unwrap_or(0);
    directories.into_iter().for_each(|(names, sum)| all.entry((names, false)).or_default().merge(sum));
    while all.len() > COMPARED && depth > 0 {
        depth -= 1;
        for ((mut names, below), sum) in std::mem::take(&mut all) {
            let deeper = names.len() > depth;
            names.truncate(depth);
            all.entry((names, below || deeper)).or_default().merge(sum);
        }
    }
    all.into_iter().map(|((names, below), sum)| Directory { names, below, sum }).collect()
}

/// How many names two directories begin with in common.
fn common(one: &[&str], other: &[&str]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums<'n>(paths: &[&'n str]) -> BTreeMap<Vec<&'n str>, Sum<'static>> {
        let mut directories: BTreeMap<Vec<&str>, Sum> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            let sum = directories.entry(path.split('/').skip(1).collect()).or_default();
            (sum.streams, sum.bytes) = (sum.streams + 1, sum.bytes + number as u64);
        }
        directories
    }

    fn names(paths: &[&str], most: usize) -> Vec<String> {
        gathered(sums(paths), most).iter().map(Directory::name).collect()
    }

    #[test]
    fn directories_are_gathered_from_the_deepest_on() {
        let python = ["/usr/lib/python3/email", "/usr/lib/python3/json", "/usr/lib/python3"];
        let paths = [&python[..], &["/etc", "/home/u"]].concat();
        assert_eq!(names(&paths, 5).len(), 5, "there is room for all");
        // The lighter of two pairs that have as much in common.
        assert_eq!(names(&paths, 4), ["/etc", "/home/u", "/usr/lib/python3", "/usr/lib/python3/…"]);
        assert_eq!(names(&paths, 3), ["/etc", "/home/u", "/usr/lib/python3/…"]);
        assert_eq!(names(&paths, 1), ["/…"]);
    }

    #[test]
    fn one_directory_is_called_by_its_name() {
        assert_eq!(names(&["/usr/lib", "/usr/lib"], 1), ["/usr/lib"]);
        assert_eq!(common(&["usr", "lib"], &["usr", "share"]), 1);
    }

    #[test]
    fn of_very_many_directories_none_is_lost() {
        let paths: Vec<String> = (0..5000)
            .map(|n| format!("/src/{}/{}/{}", n % 7, n % 91, n % 1300))
            .chain(["/etc".into()])
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let found = gathered(sums(&paths), 4);
        assert_eq!(found.iter().map(|one| one.sum.streams).sum::<u64>(), 5001);
        assert_eq!((found.len(), found[0].name().as_str()), (4, "/etc"));
    }
}
