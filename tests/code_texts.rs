//! Compiles and runs the code that findings print, in a small program of its language, and checks that it does what the
//! finding promises: few calls, bytes that survive a kill, bytes written once, an error that is noticed, a synced rename.
//!
//! The languages are a campaign: `make test` runs those that start quickly.

mod common;
#[path = "code_texts/compiled.rs"]
mod compiled;
#[path = "code_texts/interpreted.rs"]
mod interpreted;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{campaign, disk_dir, file_limit, skip, text};
use weir_diagnose::{CodeFix, StreamObject, code_fix};
use weir_model::SourceLanguage;

/// The most reads or writes of buffered code: a 27 KB output in blocks of 1 KiB, and the program's start.
const MAX_CALLS: usize = 40;
/// The most of code that asks for 64 KiB: the data, a rest, the end of the input, and the program's start.
const MAX_LARGE_CALLS: usize = 4;
/// The status of a shell for a program that SIGKILL or SIGABRT ended.
const KILLED: [i32; 2] = [137, 134];

/// A language, and its programs around the code.
struct TestLanguage {
    language: SourceLanguage,
    needs: &'static [&'static str],
    file: &'static str,
    prelude: &'static str,
    /// The function of one case; `#` is its number. Empty: each case is a program of its own.
    function: &'static str,
    main: &'static str,
    branch: &'static str,
    build: &'static [&'static str],
    run: &'static [&'static str],
    bodies: &'static [(CodeFix, StreamObject, &'static str)],
}

impl TestLanguage {
    const INTERPRETED: TestLanguage = TestLanguage {
        language: SourceLanguage::Other,
        needs: &[],
        file: "",
        prelude: "",
        function: "",
        main: "",
        branch: "",
        build: &[],
        run: &[],
        bodies: &[],
    };

    /// Returns the source around the cases with these numbers.
    fn source(&self, numbers: &[usize]) -> String {
        let mut source = self.prelude.to_string();
        let mut branches = String::new();
        for &number in numbers {
            let (fix, object, body) = self.bodies[number];
            let body = body.replace("@@", code_fix(self.language, fix, object).code);
            match self.function {
                "" => source += &body,
                function => source += &function.replace('#', &number.to_string()).replace("@@", &body),
            }
            branches += &self.branch.replace('#', &number.to_string());
        }
        source + &self.main.replace("#CASES#", &branches) + "\n"
    }
}

const LANGUAGES: &[&TestLanguage] = &[
    &compiled::C,
    &interpreted::PYTHON,
    &interpreted::PERL,
    &interpreted::SHELL,
    &interpreted::AWK,
    &interpreted::LUA,
    &interpreted::TCL,
    &interpreted::RUBY,
    &compiled::CPP,
    &compiled::RUST,
    &compiled::GO,
    &compiled::JAVA,
    &interpreted::NODE,
    &interpreted::PHP,
];

fn command(words: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(words[0]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(&words[1..]).current_dir(dir).env("PATH", format!("/usr/bin:/bin:{path}"));
    command
        .env_remove("PYTHONUNBUFFERED")
        .env_remove("RUBYOPT")
        .env_remove("PERL5OPT")
        .env("LC_ALL", "C.UTF-8");
    command
}

fn numbers() -> String {
    (0..3000).map(|number| format!("{number:08}\n")).collect()
}

/// The file that the code of a case writes.
fn target(object: StreamObject) -> &'static str {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => "stdout",
        StreamObject::Stderr => "stderr",
        StreamObject::File | StreamObject::Pipe | StreamObject::Socket => "out",
    }
}

/// One run of a case under strace(1).
struct CaseRun {
    status: i32,
    calls: String,
    dir: tempfile::TempDir,
}

impl CaseRun {
    fn content(&self, name: &str) -> String {
        text(&fs::read(self.dir.path().join(name)).unwrap_or_default())
    }

    /// Returns the number of calls of these names on a file, or on sockets.
    fn calls_on(&self, names: &[&str], file: &str) -> usize {
        let on_file = |line: &&str| {
            line.contains(&format!("/{file}>")) || file == "socket" && line.contains("<socket:")
        };
        let named = |line: &&str| names.iter().any(|name| line.contains(&format!("{name}(")));
        self.calls.lines().filter(on_file).filter(named).count()
    }

    /// Returns whether the calls sync a file, rename it and sync the directory, in this order.
    fn syncs_around_rename(&self) -> bool {
        let is_sync = |line: &&str| line.contains("sync(") && line.contains("= 0");
        let rename = self.calls.lines().position(|line| line.contains("rename") && line.contains("= 0"));
        rename.is_some_and(|at| {
            let synced = |line: &str, directory: bool| is_sync(&line) && line.contains("/tmp>") != directory;
            self.calls.lines().take(at).any(|line| synced(line, false))
                && self.calls.lines().skip(at).any(|line| synced(line, true))
        })
    }
}

