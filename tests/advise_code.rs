//! Compiles and runs the programs of `weir advise` in every language and for every kind of policy, and compares the bytes that they
//! write.
//!
//! The programs are a campaign: `make test` runs each language and each kind at least once.

#[path = "advise_code/after_errors.rs"]
mod after_errors;
mod common;
#[path = "advise_code/languages.rs"]
mod languages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use common::{campaign, disk_dir, file_limit, skip, text};
use languages::{LANGUAGES, ProgramLanguage};
use weir_advise::{WritePolicy, code};
use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, AllowedLoss, Medium, SyncPoint, WriteMethod};

/// A kind of policy: the name in messages, the policy, the writers.
type Kind = (&'static str, WritePolicy, u32);

fn policy(mode: Mode, sync: SyncPoint, flush_s: Option<f64>, sync_s: Option<f64>) -> WritePolicy {
    let gathers = mode == Mode::Full;
    WritePolicy {
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
        ("each", policy(Mode::None, SyncPoint::None, None, None), 1),
        ("buffer", policy(Mode::Full, SyncPoint::None, None, None), 1),
        ("line", policy(Mode::Line, SyncPoint::None, None, None), 1),
        ("each and fdatasync", policy(Mode::None, SyncPoint::Record, None, None), 1),
        ("O_DSYNC", policy(Mode::None, SyncPoint::ODsync, None, None), 1),
        ("group commit", policy(Mode::None, SyncPoint::Group, None, None), 3),
        ("each and a timer that syncs", policy(Mode::None, SyncPoint::Period, None, period), 1),
        ("buffer and a timer", policy(Mode::Full, SyncPoint::None, period, None), 1),
        ("buffer and a timer that syncs", policy(Mode::Full, SyncPoint::Period, period, period), 1),
        ("each, shared", policy(Mode::None, SyncPoint::None, None, None), 3),
        ("buffer, shared", policy(Mode::Full, SyncPoint::None, None, None), 3),
        ("line, shared", policy(Mode::Line, SyncPoint::None, None, None), 3),
        ("each and fdatasync, shared", policy(Mode::None, SyncPoint::Record, None, None), 3),
        ("O_DSYNC, shared", policy(Mode::None, SyncPoint::ODsync, None, None), 3),
    ]
}

/// The policies that bypass the streams.
fn bypassing() -> Vec<Kind> {
    let of = |method, mode, buffer_bytes| WritePolicy {
        method,
        mode,
        buffer_bytes,
        sync: SyncPoint::None,
        flush_period_s: None,
        sync_period_s: None,
    };
    vec![
        ("shared mapping", of(WriteMethod::Mmap, Mode::None, 0), 1),
        ("O_DIRECT", of(WriteMethod::Direct, Mode::Full, BLOCK), 1),
        ("io_uring", of(WriteMethod::IoUring, Mode::Full, BLOCK), 1),
        ("copy inside the kernel", of(WriteMethod::InKernel, Mode::None, 0), 1),
    ]
}

/// Block of the policies that bypass the streams, as weir advises it.
const BLOCK: u64 = 65_536;
/// Limit of a file's size, as a disk that becomes full: less than the input of the policies that bypass the streams.
const LIMIT_BYTES: usize = 256 << 10;

/// Returns the calls of which one shows in a list of system calls if a program uses a method.
fn proof(method: WriteMethod) -> &'static [&'static str] {
    match method {
        WriteMethod::Mmap => &["MAP_SHARED"],
        WriteMethod::Direct => &["O_DIRECT"],
        WriteMethod::IoUring => &["io_uring_enter("],
        WriteMethod::InKernel => &["copy_file_range(", "sendfile(", "splice("],
        WriteMethod::Syscall | WriteMethod::Stdio | WriteMethod::Libweir => &[],
    }
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

/// Returns the path of libweir, if it is built.
fn libweir_archive() -> Option<PathBuf> {
    let target = Path::new(common::WEIR).ancestors().nth(2).expect("the target directory").to_path_buf();
    let paths = [target, root().join("target")].map(|target| target.join("libweir/libweir.a"));
    paths.into_iter().find(|path| path.exists())
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
fn records(key: &str, (_, policy, _): &Kind) -> Vec<u8> {
    let (many, long) = match policy.method {
        // More than a window of the mapping, and a record that is longer than a block.
        WriteMethod::Mmap | WriteMethod::Direct | WriteMethod::IoUring | WriteMethod::InKernel => {
            (300_000, 70_000)
        }
        _ if policy.sync != SyncPoint::None => (30, 5000),
        _ => (3000, 5000),
    };
    let mut records: Vec<u8> =
        (0..many).flat_map(|number| format!("record {number} ä\n").into_bytes()).collect();
    records.extend([vec![b'x'; long], b"\n\n".to_vec(), b"the last\n".to_vec()].concat());
    if key != "shell" || policy.is_for_experts() {
        records.extend(b"\xff\xfe\0bytes\n");
    }
    if key != "shell" || policy.mode != Mode::Full || policy.is_for_experts() {
        records.extend(b"no newline at the end"); // weir log would add one
    }
    records
}

/// Fails if a program writes a record that is longer than its buffer with several calls: another writer's record could get in between.
fn writes_long_records_whole(language: &ProgramLanguage, dir: &Path) -> Result<(), String> {
    if !common::has("strace") {
        skip("advise_code", "strace is not installed");
        return Ok(());
    }
    let words = [&["strace", "-f", "-e", "trace=write,writev", "-o", "calls"], language.run].concat();
    let mut run = command(&words, dir, "");
    run.arg("whole").stdin(fs::File::open(dir.join("input")).unwrap());
    let ran = run.output().map_err(|error| error.to_string())?;
    let list = text(&fs::read(dir.join("calls")).unwrap_or_default());
    let parts: Vec<&str> = list.lines().filter(|line| line.contains("\"xxxx")).collect();
    match ran.status.success() && parts.len() == 1 && parts[0].ends_with("= 5001") {
        true => Ok(()),
        false => Err(format!("{}: a record of 5001 bytes is written by {parts:?}", ran.status)),
    }
}

/// Runs a program whose files have a limit. Returns its status and the bytes of its file.
fn run_with_limit(
    language: &ProgramLanguage,
    dir: &Path,
    limit: &[String],
) -> Result<(ExitStatus, u64), String> {
    let words: Vec<&str> = limit.iter().map(String::as_str).chain(language.run.iter().copied()).collect();
    let mut run = command(&words, dir, "");
    run.arg("limited").stdin(fs::File::open(dir.join("input")).unwrap()).stderr(Stdio::null());
    // The JVM maps a file of its own that is longer than the limit.
    run.env("JAVA_TOOL_OPTIONS", "-XX:-UsePerfData");
    let status = run.status().map_err(|error| error.to_string())?;
    Ok((status, fs::metadata(dir.join("limited")).map_or(0, |file| file.len())))
}

/// Runs a program on a disk that becomes full after some bytes. Fails if it succeeds.
fn notices_a_full_disk(language: &ProgramLanguage, dir: &Path) -> Result<(), String> {
    let (status, bytes) = run_with_limit(language, dir, &file_limit(4, true))?;
    match status.success() {
        true => Err(format!("a disk that is full after {bytes} bytes is not noticed")),
        false => Ok(()),
    }
}

/// Runs a program whose system calls are listed. Fails if it does not use its method.
fn uses_its_method(language: &ProgramLanguage, kind: &Kind, dir: &Path) -> Result<(), String> {
    if !common::has("strace") {
        skip("advise_code", "strace is not installed");
        return Ok(());
    }
    let calls = "trace=open,openat,openat2,fcntl,mmap,mmap2,io_uring_enter,copy_file_range,sendfile,sendfile64,splice";
    let words = [&["strace", "-f", "-e", calls, "-o", "calls"], language.run].concat();
    let mut run = command(&words, dir, "");
    run.arg("traced").stdin(fs::File::open(dir.join("input")).unwrap());
    let ran = run.output().map_err(|error| error.to_string())?;
    let list = text(&fs::read(dir.join("calls")).unwrap_or_default());
    let proof = proof(kind.1.method);
    let is_proof = |line: &&str| {
        proof.iter().any(|call| line.contains(call))
            && !line.contains("= -1")
            && !line.trim_end().ends_with("= 0")
            || line.contains("F_SETFL") && line.contains("O_DIRECT") && line.contains("= 0")
    };
    match ran.status.success() && list.lines().any(|line| is_proof(&line)) {
        true => Ok(()),
        false => Err(format!("{}: no {proof:?} in {} calls", ran.status, list.lines().count())),
    }
}

/// Runs a program whose file may not become as long as the records, as on a disk that becomes full. Fails if it succeeds.
fn notices_the_limit(language: &ProgramLanguage, dir: &Path) -> Result<(), String> {
    let (status, bytes) = run_with_limit(language, dir, &file_limit(LIMIT_BYTES / 1024, false))?;
    match status.success() {
        true => Err(format!("the limit of the file's size is not noticed: {bytes} bytes")),
        false if bytes > LIMIT_BYTES as u64 => Err(format!("{bytes} bytes are more than the limit")),
        false => Ok(()),
    }
}

/// Runs a program twice: it appends. Returns what is wrong.
fn problem(language: &ProgramLanguage, kind: &Kind, libweir: &str) -> Result<(), String> {
    let dir = disk_dir();
    let program =
        code::programs(&kind.1, &question(kind.2), None).remove(language.key).ok_or("no program")?;
    fs::write(dir.path().join(language.file), &program).map_err(|error| error.to_string())?;
    let mut build = command(language.build, dir.path(), libweir);
    if kind.1.method == WriteMethod::IoUring {
        build.arg("-luring");
    }
    let built = build.output().map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err(format!("{}{}", text(&built.stdout), text(&built.stderr)));
    }
    let input = records(language.key, kind);
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
    if kind.1.is_for_experts() {
        uses_its_method(language, kind, dir.path())?;
        notices_the_limit(language, dir.path())?;
    } else if language.key == "shell" && kind.1.gathers() {
        return Ok(()); // weir log waits until the disk has room
    } else {
        notices_a_full_disk(language, dir.path())?;
    }
    if ["c", "cpp"].contains(&language.key) && !kind.1.is_for_experts() {
        writes_long_records_whole(language, dir.path())?;
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
    let libweir = libweir_archive();
    let kinds: Vec<Kind> = kinds().into_iter().chain(bypassing()).collect();
    let mut cases = Vec::new();
    for language in &LANGUAGES {
        let absent = language.needs.iter().find(|tool| !common::has(tool));
        match absent {
            Some(tool) => skip("advise_code", &format!("{}: {tool} is not installed", language.key)),
            None if language.key == "c-libweir" && libweir.is_none() => {
                skip("advise_code", "c-libweir: libweir is not built (make libweir)");
            }
            None => {
                let has_program = |kind: &&Kind| code::why_absent(language.key, kind.1.method).is_none();
                cases.extend(kinds.iter().filter(has_program).map(|kind| (language, kind)));
            }
        }
    }
    if let Ok(only) = std::env::var("WEIR_ADVISE_CODE") {
        cases.retain(|(_, kind)| kind.0 == only || only == "bypassing" && kind.1.is_for_experts());
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
