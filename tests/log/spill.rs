//! `--overflow spill`: what a full disk does not take waits in files, and the next collector appends what was left.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::common::{disk_dir, wait_for};
use crate::faults::SmallDisk;
use crate::{Collector, lines_of};

/// Starts a collector that spills, whose log is on a disk with 4 MiB, nearly full.
fn spilling(disk: &SmallDisk, dir: &Path, more: &[&str]) -> Collector {
    std::fs::write(disk.path().join("ballast"), vec![0; 3_900_000]).expect("written");
    std::fs::create_dir_all(dir.join("spill")).expect("a directory");
    let log = disk.path().join("out");
    let arguments =
        ["-o", log.to_str().expect("a path"), "--overflow", "spill", "--spill", "spill", "--memory", "10K"];
    Collector::start(dir, &[&arguments, more].concat())
}

fn spilled_bytes(dir: &Path) -> u64 {
    let files = dir.join("spill").read_dir().expect("a directory");
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |about| about.len())).sum()
}

#[test]
fn a_full_disk_spills_and_loses_nothing() {
    let test = "a_full_disk_spills_and_loses_nothing";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let dir = disk_dir();
    let collector = spilling(&disk, dir.path(), &["--listen", "unix:s", "--listen", "unix-seqpacket:p"]);
    let mut stream = UnixStream::connect(dir.path().join("s")).expect("connected");
    let packets =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET, None)
            .expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(dir.path().join("p")).expect("an address");
    rustix::net::connect(&packets, &address).expect("connected");
    // More than the sockets hold: with "block" these loops would wait for ever.
    for number in 0..20_000 {
        stream.write_all(format!("stream {number:05} and more\n").as_bytes()).expect("sent");
        let packet = format!("packet {number:05} and more");
        rustix::net::send(&packets, packet.as_bytes(), rustix::net::SendFlags::empty()).expect("sent");
    }
    wait_for("both files", || dir.path().join("spill").read_dir().expect("a directory").count() == 2);
    assert!(collector.errors().contains("ENOSPC"), "{}", collector.errors());
    std::fs::remove_file(disk.path().join("ballast")).expect("removed");
    let seen = lines_of(&disk.path().join("out"), 40_000);
    drop((stream, packets));
    for name in ["stream", "packet"] {
        let own = seen.iter().filter(|line| line.starts_with(name)).cloned();
        let expected = (0..20_000).map(|number| format!("{name} {number:05} and more"));
        assert!(own.eq(expected), "{name}: every record once, in order");
    }
    wait_for("the end of the files", || spilled_bytes(dir.path()) == 0);
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_collector_that_ends_on_a_full_disk_keeps_the_spilled_records() {
    let test = "a_collector_that_ends_on_a_full_disk_keeps_the_spilled_records";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let dir = disk_dir();
    let collector = spilling(&disk, dir.path(), &["--listen", "unix:s", "--drain", "100ms"]);
    let mut stream = UnixStream::connect(dir.path().join("s")).expect("connected");
    for number in 0..40_000 {
        stream.write_all(format!("record {number:05}\n").as_bytes()).expect("sent");
    }
    wait_for("a spill file", || spilled_bytes(dir.path()) > 0);
    drop(stream);
    assert_eq!(collector.stop(), 1);
    let errors = std::fs::read_to_string(dir.path().join("errors")).expect("the messages");
    assert!(errors.contains("they are in spill/weir-spill."), "{errors}");
    let files = dir.path().join("spill").read_dir().expect("a directory");
    let contents = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("read"));
    let saved: Vec<String> = contents.filter(|content| content.starts_with("weir-spill/1 stream ")).collect();
    let [saved] = saved.try_into().expect("one file of the source");
    assert!(saved.ends_with("record 39999\n") && saved.lines().count() > 1000, "{}", saved.len());
    let numbers: Vec<usize> =
        saved.lines().filter_map(|line| line.strip_prefix("record ")?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "in order, without a gap");
}

/// Sends records over a stream and over a socket of packets.
fn send_both(dir: &Path, count: usize) {
    let mut stream = UnixStream::connect(dir.join("s")).expect("connected");
    let packets =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET, None)
            .expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(dir.join("p")).expect("an address");
    rustix::net::connect(&packets, &address).expect("connected");
    for number in 0..count {
        stream.write_all(format!("stream {number:05}\n").as_bytes()).expect("sent");
        let packet = format!("packet {number:05}");
        rustix::net::send(&packets, packet.as_bytes(), rustix::net::SendFlags::empty()).expect("sent");
    }
}

