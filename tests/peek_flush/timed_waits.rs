//! Waits with a timeout end on time under `weir flush --every`, however often it stops the program.

use std::process::{Command, Stdio};

use super::common::{KillOnDrop, weir};
use super::programs::{Program, built};

/// The seconds for which the program runs. Its waits take 0.3 s and 0.5 s.
const SECONDS: i32 = 4;

#[test]
fn waits_end_at_their_timeout_while_the_program_is_flushed() {
    const TEST: &str = "waits_end_at_their_timeout_while_the_program_is_flushed";
    let Some(path) = built(TEST, "gcc", &["-O2", "-pthread"], "timed_waits.c") else { return };
    let mut program = Program::start(Command::new(&path).arg(SECONDS.to_string()));
    let pid = program.pid().to_string();
    let mut flush = weir(program.dir(), &["flush", "--every", "100ms", &pid]);
    let flush = KillOnDrop(flush.stdout(Stdio::null()).spawn().expect("weir starts"));
    let (status, errors) = program.end_with_errors();
    drop(flush);
    assert_eq!(status, Some(0), "{errors}");
    let waiters: Vec<Vec<&str>> = errors.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(waiters.len(), 5, "{errors}");
    for waiter in waiters {
        let &[name, ended, early, failed, _] = &waiter[..] else { panic!("{errors}") };
        let number = |word: &str| word.parse::<i32>().expect("a number");
        assert_eq!((number(early), number(failed)), (0, 0), "{name}: {errors}");
        // Without weir it is 8 or more. A wait that always starts again ends once, after the last flush.
        assert!(number(ended) >= 3, "{name}: {errors}");
    }
    assert!(program.out().starts_with("line 0\nline 1\n"));
}
