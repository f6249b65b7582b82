//! Programs with 100 MB of other objects: the streams that weir finds by a search of the memory are written early, and rescued.

mod common;

use std::fs;

use common::programs::{PROGRAM, SOURCE, compile};
use common::{disk_dir, skip, text, weir};

/// Writes 50 lines into a stream for `log`. With the argument `wait` it then waits until weir has written bytes of it, and loses
/// the rest; otherwise it is killed.
const CPP: &str = r#"
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
int main(int, char **words) {
    std::vector<std::string> strings;
    for (int i = 0; i < 100000; i++) strings.push_back(std::string(1000, 'x'));
    std::ofstream log("log");
    for (int i = 0; i < 50; i++) log << "line " << i << "\n";
    if (strcmp(words[1], "wait")) raise(SIGKILL);
    struct stat found;
    for (int i = 0; i < 3000; i++, usleep(10000))
        if (!stat("log", &found) && found.st_size) _exit(0);
    _exit(3);
}
"#;

const RUST: &str = r#"
use std::io::Write;
use std::time::Duration;
fn main() {
    let strings: Vec<Vec<u8>> = (0..100_000).map(|_| vec![b'x'; 1000]).collect();
    let mut log = std::io::BufWriter::new(std::fs::File::create("log").unwrap());
    for i in 0..50 {
        writeln!(log, "line {i}").unwrap();
    }
    if std::env::args().nth(1).unwrap() != "wait" {
        std::process::Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().unwrap();
    }
    for _ in 0..3000 {
        if std::fs::metadata("log").unwrap().len() > 0 {
            std::mem::forget(log);
            std::process::exit(0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{}", strings.len());
    std::process::exit(3);
}
"#;

const GO: &str = r#"
package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

var strings [][]byte

func main() {
	for i := 0; i < 100000; i++ {
		one := make([]byte, 1000)
		one[1] = 'x'
		strings = append(strings, one)
	}
	file, _ := os.Create("log")
	log := bufio.NewWriter(file)
	for i := 0; i < 50; i++ {
		fmt.Fprintf(log, "line %d\n", i)
	}
	if os.Args[1] != "wait" {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for i := 0; i < 3000; i++ {
		if found, _ := os.Stat("log"); found.Size() > 0 {
			os.Exit(0)
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(3)
}
"#;

fn check(test: &str, compiler: &str, words: &[&str], (name, source): (&str, &str)) {
    let dir = disk_dir();
    let path = dir.path().join(name);
    fs::write(&path, source).expect("the source");
    match compile(compiler, words, &path, &dir.path().join("program")) {
        Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
        Err(why) => return skip(test, &format!("{compiler}: {why}")),
    }
    let lines: String = (0..50).map(|i| format!("line {i}\n")).collect();
    for (option, argument, status) in [("--max-delay=50ms", "wait", 0), ("--rescue", "kill", 128 + 9)] {
        let output =
            weir(dir.path(), &["run", option, "--", "./program", argument]).output().expect("weir starts");
        let log = fs::read_to_string(dir.path().join("log")).expect("the log");
        let shown = text(&output.stderr);
        assert_eq!((output.status.code(), log.as_str()), (Some(status), lines.as_str()), "{option}: {shown}");
        fs::remove_file(dir.path().join("log")).expect("the log");
    }
}

#[test]
fn cpp() {
    check("large_heaps::cpp", "g++", &["-O2", "-o", PROGRAM, SOURCE], ("program.cc", CPP));
}

#[test]
fn rust() {
    check(
        "large_heaps::rust",
        "rustc",
        &["--edition=2021", "-g", "-O", "-o", PROGRAM, SOURCE],
        ("program.rs", RUST),
    );
}

#[test]
fn go() {
    check("large_heaps::go", "go", &["build", "-o", PROGRAM, SOURCE], ("program.go", GO));
}
