//! A table of streams by location: files by directory, other streams by kind.

use std::collections::{BTreeMap, HashSet};

use weir_model::StreamKind;
use weir_model::Untrusted;
use weir_model::trace::TraceStream;

use super::labels::{UNKNOWN_STREAM, bytes, thousands};
use crate::number::{ABSENT, percent};
use crate::table::{Align, Column, ColumnPriority, Table, TableRow};

/// Largest number of locations; neighbouring directories are merged until they are no more.
const MAX_LOCATIONS: usize = 6;
/// Largest number of directories that are merged pair by pair. More would take quadratic time, so the deepest ones are
/// merged first.
const COMPARED: usize = 256;

/// Totals of the streams at one location.
#[derive(Debug, Default)]
struct LocationSum<'a> {
    /// Distinct files, by inode if known, and path.
    files: HashSet<(Option<(u64, u64)>, &'a str)>,
    openings: HashSet<u32>,
    streams: u64,
    calls: u64,
    bytes: u64,
    share: f64,
}

/// A named location and its totals.
struct Location<'a> {
    name: String,
    sum: LocationSum<'a>,
}

/// Returns a table of the locations by time and bytes, with the totals in the last row; `None` for fewer than two
/// locations. `others`: other streams are in a table above.
pub(super) fn table(streams: &[&TraceStream], others: bool) -> Option<Table> {
    let mut locations = locations(streams);
    if locations.len() < 2 {
        return None;
    }
    locations.sort_by(|a, b| {
        let rounded = |location: &Location| (location.sum.share * 1000.0).round() as u64;
        rounded(b).cmp(&rounded(a)).then(b.sum.bytes.cmp(&a.sum.bytes)).then(a.name.cmp(&b.name))
    });
    let mut all = LocationSum::default();
    streams.iter().for_each(|stream| all.add(stream));
    let mut rows: Vec<TableRow> =
        locations.iter().map(|location| row(&location.name, &location.sum)).collect();
    rows.push(row("all of these", &all));
    let streams = thousands(all.streams);
    let head = if others { format!("the {streams} other streams") } else { format!("{streams} streams") };
    Some(Table { columns: columns(&head), rows, ..Table::default() })
}

fn columns(head: &str) -> Vec<Column> {
    vec![
        Column::new(head, "", Align::Path),
        Column::new("streams", "", Align::Right).priority(ColumnPriority::Rank(2)),
        Column::new("files", "", Align::Right).priority(ColumnPriority::Rank(3)),
        Column::new("openings", "", Align::Right).priority(ColumnPriority::Rank(4)),
        Column::new("calls", "", Align::Right),
        Column::new("bytes", "", Align::Right).priority(ColumnPriority::Rank(1)),
        Column::new("time %", "", Align::Decimal),
    ]
}

fn row(name: &str, sum: &LocationSum) -> TableRow {
    let cells = vec![
        name.into(),
        some(sum.streams).into(),
        some(sum.files.len() as u64).into(),
        some(sum.openings.len() as u64).into(),
        thousands(sum.calls).into(),
        bytes(sum.bytes).into(),
        percent(sum.share.min(1.0)).into(),
    ];
    TableRow { cells, ..TableRow::default() }
}

fn some(number: u64) -> String {
    if number == 0 { ABSENT.into() } else { thousands(number) }
}

impl<'a> LocationSum<'a> {
    fn add(&mut self, stream: &TraceStream<'a>) {
        if stream.kind == StreamKind::File {
            // The inode number alone is not enough: the kernel reuses that of a deleted file.
            let name = stream
                .also
                .iter()
                .copied()
                .chain([stream.path])
                .map(Untrusted::exact)
                .min()
                .unwrap_or_default();
            self.files.insert((stream.inode, name));
        }
        // Calls of unknown streams have no stream to count.
        if stream.counts.is_known() {
            self.openings.extend(&stream.openings);
            self.streams += 1;
        }
        self.calls += stream.counts.calls;
        self.bytes += stream.counts.bytes;
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

/// Returns the locations of the streams: at most [`MAX_LOCATIONS`], and one for those with few calls, bytes and time.
fn locations<'a>(streams: &[&TraceStream<'a>]) -> Vec<Location<'a>> {
    let mut kinds: BTreeMap<&str, LocationSum> = BTreeMap::new();
    let mut directories: BTreeMap<Vec<&str>, LocationSum> = BTreeMap::new();
    for stream in streams {
        match directory(stream) {
            Some(directory) => directories.entry(directory).or_default().add(stream),
            None if !stream.counts.is_known() => kinds.entry(UNKNOWN_STREAM).or_default().add(stream),
            None => kinds.entry(kind(stream.kind)).or_default().add(stream),
        }
    }
    let light =
        if directories.len() + kinds.len() > MAX_LOCATIONS { remove_light(&mut directories) } else { None };
    let elsewhere = light.map(|sum| Location { name: "elsewhere".into(), sum });
    let kinds = kinds.into_iter().map(|(name, sum)| Location { name: name.into(), sum });
    let room = MAX_LOCATIONS.saturating_sub(kinds.len()).max(1);
    let directories = merge_directories(directories, room).into_iter();
    directories
        .map(|found| Location { name: found.name(), sum: found.sum })
        .chain(kinds)
        .chain(elsewhere)
        .collect()
}

