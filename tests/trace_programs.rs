//! `weir trace` on real programs with each engine: counts compared with strace, exits of every kind, attach and detach.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{KillOnDrop, WEIR, disk_dir, has, is_root, skip, text, wait_for, weir};
use serde_json::Value;
use trace::{compile, document, engines, finding, list, path, traced};

/// Runs `weir trace --engine ENGINE --exact -- sh -c SCRIPT` and returns the document. Panics if the script fails.
fn trace(dir: &Path, engine: &str, script: &str) -> Value {
    let (output, seen) = traced(dir, &["-q", "--exact", "--engine", engine], &["sh", "-c", script]);
    assert!(output.status.success(), "{engine}: {script}: {}\n{}", output.status, text(&output.stderr));
    seen
}

/// Returns how many calls that move bytes strace counts, by direction.
fn strace(dir: &Path, script: &str) -> BTreeMap<&'static str, u64> {
    // The last four are in both lists: they read and write.
    const READS: &str = "read,pread64,readv,preadv,recvfrom,recvmsg,copy_file_range,sendfile,splice,tee";
    const WRITES: &str = "write,pwrite64,writev,pwritev,sendto,sendmsg,copy_file_range,sendfile,splice,tee";
    let mut counts = BTreeMap::new();
    for (side, calls) in [("in", READS), ("out", WRITES)] {
        let arguments = ["-f", "-qq", "-e", &format!("trace={calls}"), "-e", "signal=none", "-o", "s.log"];
        let status =
            Command::new("strace").args(arguments).args(["sh", "-c", script]).current_dir(dir).status();
        assert!(status.expect("strace starts").success());
        let log = fs::read_to_string(dir.join("s.log")).expect("strace's log");
        let returned = log.lines().filter(|line| line.contains(" = ") && !line.contains("= ?")).count();
        counts.insert(side, returned as u64);
    }
    counts
}

fn calls(document: &Value, direction: &str) -> u64 {
    let streams = document["streams"].as_array().expect("streams");
    let of_side = streams.iter().filter(|stream| stream["direction"] == direction);
    of_side.map(|stream| stream["calls"].as_u64().expect("calls")).sum()
}

