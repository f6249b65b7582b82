//! Programs of `weir advise` that go on after an error, as soon as the file can grow again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{ExitStatus, Stdio};

use crate::common::{self, disk_dir, skip, text};
use crate::languages::{LANGUAGES, ProgramLanguage};
use crate::{bypassing, code, command, kinds, libweir_archive, question};

/// Raises the limit of the file's size of the program that starts this command with sh(1).
const RAISE: &str = "prlimit --pid $PPID --fsize=unlimited:";
/// Bytes of a record. They divide each buffer and window, so that an error comes between two records.
const RECORD_BYTES: usize = 64;

/// The changes of a program that raise the limit after an error. `@AGAIN@` stands for the failed call, if it took no byte.
struct Change {
    key: &'static str,
    again: &'static str,
    texts: &'static [(&'static str, &'static str)],
}

const CHANGES: [Change; 7] = [
    Change {
        key: "c",
        again: "result = log_record(line, (size_t)bytes);",
        texts: &[(
            "        result = log_record(line, (size_t)bytes);\n",
            "        if (log_record(line, (size_t)bytes) != 0) {\nresult = system(\"@RAISE@\");\n@AGAIN@\n}\n",
        )],
    },
    Change {
        key: "cpp",
        again: "log.record(line + '\\n');",
        texts: &[
            ("log.record(std::cin.eof() ? line : line + '\\n');", "take(log, line);"),
            (
                "            if (!std::cin.eof())\n                line += '\\n';\n            log.record(line);",
                "take(log, line);",
            ),
            (
                "int main(",
                "static void take(RecordLog &log, const std::string &line)\n{\ntry {\nlog.record(line + '\\n');\n\
                 } catch (const std::system_error &) {\nif (std::system(\"@RAISE@\") != 0)\nthrow;\n@AGAIN@\n}\n}\n\nint main(",
            ),
        ],
    },
    Change {
        key: "python",
        again: "log.record(line)",
        texts: &[
            ("log.record(line)", "take(log, line)"),
            (
                "def main():",
                "def take(log, line):\n    try:\n        log.record(line)\n    except OSError:\n        \
                 os.system(\"@RAISE@\")\n        @AGAIN@\n\n\ndef main():",
            ),
        ],
    },
    Change {
        key: "rust",
        again: "log.record(&line)?;",
        texts: &[(
            "log.record(&line)?;",
            "if log.record(&line).is_err() {\nstd::process::Command::new(\"sh\").args([\"-c\", \"@RAISE@\"]).status()?;\n\
             @AGAIN@\n}",
        )],
    },
    Change {
        key: "go",
        again: "err = log.Record(line)",
        texts: &[
            ("\t\"os\"\n", "\t\"os\"\n\t\"os/exec\"\n"),
            ("log.Record(line)", "take(log, line)"),
            (
                "func copyLines(",
                "func take(log *RecordLog, line []byte) error {\nerr := log.Record(line)\nif err != nil {\n\
                 err = exec.Command(\"sh\", \"-c\", \"@RAISE@\").Run()\n@AGAIN@\n}\nreturn err\n}\n\nfunc copyLines(",
            ),
        ],
    },
    Change {
        key: "java",
        again: "log.record(line);",
        texts: &[
            ("log.record(line.toByteArray());", "take(log, line.toByteArray());"),
            (
                "    public static void main(",
                "private static void take(Log log, byte[] line) throws IOException {\ntry {\nlog.record(line);\n\
                 } catch (IOException error) {\nnew ProcessBuilder(\"sh\", \"-c\", \"@RAISE@\").start().onExit().join();\n\
                 @AGAIN@\n}\n}\n\n    public static void main(",
            ),
        ],
    },
    Change {
        key: "node",
        again: "log.record(record);",
        texts: &[
            ("log.record(text.subarray(0, end + 1));", "take(log, text.subarray(0, end + 1));"),
            (
                "async function main() {",
                "function take(log, record) {\ntry {\nlog.record(record);\n} catch {\n\
                 require('child_process').execSync('@RAISE@');\n@AGAIN@\n}\n}\n\nasync function main() {",
            ),
        ],
    },
];

/// Returns the program of a kind of policy in a language.
fn program_of(key: &str, kind: &str) -> String {
    let mut all = kinds().into_iter().chain(bypassing());
    let (_, policy, sharers) = all.find(|one| one.0 == kind).expect("a kind");
    code::programs(&policy, &question(sharers), None).remove(key).expect("a program")
}

/// Returns a program that goes on after an error. With `repeats`, it then makes the failed call again.
fn going_on(key: &str, kind: &str, repeats: bool) -> String {
    let change = CHANGES.iter().find(|change| change.key == key).expect("a change");
    let changed =
        change.texts.iter().fold(program_of(key, kind), |program, (from, to)| program.replace(from, to));
    assert!(changed.contains("@RAISE@") && changed.contains("@AGAIN@"), "{key}: {changed}");
    changed.replace("@RAISE@", RAISE).replace("@AGAIN@", if repeats { change.again } else { "" })
}

