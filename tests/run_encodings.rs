//! Programs that convert text to another encoding when they flush it: `weir run`, `flush` and `peek` must not write it before.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::programs::{self, PROGRAM, SOURCE};
use common::{KillOnDrop, disk_dir, names, run, skip, text, wait_for};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/encodings").join(name)
}

fn has_perl(test: &str) -> bool {
    let found = Command::new("perl").args(["-MEncode", "-e1"]).status().is_ok_and(|status| status.success());
    if !found {
        skip(test, "there is no perl with Encode");
    }
    found
}

/// Returns the words of a command that writes to a file in an encoding: alone and to a second file under weir.
struct Encoded<'a> {
    dir: &'a Path,
    /// The program and its arguments before those of the script.
    program: Vec<String>,
    encoding: &'a str,
}

impl Encoded<'_> {
    fn command(&self, file: &str, more: &[&str]) -> Vec<String> {
        let words = [file, self.encoding].into_iter().chain(more.iter().copied()).map(str::to_owned);
        self.program.iter().cloned().chain(words).collect()
    }

    /// Returns what the program writes alone.
    fn alone(&self) -> Vec<u8> {
        let words = self.command("alone", &[]);
        let status =
            Command::new(&words[0]).args(&words[1..]).current_dir(self.dir).status().expect("a program");
        assert!(status.success(), "{words:?}");
        fs::read(self.dir.join("alone")).expect("a file")
    }

    /// Runs the program under `weir run` and returns its file and the standard error.
    fn under_weir(&self, options: &[&str], more: &[&str]) -> (Vec<u8>, String) {
        let _absent = fs::remove_file(self.dir.join("file"));
        let words = self.command("file", more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(self.dir, &[&["run"], options, &["--"], &words].concat());
        (fs::read(self.dir.join("file")).unwrap_or_default(), text(&output.stderr))
    }

    /// Checks that weir writes the bytes of the program alone: all of them, or at a kill the first of them.
    fn check(&self, is_exact: bool) {
        let (alone, encoding) = (self.alone(), self.encoding);
        let (early, _) = self.under_weir(&["--max-delay", "20ms"], &[]);
        assert!(early == alone, "{encoding}: {} bytes, alone {}", early.len(), alone.len());
        let (rescued, stderr) = self.under_weir(&["--rescue"], &["kill"]);
        let saved = names(self.dir).into_iter().filter(|name| name.ends_with(".bin")).collect::<Vec<_>>();
        assert!(alone.starts_with(&rescued), "{encoding}: {} bytes\n{stderr}", rescued.len());
        assert_eq!(rescued == alone, is_exact, "{encoding}: {} bytes\n{stderr}", rescued.len());
        assert_eq!(saved.is_empty(), is_exact, "{encoding}: {saved:?}\n{stderr}");
        assert_eq!(stderr.contains("saved bytes are UTF-8"), !is_exact, "{encoding}: {stderr}");
        for name in saved {
            let bytes = fs::read(self.dir.join(&name)).expect("saved bytes");
            assert!(!bytes.is_empty() && std::str::from_utf8(&bytes).is_ok(), "{encoding}: {bytes:?}");
            fs::remove_file(self.dir.join(name)).expect("it is there");
        }
    }
}

/// The buffer of the layer was written in UTF-8, Perl's internal form, and then again in its encoding.
#[test]
fn perl_converts_what_it_writes_itself() {
    if !has_perl("perl_converts_what_it_writes_itself") {
        return;
    }
    let dir = disk_dir();
    let program = vec!["perl".into(), source("layers.pl").to_string_lossy().into_owned()];
    let cases = [
        (":encoding(iso-8859-1)", false),
        (":encoding(UTF-16LE)", false),
        (":encoding(cp1252):crlf", false),
        (":encoding(UTF-8):encoding(iso-8859-1)", false),
        (":encoding(UTF-8)", true),
        (":encoding(UTF-8):crlf", true),
        (":encoding(utf8)", true),
        (":utf8", true),
    ];
    for (encoding, is_exact) in cases {
        Encoded { dir: dir.path(), program: program.clone(), encoding }.check(is_exact);
    }
}