/// For an image that it has already seen, the BPF program does not wake weir at execve(2).
#[test]
fn an_image_that_is_executed_repeatedly_is_recorded_each_time() {
    const TIMES: u64 = 40;
    let dir = disk_dir();
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int main(int words, char **word) { printf(\"%s\", words > 1 ? word[1] : \"\"); _exit(3); }\n";
    let program = compile(dir.path(), "loses", source, &[]).expect("cc");
    let script = format!("i=0; while [ $i -lt {TIMES} ]; do i=$((i + 1)); {} number$i; done", path(&program));
    for engine in engines() {
        let (output, seen) =
            traced(dir.path(), &["-q", "--engine", engine, "--exact"], &["sh", "-c", &script]);
        assert_eq!(output.status.code(), Some(3), "{engine}: {}", text(&output.stderr));
        let ran = list(&seen, "processes").iter().filter(|process| process["exit"]["code"] == 3);
        let words = ran.filter_map(|process| process["images"].as_array()?.last()?["argv"][1].as_str());
        let words: Vec<&str> = words.filter(|word| word.starts_with("number")).collect();
        let expected: Vec<String> = (1..=TIMES).map(|i| format!("number{i}")).collect();
        assert_eq!(words, expected, "{engine}");
        let lost = finding(&seen, "lost-at-exit").map(|finding| &finding["evidence"]);
        let lost = lost.unwrap_or_else(|| panic!("{engine}: {}", seen["findings"]));
        assert_eq!(lost["more"].as_f64(), Some((TIMES - 1) as f64), "{engine}: {lost}");
    }
}

#[test]
fn a_write_of_several_parts_has_its_first_bytes_and_its_last_one() {
    let dir = disk_dir();
    let source = "#include <sys/uio.h>\n\
        int main(void) { struct iovec parts[4] = {{\"\", 0}, {\"warn\", 4}, {\"\", 0}, {\"\\n\", 1}}; writev(1, parts, 4);\n\
        static char line[60]; for (int i = 0; i < 60; i++) line[i] = 'x';\n\
        struct iovec more[3] = {{line, 60}, {\"abcdefg\", 7}, {\"!\", 1}}; return writev(1, more, 3) != 68; }\n";
    let program = compile(dir.path(), "parts", source, &[]).expect("cc");
    for engine in engines() {
        let options = ["-q", "--engine", engine, "--exact", "--record", "recording.json"];
        let (output, _) = traced(dir.path(), &options, &[path(&program)]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let recording = fs::read(dir.path().join("recording.json")).expect("a recording");
        let recording: Value = serde_json::from_slice(&recording).expect("JSON");
        let calls = list(&recording, "events").iter().map(|event| &event["what"]["call"]);
        let writes = calls.filter(|call| call["op"] == "writev");
        let ends = writes.map(|call| (call["head"].clone(), call["tail"].clone())).collect::<Vec<_>>();
        let expected = [(b"warn\n".to_vec(), b'\n'), ([&[b'x'; 60][..], b"abcd"].concat(), b'!')];
        assert_eq!(ends, expected.map(|(head, tail)| (Value::from(head), Value::from(tail))), "{engine}");
    }
}

#[test]
fn exact_counts_equal_those_of_strace() {
    if !has("strace") {
        return skip("exact_counts_equal_those_of_strace", "strace is not installed");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("in"), "one line\n".repeat(2000)).unwrap();
    let scripts = [
        "dd if=in of=out bs=1 count=1000 status=none",
        "cat in in > out",
        // Files only: between processes the number of reads depends on the scheduler.
        "tr a-z A-Z < in > big; wc -c < big > out",
        "while read line; do echo $line; done < in > out; sort in > sorted; uniq sorted > out",
        "head -n 3 in > out; tail -n 3 in >> out; tee copy < in > out",
    ];
    for script in scripts {
        let expected = strace(dir.path(), script);
        for engine in engines() {
            let seen = trace(dir.path(), engine, script);
            assert_eq!(seen["exact"], true, "{engine}: {script}");
            for side in ["in", "out"] {
                assert_eq!(calls(&seen, side), expected[side], "{engine}, {side}: {script}");
            }
        }
    }
}

/// Returns the bytes of the streams of one direction whose path ends with `ending`.
fn bytes_of(document: &Value, ending: &str, direction: &str) -> u64 {
    let streams = document["streams"].as_array().expect("streams");
    let matches = |stream: &&Value| {
        stream["direction"] == direction && stream["path"].as_str().is_some_and(|path| path.ends_with(ending))
    };
    streams.iter().filter(matches).map(|stream| stream["bytes"].as_u64().expect("bytes")).sum()
}

#[test]
fn each_file_gets_its_own_bytes() {
    let dir = disk_dir();
    fs::write(dir.path().join("first"), vec![b'x'; 300_000]).unwrap();
    fs::write(dir.path().join("second"), vec![b'y'; 70_000]).unwrap();
    for engine in engines() {
        let script = "cat first > a; (cat second; exec 5> c; dd bs=1000 count=7 if=first status=none >&5) > b; \
                      bash -c 'exec 3<second; exec 4<&3; exec 3<&-; head -c 1000 <&4 > d'";
        let seen = trace(dir.path(), engine, script);
        let expected = [("/a", 300_000), ("/b", 70_000), ("/c", 7_000), ("/d", 1_000)];
        for (path, bytes) in expected {
            assert_eq!(bytes_of(&seen, path, "out"), bytes, "{engine}: {path}");
        }
    }
}

#[test]
fn the_command_ends_with_the_same_status() {
    let dir = disk_dir();
    let endings = [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("ulimit -c 0; kill -SEGV $$", 139),
        ("trap 'exit 9' USR1; kill -USR1 $$; exit 1", 9),
        ("exec 2>&-; exit 4", 4),
        ("exec 0<&- 1>&- 2>&-; exit 5", 5),
    ];
    for engine in engines() {
        for (script, status) in endings {
            let arguments = ["trace", "-q", "--engine", engine, "--json", "t.json", "--", "sh", "-c", script];
            let output = weir(dir.path(), &arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{engine}: {script}: {}", text(&output.stderr));
            let exit = &document(dir.path())["exit"];
            let expected = if status > 128 { ("signal", status - 128) } else { ("code", status) };
            assert_eq!(exit[expected.0], expected.1, "{engine}: {script}: {exit}");
        }
    }
}

/// weir stops the command once before its first instruction, by a signal that it then discards.
#[test]
fn a_command_does_not_notice_the_stop_at_its_start() {
    let dir = disk_dir();
    let source = r#"#include <stdio.h>
        #include <string.h>
        int main(void)
        {
            char line[256];
            FILE *status = fopen("/proc/self/status", "r");
            while (status && fgets(line, sizeof line, status))
                if ((strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') || strncmp(line, "Shd", 3) == 0 || strncmp(line, "Tracer", 6) == 0)
                    fputs(line, stdout);
            return 0;
        }"#;
    let program = compile(dir.path(), "signals", source, &[]).expect("cc");
    let under = |option: &str, engine: &str| {
        let mut command = Command::new("env");
        command.current_dir(dir.path()).env("XDG_STATE_HOME", dir.path()).arg(option);
        if !engine.is_empty() {
            command.arg(WEIR).args(["trace", "-q", "--engine", engine, "--"]);
        }
        let output = command.arg(&program).output().expect("env starts");
        assert!(output.status.success(), "{option} {engine}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for option in ["--block-signal=URG", "--ignore-signal=URG", "--default-signal=URG"] {
        let bare = under(option, "");
        assert_eq!(bare.lines().count(), 6, "{bare}");
        for engine in engines() {
            let seen = under(option, engine);
            let without =
                |text: &str| text.lines().filter(|line| !line.starts_with("Tracer")).collect::<String>();
            assert_eq!(without(&seen), without(&bare), "{option} {engine}");
            assert_eq!(seen == bare, engine == "ebpf", "{option} {engine}: TracerPid:\n{seen}");
        }
    }
}

#[test]
fn input_and_output_are_passed_on_unchanged() {
    let dir = disk_dir();
    fs::write(dir.path().join("in"), "a\nb\nc\n").unwrap();
    for engine in engines() {
        let mut command =
            weir(dir.path(), &["trace", "-q", "--engine", engine, "--", "sh", "-c", "tac; echo e >&2"]);
        let output = command.stdin(fs::File::open(dir.path().join("in")).unwrap()).output().unwrap();
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            ("c\nb\na\n".into(), "e\n".into()),
            "{engine}"
        );
    }
}

#[test]
fn thousands_of_children_and_files_are_traced() {
    let dir = disk_dir();
    for engine in engines() {
        let script = "i=0; while [ $i -lt 1000 ]; do (echo $i > file); i=$((i+1)); done";
        let seen = trace(dir.path(), engine, script);
        assert_eq!(bytes_of(&seen, "/file", "out"), 3890, "{engine}");
        let script = "i=0; while [ $i -lt 5000 ]; do echo x > f$i; i=$((i+1)); done; rm f*";
        let seen = trace(dir.path(), engine, script);
        let streams = seen["streams"].as_array().unwrap();
        let files =
            streams.iter().filter(|stream| stream["bytes"] == 2 && stream["direction"] == "out").count();
        assert_eq!(files, 5000, "{engine}");
    }
}

#[test]
fn files_are_kept_apart_when_events_are_lost() {
    if !is_root() {
        return skip(
            "files_are_kept_apart_when_events_are_lost",
            "needs root, to load programs into the kernel",
        );
    }
    let dir = disk_dir();
    // weir is stopped meanwhile, as it can be for a moment on a busy machine, so that the ring buffer overflows.
    let script = "kill -STOP $PPID; i=0; while [ $i -lt 8000 ]; do echo x > f$i; i=$((i+1)); done; rm f*; kill -CONT $PPID";
    let seen = trace(dir.path(), "ebpf", script);
    assert!(seen["overhead"]["lost_events"].as_u64().is_some_and(|lost| lost > 0), "{}", seen["overhead"]);
    let streams = seen["streams"].as_array().unwrap();
    let files: Vec<_> =
        streams.iter().filter(|one| one["direction"] == "out" && one["kind"] == "file").collect();
    assert_eq!(files.iter().filter(|one| one["bytes"] == 2 && one["calls"] == 1).count(), 8000);
}

#[test]
fn a_stopped_program_runs_on_after_sigcont() {
    let dir = disk_dir();
    for engine in engines() {
        let script = "(sleep 0.3; kill -CONT $$) & kill -STOP $$; wait; echo on > out";
        trace(dir.path(), engine, script);
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "on\n", "{engine}");
    }
}

#[test]
fn the_program_runs_on_after_weir_is_killed() {
    let dir = disk_dir();
    let out = dir.path().join("out");
    for engine in engines() {
        let script = "for i in $(seq 4000); do echo $i; done > out; echo end >> out";
        let arguments = ["trace", "-q", "--engine", engine, "--", "bash", "-c", script];
        let mut weir = weir(dir.path(), &arguments).stdin(Stdio::null()).spawn().unwrap();
        wait_for("the program to start", || out.metadata().is_ok_and(|status| status.len() > 100));
        weir.kill().unwrap();
        assert_eq!(weir.wait().unwrap().signal(), Some(9));
        wait_for("the program to end", || fs::read_to_string(&out).is_ok_and(|text| text.ends_with("end\n")));
        let expected: String = (1..=4000).map(|number| format!("{number}\n")).collect();
        assert_eq!(fs::read_to_string(&out).unwrap(), expected + "end\n", "{engine}");
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_busy_process_loses_nothing_when_weir_attaches_and_detaches() {
    let dir = disk_dir();
    let (out, stop) = (dir.path().join("out"), dir.path().join("stop"));
    for engine in engines() {
        let script = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; done > out";
        let writer = Command::new("bash").args(["-c", script]).current_dir(dir.path()).spawn().unwrap();
        let mut writer = KillOnDrop(writer);
        wait_for("the writer to write", || out.metadata().is_ok_and(|status| status.len() > 1000));
        let mut counted = 0;
        for _ in 0..20 {
            let pid = writer.0.id().to_string();
            let arguments = ["trace", "-q", "--engine", engine, "-t", "50ms", "--json", "t.json", "-p", &pid];
            let output = Command::new(WEIR).args(arguments).current_dir(dir.path()).output().unwrap();
            assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
            counted += bytes_of(&document(dir.path()), "/out", "out");
        }
        assert!(counted > 0, "{engine}: no byte of the writer is counted");
        fs::write(&stop, "").unwrap();
        assert!(writer.0.wait().unwrap().success());
        let written = fs::read_to_string(&out).unwrap();
        let wrong = written.lines().zip(1..).find(|(line, number): &(&str, u64)| *line != number.to_string());
        assert_eq!(wrong, None, "{engine}");
        fs::remove_file(&out).unwrap();
        fs::remove_file(&stop).unwrap();
    }
}

#[test]
fn without_privilege_another_engine_is_used_with_a_reason() {
    if !is_root() || !has("setpriv") {
        return skip("without_privilege_another_engine_is_used", "needs root and setpriv, to become nobody");
    }
    let dir = tempfile::tempdir().unwrap(); // reachable for the user nobody
    let binary = dir.path().join("weir");
    common::programs::copy_program(WEIR, &binary);
    Command::new("chmod").arg("0777").arg(dir.path()).status().unwrap();
    let nobody =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
    let mut command = Command::new("setpriv");
    command.args(nobody).arg(&binary).args([
        "trace",
        "--json",
        "t.json",
        "--",
        "sh",
        "-c",
        "echo hello | cat > out",
    ]);
    let output = command.current_dir(dir.path()).env("HOME", dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let seen = document(dir.path());
    assert_eq!(seen["engine"], "ptrace");
    assert!(
        seen["engine_reason"].as_str().is_some_and(|reason| reason.contains("EPERM")),
        "{}",
        seen["engine_reason"]
    );
    assert_eq!(bytes_of(&seen, "/out", "out"), 6);
}

/// A loop over the lines of standard input that starts cat for each of them by posix_spawn(3).
const SPAWNING_LOOP: &str = "#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char line[100], *argv[] = {\"cat\", 0};
    pid_t child;
    setvbuf(stdin, 0, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        if (posix_spawn(&child, \"/bin/cat\", 0, 0, argv, environ)) return 1;
        waitpid(child, 0, 0);
    }
    return 0;
}";

#[test]
fn a_spawned_program_that_eats_the_input_of_a_loop_is_found() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::write(dir.join("hosts"), "a\nb\nc\nd\n").expect("the input");
    for (name, flags) in [("dynamic", &[][..]), ("static", &["-static"])] {
        let Some(program) = compile(dir, name, SPAWNING_LOOP, flags) else {
            skip("a_spawned_program_that_eats_the_input_of_a_loop_is_found", &format!("no {name} program"));
            continue;
        };
        for engine in engines() {
            let seen = trace(dir, engine, &format!("{} < hosts > out", path(&program)));
            let found = finding(&seen, "eaten-stdin").unwrap_or_else(|| panic!("{name}, {engine}: {seen:#}"));
            assert_eq!(found["evidence"]["eaten_bytes"], 6.0, "{name}, {engine}");
            assert_eq!(
                found["command"].is_null(),
                name == "static",
                "the library is loaded into dynamic ones"
            );
        }
    }
}

#[test]
fn a_child_that_opens_the_file_of_a_loop_again_eats_nothing() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::write(dir.join("hosts"), "a\nb\nc\nd\n").expect("the input");
    for engine in engines() {
        let seen = trace(dir, engine, "while read host; do wc -l < hosts; done < hosts > out");
        assert_eq!(fs::read_to_string(dir.join("out")).expect("its output"), "4\n4\n4\n4\n", "{engine}");
        assert!(finding(&seen, "eaten-stdin").is_none(), "{engine}: {seen:#}");
    }
}