/// Builds a program and runs it with the input and a limit of the file's size. Returns its status, its errors and its file.
fn run_limited(
    language: &ProgramLanguage,
    program: &str,
    input: &[u8],
    limit_bytes: usize,
) -> (ExitStatus, String, Vec<u8>) {
    let dir = disk_dir();
    fs::write(dir.path().join(language.file), program).unwrap();
    fs::write(dir.path().join("input"), input).unwrap();
    let built = command(language.build, dir.path(), "").output().unwrap();
    assert!(built.status.success(), "{}{}\n{program}", text(&built.stdout), text(&built.stderr));
    let limit = format!("--fsize={limit_bytes}:");
    let words = ["timeout", "60", "prlimit", &limit, "sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
    let mut run = command(&[&words, language.run].concat(), dir.path(), "");
    run.arg("out").stdin(File::open(dir.path().join("input")).unwrap());
    // The JVM maps a file of its own that is longer than the limit.
    run.env("JAVA_TOOL_OPTIONS", "-XX:-UsePerfData");
    let ran = run.output().unwrap();
    (ran.status, text(&ran.stderr), fs::read(dir.path().join("out")).unwrap_or_default())
}

/// Checks that a program which goes on after an error writes each record once.
fn assert_each_record_is_written_once(
    keys: &[&str],
    kind: &str,
    repeats: bool,
    records: usize,
    limit: usize,
) {
    if !common::has("prlimit") {
        return skip("advise_code", "prlimit is not installed");
    }
    let record = |number: usize| format!("{number:<width$}\n", width = RECORD_BYTES - 1).into_bytes();
    let input: Vec<u8> = (0..records).flat_map(record).collect();
    for language in LANGUAGES.iter().filter(|language| keys.contains(&language.key)) {
        if let Some(tool) = language.needs.iter().find(|tool| !common::has(tool)) {
            skip("advise_code", &format!("{}: {tool} is not installed", language.key));
            continue;
        }
        let program = going_on(language.key, kind, repeats);
        let (status, errors, written) = run_limited(language, &program, &input, limit);
        let same = written.iter().zip(&input).take_while(|(one, other)| one == other).count();
        assert!(
            status.success() && written == input,
            "{}, {kind}: {status}: {} bytes, the first {same} as expected: {errors}",
            language.key,
            written.len()
        );
    }
}

#[test]
fn a_mapping_that_finds_no_room_is_made_again() {
    let keys = ["c", "cpp", "python", "rust", "go", "java"];
    // Three windows of 4 MiB; the second one finds no room.
    assert_each_record_is_written_once(&keys, "shared mapping", true, 150_000, 6 << 20);
}

#[test]
fn a_buffer_that_is_written_in_part_is_not_written_again() {
    // The second write of 4096 bytes is short, and the next one fails.
    assert_each_record_is_written_once(&["cpp", "java", "node"], "buffer", true, 3000, 6 << 10);
}

#[test]
fn a_block_that_is_written_in_part_is_written_again() {
    // The fifth write of 64 KiB is short. The block has the record when the next write fails.
    assert_each_record_is_written_once(&["java"], "O_DIRECT", false, 10_000, 288 << 10);
}

#[test]
fn an_error_of_a_sync_that_runs_at_the_end_is_reported() {
    if !common::has("node") {
        return skip("advise_code", "node is not installed");
    }
    // The sync of the timer fails after standard input has ended; the last sync succeeds.
    let slow = "const fs = require('fs');\nfs.fdatasync = (fd, done) => {\n  process.stdout.write('syncing\\n');\n  \
                setTimeout(() => done(new Error('the sync failed')), 500);\n};\n";
    let program =
        program_of("node", "each and a timer that syncs").replace("const fs = require('fs');\n", slow);
    let dir = disk_dir();
    fs::write(dir.path().join("log.js"), &program).unwrap();
    let mut run = command(&["node", "log.js", "out"], dir.path(), "");
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"a record\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ran = child.wait_with_output().unwrap(); // closes standard input
    assert_eq!(line, "syncing\n", "{}", text(&ran.stderr));
    assert!(!ran.status.success() && text(&ran.stderr).contains("the sync failed"), "{}", text(&ran.stderr));
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"a record\n");
}

#[test]
fn a_log_that_cannot_be_opened_has_no_timer_to_wait_for() {
    let language = LANGUAGES.iter().find(|language| language.key == "c-libweir").expect("libweir");
    let (true, Some(libweir)) = (common::has("gcc"), libweir_archive()) else {
        return skip(
            "advise_code",
            "c-libweir: gcc is not installed, or libweir is not built (make libweir)",
        );
    };
    // Some C libraries do not survive pthread_join(3) of a thread that was not started.
    let join = "pthread_join(log_timer, NULL);";
    let program = program_of("c-libweir", "each and a timer that syncs");
    assert!(program.contains(join), "{program}");
    let dir = disk_dir();
    fs::write(dir.path().join(language.file), program.replace(join, "abort();")).unwrap();
    let libweir = libweir.display().to_string();
    let built = command(language.build, dir.path(), &libweir).output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    // The sync of a new file's name fails: a device has none.
    let ran = command(language.run, dir.path(), &libweir).arg("/dev/full").output().unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}: {}", ran.status, text(&ran.stderr));
    assert!(text(&ran.stderr).contains("/dev/full: Invalid argument"), "{}", text(&ran.stderr));
}