/// The wide characters of each stream of glibc were written in UTF-8, whatever its encoding is.
#[test]
#[cfg(target_env = "gnu")]
fn glibc_converts_wide_characters_itself() {
    let dir = disk_dir();
    let program = dir.path().join("wide");
    let words = ["-O1", "-w", "-o", PROGRAM, SOURCE];
    let Ok(output) = programs::compile("cc", &words, &source("wide.c"), &program) else {
        return skip("glibc_converts_wide_characters_itself", "there is no C compiler");
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let program: Vec<String> =
        ["env", "LC_ALL=C.UTF-8", program.to_str().expect("UTF-8")].map(str::to_owned).to_vec();
    let cases = [
        ("w,ccs=UTF-16LE", false),
        ("w,ccs=ISO-8859-15", false),
        ("w,ccs=ISO-8859-1", true),
        ("w,ccs=UTF-8", true),
        ("w", true),
    ];
    for (encoding, is_exact) in cases {
        Encoded { dir: dir.path(), program: program.clone(), encoding }.check(is_exact);
    }
}

/// The kernel programs of eBPF did not see wide characters, and nothing was wrong with a killed program that had some.
#[test]
#[cfg(target_env = "gnu")]
fn wide_characters_that_a_kill_loses_are_found() {
    const CALLS: &str = r#"
        #include <locale.h>
        #include <signal.h>
        #include <stdio.h>
        #include <wchar.h>
        int put(FILE *file) { return fputws(L"Gr\u00f6\u00dfe\n", file); }
    "#;
    const MAIN: &str = r#"
        #include <locale.h>
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        int put(FILE *file);
        int main(int argc, char **argv) {
            setlocale(LC_ALL, "C.UTF-8");
            FILE *file = fopen(argv[1], argv[2]);
            put(file);
            usleep(50000);
            raise(SIGKILL);
        }
    "#;
    trace::for_each_engine(|engine, dir| {
        // In one program the executable writes them, in the other one a library.
        let Some(own) =
            trace::compile(dir, "own", &[CALLS, &MAIN.replace("int put(FILE *file);", "")].concat(), &[])
        else {
            return;
        };
        let library = trace::compile(dir, "libput.so", CALLS, &["-shared", "-fPIC"]).expect("a library");
        let folder = library.parent().expect("a folder").to_str().expect("UTF-8").to_owned();
        let (place, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
        let flags = [place.as_str(), "-lput", path.as_str()];
        let other = trace::compile(dir, "other", MAIN, &flags).expect("a program");
        for program in [&own, &other] {
            for (mode, is_exact) in [("w", true), ("w,ccs=UTF-16LE", false)] {
                let command = [trace::path(program), "file", mode];
                let (_, seen) = trace::traced(dir, &["-q", "--engine", engine], &command);
                let found = trace::finding(&seen, "lost-at-kill")
                    .unwrap_or_else(|| panic!("{engine} {command:?}: {seen}"));
                assert_eq!(
                    found["evidence"]["lost_bytes"].as_f64(),
                    Some(8.0),
                    "{engine} {command:?}: {found}"
                );
                let why = found["why"].as_str().expect("text");
                assert!(why.contains("Größe"), "{engine}: {why}");
                assert_eq!(why.contains("not converted"), !is_exact, "{engine} {command:?}: {why}");
            }
        }
    });
}

/// `weir peek` offered `weir flush` for bytes that it then refused to write.
#[test]
fn flush_is_not_offered_for_bytes_that_are_not_converted() {
    if !has_perl("flush_is_not_offered_for_bytes_that_are_not_converted") {
        return;
    }
    let dir = disk_dir();
    let script = r#"open my $o, ">:encoding(iso-8859-1)", "file"; print $o "Gr\x{f6}\x{df}e\n"; sleep 60"#;
    let mut command = Command::new("perl");
    command.args(["-e", script]).current_dir(dir.path()).stdout(Stdio::null());
    let process = KillOnDrop(command.spawn().expect("perl"));
    let pid = process.0.id().to_string();
    let mut screen = String::new();
    wait_for("the pending bytes", || {
        screen = text(&run(dir.path(), &["peek", &pid]).stdout);
        screen.contains("Größe")
    });
    assert!(screen.contains("8 B are not yet converted") && !screen.contains("weir flush"), "{screen}");
    let output = run(dir.path(), &["flush", &pid]);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("to another encoding"), "{}", text(&output.stderr));
    assert_eq!(fs::read(dir.path().join("file")).expect("a file"), b"");
}
