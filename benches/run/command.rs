//! The command line of a program, bare or under weir or another tool.

use std::process::Command;

use crate::bench_dir::BenchDir;
use crate::targets::built;

impl BenchDir {
    /// Returns the command for `program`. `under` is empty, or `weir` with options of `weir run`, or another command.
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