/// Makes a directory with the program of a case and its input.
fn case_dir(language: &TestLanguage, number: usize, built: Option<&Path>) -> tempfile::TempDir {
    let dir = disk_dir();
    let at = |name: &str| dir.path().join(name);
    match built {
        Some(built) => {
            for file in fs::read_dir(built).expect("the built program").map(|file| file.expect("an entry")) {
                fs::copy(file.path(), at(&file.file_name().to_string_lossy())).expect("a copy");
            }
        }
        None => fs::write(at(language.file), language.source(&[number])).expect("the source"),
    }
    fs::write(at("in"), "123456789\n".repeat(4000)).expect("input");
    fs::write(at("numbers"), numbers()).expect("input");
    fs::write(at("word"), "kept").expect("input");
    fs::write(at("lines"), &numbers()[..5 * 9]).expect("input");
    dir
}

fn run_case(language: &TestLanguage, number: usize, built: Option<&Path>) -> Result<CaseRun, String> {
    let (fix, object, _) = language.bodies[number];
    let dir = case_dir(language, number, built);
    let at = |name: &str| dir.path().join(name);
    let full = fix == CodeFix::CheckErrors && object == StreamObject::Stdout;
    let calls =
        "read,pread64,readv,write,pwrite64,writev,sendto,recvfrom,fsync,fdatasync,rename,renameat,renameat2";
    let trace =
        ["strace", "-f", "-y", "-s", "4", "-e", &format!("trace={calls}"), "-o", "calls"].map(String::from);
    let mut words: Vec<&str> = trace.iter().map(String::as_str).collect();
    words.extend(language.run);
    let case = number.to_string();
    if built.is_some() {
        words.push(&case);
    }
    let mut program = command(&words, dir.path());
    program.stdin(if object == StreamObject::Stdin {
        File::open(at("in")).expect("in").into()
    } else {
        Stdio::null()
    });
    let stdout =
        if full { File::options().write(true).open("/dev/full") } else { File::create(at("stdout")) };
    program.stdout(stdout.expect("stdout")).stderr(File::create(at("stderr")).expect("stderr"));
    let status = program.status().map_err(|error| format!("strace: {error}"))?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    let calls = text(&fs::read(at("calls")).unwrap_or_default());
    Ok(CaseRun { status: status.code().or(signal).unwrap_or(0), calls, dir })
}

/// Returns what is wrong if the code of a case replaces a file although no byte of the new one could be written.
fn replaced_without_content(language: &TestLanguage, number: usize, built: Option<&Path>) -> Option<String> {
    let dir = case_dir(language, number, built);
    fs::write(dir.path().join("out"), "old").expect("the old file");
    let limit = file_limit(0, true);
    let mut words: Vec<&str> = limit.iter().map(String::as_str).collect();
    words.extend(language.run);
    let case = number.to_string();
    if built.is_some() {
        words.push(&case);
    }
    let mut program = command(&words, dir.path());
    let status = program.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("sh starts");
    let content = text(&fs::read(dir.path().join("out")).unwrap_or_default());
    (content != "old").then(|| format!("a file of {content:?} has replaced the old one; {status}"))
}

