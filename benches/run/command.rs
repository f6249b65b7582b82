//! A program as it is run: bare, or under something.

use std::process::Command;

use crate::bed::Bed;
use crate::targets::built;

impl Bed {
    /// One of the programs, bare or under `weir run OPTIONS --`, or under another command.
    pub fn command(&self, under: &[&str], program: &str) -> Command {
        let mut words: Vec<&str> = under.to_vec();
        if words.first() == Some(&"weir") {
            words.splice(0..1, [built::weir(), "run", "--quiet"]);
            words.push("--");
        }
        let program = self.path(program);
        match words.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }
}
