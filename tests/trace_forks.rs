//! `weir trace` on programs that fork with pending bytes: parent and child have them, and one of them writes them.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;

use common::{has, skip, text};
use serde_json::Value;
use trace::{compile, finding, for_each_engine, list, path, traced};

const HEAD: &str = "#include <signal.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(int count, char **words) { FILE *f = fopen(\"f.log\", \"w\"); fprintf(f, \"config loaded\\n\");\n";
/// The child, which writes on and ends by exit(3).
const CHILD: &str = "usleep(300000); fprintf(f, \"stop\\n\"); return 0; }\n";

/// Returns the findings about lost bytes.
fn lost(document: &Value) -> Vec<&Value> {
    let is_loss = |one: &&Value| one["id"].as_str().is_some_and(|id| id.starts_with("lost-at-"));
    list(document, "findings").iter().filter(is_loss).collect()
}

#[test]
fn bytes_that_a_daemon_writes_are_not_lost_by_its_parents() {
    let parents = [
        ("daemon", "if (daemon(1, 1)) return 1;"),
        ("double", "if (fork()) _exit(0); setsid(); if (fork()) _exit(0);"),
        ("kill", "if (fork()) { usleep(100000); raise(SIGTERM); } setsid();"),
        ("exec", "if (fork()) { usleep(100000); execl(\"/bin/true\", \"true\", NULL); } setsid();"),
    ];
    for_each_engine(|engine, dir| {
        for (name, fork) in parents {
            let program = compile(dir, name, &format!("{HEAD}{fork} {CHILD}"), &[]).expect("cc");
            // The shell waits until the daemon has closed the pipe, so the recording has its end.
            let script = format!("({}; true) | cat", path(&program));
            for command in [vec![path(&program)], vec!["sh", "-c", &script]] {
                let (output, document) = traced(dir, &["-q", "--engine", engine], &command);
                let said = text(&output.stderr);
                assert!(lost(&document).is_empty(), "{engine} {command:?}: {}\n{said}", document["findings"]);
            }
        }
    });
}

#[test]
fn bytes_that_no_process_writes_are_lost_once() {
    let source = format!(
        "{HEAD} for (int i = 0; i < 3; i++) if (fork() == 0) {{ usleep(100000 + i * 50000); _exit(0); }}\n\
         if (count > 1) {{ usleep(500000); fclose(f); while (wait(NULL) > 0); return 0; }}\n\
         while (wait(NULL) > 0); _exit(0); }}\n"
    );
    for_each_engine(|engine, dir| {
        let program = compile(dir, "loses", &source, &[]).expect("cc");
        let (_, document) = traced(dir, &["-q", "--engine", engine], &[path(&program)]);
        let found = lost(&document);
        assert_eq!(found.len(), 1, "{engine}: {found:?}");
        let evidence = &found[0]["evidence"];
        assert_eq!((&evidence["lost_bytes"], evidence.get("more")), (&14.0.into(), None), "{engine}");
        let (_, document) = traced(dir, &["-q", "--engine", engine], &[path(&program), "writes"]);
        assert!(lost(&document).is_empty(), "{engine}: the parent writes them: {}", document["findings"]);
    });
}

/// Each worker would write the header again if it flushed, so it must be flushed before the fork.
#[test]
fn workers_lose_their_own_bytes_and_the_advice_doubles_none() {
    if !has("python3") {
        return skip("workers_lose_their_own_bytes_and_the_advice_doubles_none", "python3 is not installed");
    }
    let script = include_str!("diagnosis/lost-at-exit/py-worker-rows/broken.py");
    for_each_engine(|engine, dir| {
        fs::write(dir.join("rows.py"), script).expect("a script");
        let (output, document) = traced(dir, &["-q", "--engine", engine], &["python3", "rows.py"]);
        let found = finding(&document, "lost-at-exit");
        let found = found.unwrap_or_else(|| panic!("{engine}: {}", text(&output.stderr)));
        let (why, fix) = (found["why"].as_str().expect("text"), found["fix"].as_str().expect("text"));
        assert!(!why.contains("number,square") && why.contains("4 bytes"), "{engine}: {why}");
        assert!(
            fix.contains("before os.fork()") && fix.contains("before the program waits"),
            "{engine}: {fix}"
        );
    });
}

/// Its last thread forks or executes while the others exist.
const LATE_THREAD: &str = "import os, sys, threading\n\
    def late():\n if sys.argv[1] == 'exec': os.execv('/bin/true', ['true'])\n\
    \x20if os.fork(): os.wait(); done.set()\n else: print('after', flush=True); os._exit(0)\n\
    done = threading.Event()\nprint('pending')\n\
    threads = [threading.Thread(target=done.wait) for _ in range(int(sys.argv[2]))]\n\
    threads.append(threading.Thread(target=late))\n\
    for t in threads: t.start()\nfor t in threads: t.join()";

#[test]
fn late_threads_that_fork_or_execute_are_seen_or_named() {
    if !has("/usr/bin/python3") {
        return skip("late_threads_that_fork_or_execute_are_seen_or_named", "python3 is not installed");
    }
    for_each_engine(|engine, dir| {
        for (call, threads, id) in [
            ("fork", "30", "doubled-at-fork"),
            ("exec", "30", "lost-at-exec"),
            ("fork", "100", "doubled-at-fork"),
        ] {
            let command = ["/usr/bin/python3", "-c", LATE_THREAD, call, threads];
            let (output, document) = traced(dir, &["-q", "--exact", "--engine", engine], &command);
            let unreadable = list(&document, "unreadable");
            let is_named = |one: &Value| one["buffers"].as_str().is_some_and(|name| name.contains("fork(2)"));
            let is_seen = finding(&document, id).is_some();
            let context = format!("{engine} {call} {threads}: {document}\n{}", text(&output.stderr));
            assert!(is_seen || threads == "100" && unreadable.iter().any(is_named), "{context}");
        }
    });
}