/// Returns what the code of a case failed to do; None if it did all.
fn failure(language: &TestLanguage, number: usize, run: &CaseRun) -> Option<String> {
    let (fix, object, _) = language.bodies[number];
    let expect = |right: bool, what: String| (!right).then_some(what);
    let (name, status) = (target(object), run.status);
    let count_file = if object == StreamObject::Socket && language.language == SourceLanguage::Python {
        "socket"
    } else {
        name
    };
    let max_calls = if code_fix(language.language, fix, object).code.contains("65536") {
        MAX_LARGE_CALLS
    } else {
        MAX_CALLS
    };
    match fix {
        CodeFix::BufferOutput => {
            let calls = run.calls_on(&["write", "writev", "pwrite64", "sendto"], count_file);
            let right = run.content(name) == numbers() && status == 0;
            expect(right, format!("status {status}, {} bytes", run.content(name).len()))
                .or_else(|| expect((1..=max_calls).contains(&calls), format!("{calls} writes")))
        }
        CodeFix::BufferInput => {
            let file = if count_file == "socket" { "socket" } else { "in" };
            let calls = run.calls_on(&["read", "readv", "pread64", "recvfrom"], file);
            let got = run.content("stdout");
            expect(got == "40000" && status == 0, format!("status {status}, printed {got}"))
                .or_else(|| expect((1..=max_calls).contains(&calls), format!("{calls} reads")))
        }
        CodeFix::Flush => {
            let ended = KILLED.contains(&status) || status == 0;
            let got = run.content(name);
            expect(ended && got.trim_end() == "kept", format!("status {status}, {name} has {got:?}"))
        }
        CodeFix::FlushBeforeFork => {
            let got = run.content(name);
            expect(status == 0 && got == "kept child end", format!("status {status}, {name} has {got:?}"))
        }
        CodeFix::ReadUnbuffered => {
            let got = run.content("stdout");
            expect(
                status == 0 && got == "123456789\n".repeat(3999),
                format!("status {status}, {} bytes left", got.len()),
            )
        }
        CodeFix::WholeLines => {
            let calls = run.calls_on(&["write", "writev", "pwrite64"], name);
            let right = status == 0 && run.content(name) == numbers()[..5 * 9];
            expect(
                right && calls == 5,
                format!("status {status}, {calls} writes, {name} has {:?}", run.content(name)),
            )
        }
        CodeFix::CheckErrors => expect(status != 0 && !KILLED.contains(&status), format!("status {status}")),
        CodeFix::SyncRename => expect(
            status == 0 && run.syncs_around_rename() && run.content("out") == "new",
            format!("status {status}, calls:\n{}", run.calls),
        ),
    }
    .map(|what| format!("{what}; {}", run.content("stderr").lines().take(3).collect::<Vec<_>>().join(" | ")))
}

/// Builds and runs all cases of a language and returns what failed.
fn failures(language: &TestLanguage) -> Vec<String> {
    let all: Vec<usize> = (0..language.bodies.len()).collect();
    let built = disk_dir();
    if !language.build.is_empty() {
        fs::write(built.path().join(language.file), language.source(&all)).expect("the source");
        let output = command(language.build, built.path()).output().expect("the compiler starts");
        let complaints = text(&output.stderr);
        if !output.status.success() || complaints.contains("warning") {
            return vec![format!("{:?}: {}: {complaints}", language.language, output.status)];
        }
    }
    let built = (!language.build.is_empty()).then(|| built.path());
    all.into_iter()
        .filter_map(|number| {
            let (fix, object, _) = language.bodies[number];
            let why = match run_case(language, number, built) {
                Ok(run) => match failure(language, number, &run) {
                    None if fix == CodeFix::SyncRename => replaced_without_content(language, number, built)?,
                    failure => failure?,
                },
                Err(why) => why,
            };
            let code = code_fix(language.language, fix, object).code;
            Some(format!("{:?} {fix:?} {object:?}: {why}\n    {code}", language.language))
        })
        .collect()
}

#[test]
fn printed_code_compiles_and_does_what_it_promises() {
    let mut languages = LANGUAGES.to_vec();
    let (mut failed, mut cases) = (Vec::new(), 0);
    if let Some(only) = std::env::var_os("WEIR_CODE_TEXTS") {
        languages.retain(|language| format!("{:?}", language.language) == only.to_string_lossy());
    } else {
        campaign::choose("code of fixes", &mut languages, |language| {
            vec![
                if language.build.is_empty() { "interpreted".into() } else { "compiled".to_string() },
                language.file.into(),
            ]
            .into_iter()
            .take(1 + usize::from(["prog.py", "prog.pl", "prog.sh"].contains(&language.file)))
            .collect()
        });
    }
    for language in languages {
        let missing = language.needs.iter().find(|tool| !common::has(tool));
        if let Some(tool) = missing {
            skip(&format!("code of fixes in {:?}", language.language), &format!("{tool} is not installed"));
            continue;
        }
        cases += language.bodies.len();
        failed.extend(failures(language));
    }
    assert!(failed.is_empty(), "{} of {cases} failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_code_text_has_a_program() {
    let mut without = Vec::new();
    for language in LANGUAGES {
        let tested: BTreeSet<&str> = language
            .bodies
            .iter()
            .map(|&(fix, object, _)| code_fix(language.language, fix, object).code)
            .collect();
        for fix in CodeFix::ALL {
            for &object in fix.objects() {
                let code = code_fix(language.language, fix, object).code;
                let of_c = language.language == SourceLanguage::Cpp
                    && code == code_fix(SourceLanguage::C, fix, object).code;
                let similar = of_c || object == StreamObject::Stderr && fix != CodeFix::BufferOutput;
                if !code.is_empty() && !similar && !tested.contains(code) {
                    without.push(format!("{:?} {fix:?} {object:?}: {code}", language.language));
                }
            }
        }
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
}