/// Removes the subtrees with less than 2 % of the calls, bytes and time each, and returns their sum. Otherwise the
/// important subtrees would be merged for lack of room. Returns `None` if there are fewer than two such subtrees.
fn remove_light<'a>(directories: &mut BTreeMap<Vec<&str>, LocationSum<'a>>) -> Option<LocationSum<'a>> {
    // A subtree is given by two names, so that `/usr/lib` and `/usr/share` are separate.
    const CORNER: usize = 2;
    const LITTLE: u64 = 50;
    let mut corners: BTreeMap<Vec<&str>, (u64, u64, f64)> = BTreeMap::new();
    let mut all = (0, 0, 0.0);
    for (names, sum) in directories.iter() {
        let subtree = corners.entry(names[..names.len().min(CORNER)].to_vec()).or_default();
        for sums in [subtree, &mut all] {
            *sums = (sums.0 + sum.calls, sums.1 + sum.bytes, sums.2 + sum.share);
        }
    }
    let little = |of: &(u64, u64, f64)| {
        of.0 * LITTLE < all.0 && of.1 * LITTLE < all.1 && of.2 * LITTLE as f64 <= all.2.max(f64::MIN_POSITIVE)
    };
    corners.retain(|_, of| little(of));
    if corners.len() < 2 {
        return None;
    }
    let mut light = LocationSum::default();
    let heavy = std::mem::take(directories).into_iter().filter_map(|(names, sum)| {
        match corners.contains_key(&names[..names.len().min(CORNER)]) {
            true => {
                light.merge(sum);
                None
            }
            false => Some((names, sum)),
        }
    });
    *directories = heavy.collect();
    Some(light)
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

/// Returns the directory of a file as a list of names; `None` for a stream without a directory.
fn directory<'a>(stream: &TraceStream<'a>) -> Option<Vec<&'a str>> {
    let path = stream.path.exact().strip_prefix('/').filter(|_| stream.kind == StreamKind::File)?;
    // A file of memfd_create(2) has a name but no directory.
    if path.starts_with("memfd:") {
        return None;
    }
    let mut names: Vec<&str> = path.split('/').collect();
    names.pop();
    Some(names)
}

/// A directory, with or without its subdirectories.
struct Directory<'a, 'n> {
    names: Vec<&'n str>,
    below: bool,
    sum: LocationSum<'a>,
}

impl Directory<'_, '_> {
    fn name(&self) -> String {
        let path: String = self.names.iter().map(|name| format!("/{}", Untrusted::from(*name))).collect();
        match (path.as_str(), self.below) {
            (_, true) => path + "/…",
            ("", false) => "/".into(),
            _ => path,
        }
    }
}

/// Merges neighbouring directories, the deepest first, until there are at most `most`.
fn merge_directories<'a, 'n>(
    directories: BTreeMap<Vec<&'n str>, LocationSum<'a>>,
    most: usize,
) -> Vec<Directory<'a, 'n>> {
    // Sorted by name, the directories with the longest common prefix are neighbours.
    let mut all = limit_depth(directories);
    while all.len() > most {
        let depth = |at: &usize| common(&all[*at].names, &all[at + 1].names);
        // Of equally deep pairs merge the one with the fewest bytes, so that large ones stay separate.
        let weight = |at: &usize| all[*at].sum.bytes + all[at + 1].sum.bytes;
        let pairs = 0..all.len() - 1;
        let Some(at) = pairs.min_by_key(|at| (usize::MAX - depth(at), weight(at))) else { break };
        let next = all.remove(at + 1);
        let here = &mut all[at];
        here.names.truncate(common(&here.names, &next.names));
        here.below = true;
        here.sum.merge(next.sum);
        // A merge may make a directory equal to one that is not its neighbour: merge these too.
        let same = |other: &usize| *other != at && all[*other].below && all[*other].names == all[at].names;
        if let Some(other) = (0..all.len()).find(same) {
            let sum = std::mem::take(&mut all[other.max(at)].sum);
            all[other.min(at)].sum.merge(sum);
            all.remove(other.max(at));
        }
    }
    all
}

