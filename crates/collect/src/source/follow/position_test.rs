use std::io::Write as _;

use super::*;

fn read_all(followed: &mut FollowedFile) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let count = followed.read(&mut buffer).expect("read");
    buffer.truncate(count);
    buffer
}

#[test]
fn a_truncated_file_is_recognised() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log");
    std::fs::write(&path, "first line\n").expect("written");
    let mut followed = FollowedFile::open(&path, &path).expect("opened");
    assert_eq!(read_all(&mut followed), b"first line\n");
    assert!(!followed.was_truncated());
    File::options()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"second\n"))
        .expect("appended");
    assert!(!followed.was_truncated(), "it has only grown");
    std::fs::write(&path, "short\n").expect("written");
    assert!(followed.was_truncated(), "shorter");
    std::fs::write(&path, "another line that is longer than before\n").expect("written");
    assert!(followed.was_truncated(), "it begins differently");
    followed.restart();
    assert_eq!(read_all(&mut followed), b"another line that is longer than before\n");
}

#[test]
fn positions_survive_a_restart_and_a_rename() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, state) = (dir.path().join("log"), dir.path().join("state.json"));
    std::fs::write(&path, "one\ntwo\npart").expect("written");
    let mut followed = FollowedFile::open(&path, &path).expect("opened");
    assert_eq!(read_all(&mut followed).len(), 12);
    let mut positions = Positions::load(&state).expect("no state yet");
    let snapshot = positions.snapshot([(&followed, 4)].into_iter());
    positions.save(snapshot).expect("saved");

    let mut again = FollowedFile::open(&path, &path).expect("opened");
    assert_eq!(Positions::load(&state).expect("loaded").resume(&mut again), None);
    assert_eq!(read_all(&mut again), b"part", "the unfinished line is read again");

    std::fs::rename(&path, dir.path().join("log.1")).expect("renamed");
    std::fs::write(&path, "one\ntwo\npart").expect("another file that begins alike");
    let mut positions = Positions::load(&state).expect("loaded");
    let mut renamed = positions.find_renamed(&path);
    assert_eq!(renamed.len(), 1);
    assert_eq!(read_all(&mut renamed[0].1), b"part");
    let mut new = FollowedFile::open(&path, &path).expect("opened");
    assert_eq!(positions.resume(&mut new), None, "the former file was found");
    assert_eq!(read_all(&mut new).len(), 12, "the new file is read from its start");
}

#[test]
fn a_damaged_state_file_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = dir.path().join("state.json");
    let path = dir.path().join("log");
    std::fs::write(&path, "one\n").expect("written");
    let mut followed = FollowedFile::open(&path, &path).expect("opened");
    read_all(&mut followed);
    let mut positions = Positions::load(&state).expect("none");
    let snapshot = positions.snapshot([(&followed, 0)].into_iter());
    positions.save(snapshot).expect("saved");
    let good = std::fs::read_to_string(&state).expect("read");
    assert!(parse(&good).is_some());
    for end in 0..good.len() {
        assert!(parse(&good[..end]).is_none(), "cut at {end}");
    }
    let changed = good.replace("\"offset\":4", "\"offset\":5");
    assert_ne!(changed, good);
    std::fs::write(&state, changed).expect("written");
    assert!(Positions::load(&state).is_err());
}

#[test]
fn a_file_that_changed_while_nothing_ran_is_reported_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, state) = (dir.path().join("log"), dir.path().join("state.json"));
    let change = || {
        let mut positions = Positions::load(&state).expect("loaded");
        let mut followed = FollowedFile::open(&path, &path).expect("opened");
        assert!(positions.find_renamed(&path).is_empty());
        let change = positions.resume(&mut followed);
        read_all(&mut followed);
        let snapshot = positions.snapshot([(&followed, 0)].into_iter());
        assert_eq!(snapshot.len(), 1, "the former position is forgotten");
        positions.save(snapshot).expect("saved");
        change
    };
    std::fs::write(&path, "one\ntwo\nthree\n").expect("written");
    assert_eq!(change(), None, "the first run");
    assert_eq!(change(), None, "nothing happened");
    std::fs::write(&path, "1\n").expect("truncated");
    let shorter = change().expect("a change");
    assert!(shorter.contains("it has 2 bytes, and 14 bytes of it had been read"), "{shorter}");
    std::fs::write(&path, "another line\n").expect("overwritten");
    let other = change().expect("a change");
    assert!(other.contains("its first bytes differ, and 2 bytes of it"), "{other}");
    std::fs::write(dir.path().join("new"), "one\n").expect("written");
    std::fs::rename(dir.path().join("new"), &path).expect("replaced");
    let replaced = change().expect("a change");
    assert!(replaced.contains("is another file than the one of which 13 bytes were read"), "{replaced}");
    assert_eq!(change(), None, "it is reported once");
}