fn assert_complete(log: &Path, name: &str, count: usize) {
    let lines = lines_of(log, 1);
    let own = lines.iter().filter(|line| line.starts_with(name));
    let expected: Vec<String> = (0..count).map(|number| format!("{name} {number:05}")).collect();
    assert!(own.eq(expected.iter()), "{name}: every record once, in order");
}

/// The file system of the spill files has no room for a copy of them.
#[test]
fn spilled_records_stay_without_room_for_a_copy() {
    let test = "spilled_records_stay_without_room_for_a_copy";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let Some(spill) = SmallDisk::for_test(test, "400k") else { return };
    let dir = disk_dir();
    std::os::unix::fs::symlink(spill.path(), dir.path().join("spill")).expect("a link");
    let listen = ["--listen", "unix:s", "--drain", "100ms"];
    let collector = spilling(&disk, dir.path(), &listen);
    let mut stream = UnixStream::connect(dir.path().join("s")).expect("connected");
    for number in 0..40_000 {
        stream.write_all(format!("stream {number:05}\n").as_bytes()).expect("sent");
    }
    wait_for("a spill file", || spilled_bytes(dir.path()) > 200_000);
    drop(stream);
    assert_eq!(collector.stop(), 1);
    let errors = std::fs::read_to_string(dir.path().join("errors")).expect("the messages");
    assert!(errors.contains("they are in spill/weir-spill.") && !errors.contains("lost"), "{errors}");
    let collector = spilling_on(&disk, dir.path(), &listen);
    wait_for("the records", || collector.errors().contains("are in the log now"));
    assert_eq!(collector.stop(), 0);
    assert_complete(&disk.path().join("out"), "stream", 40_000);
    assert_eq!(spilled_bytes(dir.path()), 0, "the file is removed");
}

/// Starts the next collector of the log, on a disk that is not full any more.
fn spilling_on(disk: &SmallDisk, dir: &Path, more: &[&str]) -> Collector {
    std::fs::remove_file(disk.path().join("ballast")).expect("removed");
    let log = disk.path().join("out");
    let arguments =
        ["-o", log.to_str().expect("a path"), "--overflow", "spill", "--spill", "spill", "--memory", "10K"];
    Collector::start(dir, &[&arguments, more].concat())
}

#[test]
fn the_next_collector_appends_spilled_records() {
    let test = "the_next_collector_appends_spilled_records";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let dir = disk_dir();
    let listen = ["--listen", "unix:s", "--listen", "unix-seqpacket:p", "--drain", "100ms"];
    let collector = spilling(&disk, dir.path(), &listen);
    send_both(dir.path(), 20_000);
    wait_for("both files", || dir.path().join("spill").read_dir().expect("a directory").count() == 2);
    assert_eq!(collector.stop(), 1);
    // A file of another log, and one that only looks like a spill file, stay.
    let others = [
        ("weir-spill.1.s.0", "weir-spill/1 stream 00000000000000000000 1 /other s\nx\n"),
        ("weir-spill.2", "x\n"),
    ];
    for (name, content) in others {
        std::fs::write(dir.path().join("spill").join(name), content).expect("written");
    }
    let collector = spilling_on(&disk, dir.path(), &listen);
    wait_for("the records", || collector.errors().matches("are in the log now").count() == 3);
    send_both(dir.path(), 0);
    assert_eq!(collector.stop(), 0);
    for name in ["stream", "packet"] {
        assert_complete(&disk.path().join("out"), name, 20_000);
    }
    assert_eq!(dir.path().join("spill").read_dir().expect("a directory").count(), 2);
}

/// Sends records until a part of them is spilled, kills the collector, and returns the bytes of its spill file.
fn spill_and_kill(disk: &SmallDisk, dir: &Path, listen: &[&str]) -> u64 {
    let mut collector = spilling(disk, dir, listen);
    let mut stream = UnixStream::connect(dir.join("s")).expect("connected");
    for number in 0..60_000 {
        stream.write_all(format!("stream {number:05}\n").as_bytes()).expect("sent");
    }
    wait_for("a spill file", || spilled_bytes(dir) > 400_000);
    collector.signal(libc::SIGKILL);
    collector.child().wait().expect("it ends");
    spilled_bytes(dir)
}