/// Returns the directories by name. If they are more than [`COMPARED`], replaces the deepest by their parents.
fn limit_depth<'a, 'n>(directories: BTreeMap<Vec<&'n str>, LocationSum<'a>>) -> Vec<Directory<'a, 'n>> {
    let mut all: BTreeMap<(Vec<&str>, bool), LocationSum> = BTreeMap::new();
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

/// Returns the length of the common prefix of two directories.
fn common(one: &[&str], other: &[&str]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use weir_model::trace::StreamCounts;

    use super::*;

    fn sums<'n>(paths: &[&'n str]) -> BTreeMap<Vec<&'n str>, LocationSum<'static>> {
        let mut directories: BTreeMap<Vec<&str>, LocationSum> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            let sum = directories.entry(path.split('/').skip(1).collect()).or_default();
            (sum.streams, sum.bytes) = (sum.streams + 1, sum.bytes + number as u64);
        }
        directories
    }

    fn names(paths: &[&str], most: usize) -> Vec<String> {
        merge_directories(sums(paths), most).iter().map(Directory::name).collect()
    }

    #[test]
    fn the_deepest_directories_are_merged_first() {
        let python = ["/usr/lib/python3/email", "/usr/lib/python3/json", "/usr/lib/python3"];
        let paths = [&python[..], &["/etc", "/home/u"]].concat();
        assert_eq!(names(&paths, 5).len(), 5, "there is room for all");
        // Of two pairs with an equally long prefix, the one with fewer bytes is merged.
        assert_eq!(names(&paths, 4), ["/etc", "/home/u", "/usr/lib/python3", "/usr/lib/python3/…"]);
        assert_eq!(names(&paths, 3), ["/etc", "/home/u", "/usr/lib/python3/…"]);
        assert_eq!(names(&paths, 1), ["/…"]);
    }

    #[test]
    fn no_location_occurs_twice() {
        let paths = ["/u/a/1", "/u/a/2", "/u/m/x/1", "/u/m/x/2", "/u/m/x/3", "/u/z/1", "/u/z/2", "/u", "/v"];
        for most in 1..paths.len() {
            let mut names = names(&paths, most);
            assert!(names.len() <= most, "{most}: {names:?}");
            let shown = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), shown, "{most}: {names:?}");
        }
    }

    #[test]
    fn small_subtrees_are_summed_as_elsewhere() {
        let paths: Vec<String> = (0..400).map(|n| format!("/home/u/src/{}", n % 20)).collect();
        let mut paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        paths.extend(["/etc", "/usr/share/locale", "/usr/lib/x"]);
        let mut all = sums(&paths);
        all.values_mut().for_each(|sum| (sum.calls, sum.bytes) = (sum.streams, sum.streams));
        let light = remove_light(&mut all).expect("three corners");
        assert_eq!((light.streams, all.len()), (3, 20));
        assert!(remove_light(&mut all).is_none(), "what is left counts");
        let mut two = sums(&["/home/u", "/etc"]);
        assert!(remove_light(&mut two).is_none() && two.len() == 2);
    }

    #[test]
    fn unknown_streams_are_not_counted() {
        static MAKE: Untrusted = Untrusted::placeholder("make");
        let stream = |path: &'static Untrusted, kind: StreamKind, fd: i32| TraceStream {
            comm: &MAKE,
            path,
            also: Vec::new(),
            kind,
            openings: vec![fd as u32],
            inode: None,
            mode: None,
            counts: std::borrow::Cow::Owned(StreamCounts {
                calls: 7,
                ..StreamCounts::new(1, 0, fd, 0, weir_model::Direction::In)
            }),
            cost_s: 0.0,
            waits_s: 0.0,
            share: 0.0,
        };
        static PATHS: [Untrusted; 2] =
            [Untrusted::placeholder("/etc/passwd"), Untrusted::placeholder(StreamCounts::UNKNOWN_PATH)];
        let known = stream(&PATHS[0], StreamKind::File, 3);
        let unknown = stream(&PATHS[1], StreamKind::Other, StreamCounts::UNKNOWN);
        let found = locations(&[&known, &unknown]);
        let rows: Vec<_> = found
            .iter()
            .map(|location| (location.name.as_str(), location.sum.streams, location.sum.calls))
            .collect();
        assert_eq!(rows, [("/etc", 1, 7), (UNKNOWN_STREAM, 0, 7)]);
        assert_eq!(found[1].sum.openings.len(), 0);
        let table = table(&[&known, &unknown], true).expect("two locations");
        assert_eq!(table.columns[0].head, "the 1 other streams");
    }

    #[test]
    fn a_single_directory_keeps_its_name() {
        assert_eq!(names(&["/usr/lib", "/usr/lib"], 1), ["/usr/lib"]);
        assert_eq!(common(&["usr", "lib"], &["usr", "share"]), 1);
    }

    #[test]
    fn no_directory_is_lost_among_many() {
        let paths: Vec<String> = (0..5000)
            .map(|n| format!("/src/{}/{}/{}", n % 7, n % 91, n % 1300))
            .chain(["/etc".into()])
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let found = merge_directories(sums(&paths), 4);
        assert_eq!(found.iter().map(|one| one.sum.streams).sum::<u64>(), 5001);
        assert!((2..=4).contains(&found.len()) && found[0].name() == "/etc", "the rest below /src");
    }
}
