//! Compiles and runs the programs of `weir advise` in every language and for every kind of way, and compares the bytes that they
//! write.
//!
//! The programs are a campaign: `make test` runs each language and each kind at least once.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{campaign, disk_dir, skip, text};
use weir_advise::{Way, code};
use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, AllowedLoss, Medium, SyncPoint, WriteMethod};

/// A language: its key, file, build and run. `@LIBWEIR@` is the folder of libweir.
struct ProgramLanguage {
    key: &'static str,
    needs: &'static [&'static str],
    file: &'static str,
    build: &'static [&'static str],
    run: &'static [&'static str],
}

const LANGUAGES: [ProgramLanguage; 9] = [
    ProgramLanguage {
        key: "c",
        needs: &["gcc"],
        file: "log.c",
        build: &["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-o", "log", "log.c"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "c-libweir",
        needs: &["gcc"],
        file: "log.c",
        build: &[
            "gcc",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-pthread",
            "-I@HEADERS@",
            "-o",
            "log",
            "log.c",
            "@LIBWEIR@",
        ],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "cpp",
        needs: &["g++"],
        file: "log.cpp",
        build: &[
            "g++",
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-pthread",
            "-o",
            "log",
            "log.cpp",
        ],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "python",
        needs: &["python3"],
        file: "log.py",
        build: &["true"],
        run: &["python3", "log.py"],
    },
    ProgramLanguage {
        key: "rust",
        needs: &["rustc"],
        file: "log.rs",
        build: &["rustc", "--edition", "2021", "-Dwarnings", "-o", "log", "log.rs"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "go",
        needs: &["go"],
        file: "log.go",
        build: &["go", "build", "-o", "log", "log.go"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "java",
        needs: &["javac", "java"],
        file: "Log.java",
        build: &["javac", "-Xlint:all,-try", "-Werror", "Log.java"],
        run: &["java", "-cp", ".", "Log"],
    },
    ProgramLanguage {
        key: "node",
        needs: &["node"],
        file: "log.js",
        build: &["true"],
        run: &["node", "log.js"],
    },
    ProgramLanguage {
        key: "shell",
        needs: &[],
        file: "log.sh",
        build: &["sh", "-n", "log.sh"],
        run: &["sh", "log.sh"],
    },
];

/// A kind of way: the name in messages, the way, the writers.
type Kind = (&'static str, Way, u32);

fn way(mode: Mode, sync: SyncPoint, flush_s: Option<f64>, sync_s: Option<f64>) -> Way {
    let gathers = mode == Mode::Full;
    Way {
        method: if mode == Mode::None { WriteMethod::Syscall } else { WriteMethod::Stdio },
        mode,
        buffer_bytes: if mode == Mode::None { 0 } else { 4096 },
        sync,
        flush_period_s: flush_s.filter(|_| gathers),
        sync_period_s: sync_s,
    }
}

fn kinds() -> Vec<Kind> {
    let period = Some(0.02);
    vec![
        ("each", way(Mode::None, SyncPoint::None, None, None), 1),
        ("buffer", way(Mode::Full, SyncPoint::None, None, None), 1),
        ("line", way(Mode::Line, SyncPoint::None, None, None), 1),
        ("each and fdatasync", way(Mode::None, SyncPoint::Record, None, None), 1),
        ("O_DSYNC", way(Mode::None, SyncPoint::ODsync, None, None), 1),
        ("group commit", way(Mode::None, SyncPoint::Group, None, None), 3),
        ("each and a timer that syncs", way(Mode::None, SyncPoint::Period, None, period), 1),
        ("buffer and a timer", way(Mode::Full, SyncPoint::None, period, None), 1),
        ("buffer and a timer that syncs", way(Mode::Full, SyncPoint::Period, period, period), 1),
        ("each, shared", way(Mode::None, SyncPoint::None, None, None), 3),
        ("buffer, shared", way(Mode::Full, SyncPoint::None, None, None), 3),
        ("line, shared", way(Mode::Line, SyncPoint::None, None, None), 3),
        ("each and fdatasync, shared", way(Mode::None, SyncPoint::Record, None, None), 3),
        ("O_DSYNC, shared", way(Mode::None, SyncPoint::ODsync, None, None), 3),
    ]
}

fn question(sharers: u32) -> AdviceQuestion {
    AdviceQuestion {
        record_bytes: 40,
        rate: 100.0,
        loss: AllowedLoss::Buffer,
        latency_s: 1.0,
        sharers,
        medium: Medium::Unknown,
        lang: AdviceLanguage::C,
        dir: ".".into(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a command in `dir` that finds the tools and the built weir, with a neutral environment.
fn command(words: &[&str], dir: &Path, libweir: &str) -> Command {
    let headers = root().join("libweir/include");
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("@LIBWEIR@", libweir).replace("@HEADERS@", &headers.display().to_string()))
        .collect();
    let weir = Path::new(common::WEIR).parent().expect("a directory");
    let path = format!("/usr/bin:/bin:{}:{}", weir.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(dir).env("PATH", path).env("LC_ALL", "C.UTF-8");
    command.env_remove("PYTHONUNBUFFERED");
    command
}

/// Records of many lengths: more than a buffer, one longer than a buffer, an empty one, bytes that are no UTF-8.
fn records(key: &str, synced: bool) -> Vec<u8> {
    let many = if synced { 30 } else { 3000 };
    let mut records: Vec<u8> =
        (0..many).flat_map(|number| format!("record {number} ä\n").into_bytes()).collect();
    records.extend([vec![b'x'; 5000], b"\n\n".to_vec(), b"the last\n".to_vec()].concat());
    if key != "shell" {
        records.extend(b"\xff\xfe\0bytes\nno newline at the end");
    }
    records
}

/// Runs a program twice: it appends. Returns what is wrong.
fn problem(language: &ProgramLanguage, kind: &Kind, libweir: &str) -> Result<(), String> {
    let dir = disk_dir();
    let program = code::programs(&kind.1, &question(kind.2)).remove(language.key).ok_or("no program")?;
    fs::write(dir.path().join(language.file), &program).map_err(|error| error.to_string())?;
    let built = command(language.build, dir.path(), libweir).output().map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err(format!("{}{}", text(&built.stdout), text(&built.stderr)));
    }
    let input = records(language.key, kind.1.sync != SyncPoint::None);
    fs::write(dir.path().join("input"), &input).map_err(|error| error.to_string())?;
    for time in 1..=2 {
        let mut run = command(language.run, dir.path(), libweir);
        run.arg("out").stdin(fs::File::open(dir.path().join("input")).unwrap());
        let ran = run.output().map_err(|error| error.to_string())?;
        if !ran.status.success() {
            return Err(format!("{}: {}", ran.status, text(&ran.stderr)));
        }
        let written = fs::read(dir.path().join("out")).map_err(|error| error.to_string())?;
        let expected = input.repeat(time);
        // weir log ends the last record; every other program writes the bytes as they are.
        if written != expected {
            return Err(format!("run {time}: {} bytes of {} are as expected", written.len(), expected.len()));
        }
    }
    if language.key == "shell" && kind.1.gathers() {
        return Ok(()); // weir log waits until the disk has room
    }
    let full = command(language.run, dir.path(), libweir)
        .arg("/dev/full")
        .stdin(fs::File::open(dir.path().join("input")).unwrap())
        .stderr(Stdio::null())
        .status();
    match full.map_err(|error| error.to_string())?.success() {
        // fsync(2) of a device fails before the first write, which is an error as well.
        true => Err("a full disk is not noticed".into()),
        false => Ok(()),
    }
}

#[test]
fn every_program_writes_every_record() {
    let target = Path::new(common::WEIR).ancestors().nth(2).expect("the target directory").to_path_buf();
    let libweir = [target, root().join("target")].map(|target| target.join("libweir/libweir.a"));
    let libweir = libweir.into_iter().find(|path| path.exists());
    let kinds = kinds();
    let mut cases = Vec::new();
    for language in &LANGUAGES {
        let absent = language.needs.iter().find(|tool| !common::has(tool));
        match absent {
            Some(tool) => skip("advise_code", &format!("{}: {tool} is not installed", language.key)),
            None if language.key == "c-libweir" && libweir.is_none() => {
                skip("advise_code", "c-libweir: libweir is not built (make libweir)");
            }
            None => cases.extend(kinds.iter().map(|kind| (language, kind))),
        }
    }
    // Kind by kind with another language each, so that a subset has all kinds and all languages.
    let place = |&(language, kind): &(&ProgramLanguage, &Kind)| {
        let language = LANGUAGES.iter().position(|one| one.key == language.key).unwrap_or(0);
        let kind = kinds.iter().position(|one| one.0 == kind.0).unwrap_or(0);
        ((kind + LANGUAGES.len() * kinds.len() - language) % LANGUAGES.len(), kind)
    };
    cases.sort_by_key(place);
    campaign::choose("advise_code", &mut cases, |(language, kind)| {
        vec![language.key.to_string(), kind.0.to_string()]
    });
    let libweir = libweir.map(|path| path.display().to_string()).unwrap_or_default();
    let check = |&(language, kind): &(&ProgramLanguage, &Kind)| {
        problem(language, kind, &libweir)
            .err()
            .map(|problem| format!("{}, {}: {problem}", language.key, kind.0))
    };
    let problems: Vec<String> = cases.iter().filter_map(check).collect();
    println!("{} passed, {} failed, 0 skipped", cases.len() - problems.len(), problems.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