/// A kill loses what the log's buffer and the sockets have; the spilled records are whole, in order, and come once.
#[test]
fn spilled_records_outlive_a_kill() {
    let test = "spilled_records_outlive_a_kill";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let dir = disk_dir();
    let listen = ["--listen", "unix:s"];
    let spilled = spill_and_kill(&disk, dir.path(), &listen);
    let collector = spilling_on(&disk, dir.path(), &listen);
    wait_for("the records", || collector.errors().contains("are in the log now"));
    assert_eq!(collector.stop(), 0);
    let lines = lines_of(&disk.path().join("out"), 1);
    let numbers: Vec<usize> =
        lines.iter().filter_map(|line| line.strip_prefix("stream ")?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    let gaps = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps <= 1, "only the buffer of the log is lost: {gaps} gaps");
    assert!(numbers.len() * 13 > spilled as usize, "{} records", numbers.len());
}

/// Puts a spill file into the directory, as an earlier collector of the log left it.
fn leave_spill(dir: &Path, lines: usize) -> std::path::PathBuf {
    std::fs::create_dir_all(dir.join("spill")).expect("a directory");
    let log = dir.canonicalize().expect("a path").join("out");
    let header = format!("weir-spill/1 stream 00000000000000000000 1 {} s\n", log.display());
    let records: String = (0..lines).map(|number| format!("stream {number:05}\n")).collect();
    let path = dir.join("spill/weir-spill.1.s.0");
    std::fs::write(&path, header + &records).expect("written");
    path
}

/// The second collector starts on the full disk, and is killed too.
#[test]
fn spilled_records_outlive_a_second_kill() {
    let test = "spilled_records_outlive_a_second_kill";
    let Some(disk) = SmallDisk::for_test(test, "4m") else { return };
    let dir = disk_dir();
    let listen = ["--listen", "unix:s"];
    let spilled = spill_and_kill(&disk, dir.path(), &listen);
    // Room for a part of the spilled records only.
    std::fs::write(disk.path().join("ballast"), vec![0; 3_800_000]).expect("written");
    let log = disk.path().join("out");
    let arguments =
        ["-o", log.to_str().expect("a path"), "--overflow", "spill", "--spill", "spill", "--memory", "10K"];
    let mut collector = Collector::start(dir.path(), &[&arguments[..], &listen].concat());
    wait_for("a full disk", || collector.errors().contains("ENOSPC"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!collector.errors().contains("in the log now"), "{}", collector.errors());
    assert_eq!(spilled_bytes(dir.path()), spilled, "the file stays until the log has its bytes");
    collector.signal(libc::SIGKILL);
    collector.child().wait().expect("it ends");
    let collector = spilling_on(&disk, dir.path(), &listen);
    wait_for("the records", || collector.errors().contains("are in the log now"));
    assert_eq!(spilled_bytes(dir.path()), 0, "the file is removed");
    assert_eq!(collector.stop(), 0);
    // The full disk took a part of a record before each kill.
    let whole: Vec<String> = lines_of(&log, 1).into_iter().filter(|line| line.len() == 12).collect();
    let mut numbers: Vec<usize> =
        whole.iter().filter_map(|line| line.strip_prefix("stream ")?.parse().ok()).collect();
    assert!(numbers.len() * 13 > spilled as usize, "{} records", numbers.len());
    numbers.sort_unstable();
    numbers.dedup();
    let gaps = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps <= 1, "only the buffer of the first collector is lost: {gaps} gaps");
}

/// A budget, a full buffer and a time let records wait in memory, where a kill loses them.
#[test]
fn a_spill_file_stays_until_its_records_are_written() {
    let dir = disk_dir();
    let path = leave_spill(dir.path(), 100);
    let options = ["-o", "out", "--overflow", "spill", "--spill", "spill", "--listen", "unix:s"];
    let mut collector = Collector::start(dir.path(), &[&options[..], &["--write-budget", "20KB/h"]].concat());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(path.exists() && !collector.errors().contains("in the log now"), "{}", collector.errors());
    collector.signal(libc::SIGKILL);
    collector.child().wait().expect("it ends");
    assert_eq!(std::fs::read_to_string(dir.path().join("out")).expect("the log"), "");
    for more in [&["--flush", "full"][..], &["--flush", "1h"], &["--sync", "bytes:1G"]] {
        let path = leave_spill(dir.path(), 100);
        let collector = Collector::start(dir.path(), &[&options[..], more].concat());
        wait_for("the records", || collector.errors().contains("are in the log now"));
        assert!(!path.exists());
        assert_complete(&dir.path().join("out"), "stream", 100);
        assert_eq!(collector.stop(), 0);
        std::fs::remove_file(dir.path().join("out")).expect("removed");
    }
    let path = leave_spill(dir.path(), 100);
    let collector = Collector::start(dir.path(), &[&options[..], &["--write-budget", "20KB/h"]].concat());
    assert_eq!(collector.stop(), 0);
    assert!(!path.exists());
    assert_complete(&dir.path().join("out"), "stream", 100);
}
