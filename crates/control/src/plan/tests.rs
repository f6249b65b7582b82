//! Tests of plans for programs and requests.

use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::plan::request::{BufferMode, CoalesceScope, StandardStream};

pub(super) fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(Into::into).collect()
}

pub(super) fn plan_on(host: HostCapabilities, command: &str, request: RunRequest) -> Plan {
    plan(&words(command), &request, &host)
}

pub(super) fn plan_for(command: &str, request: RunRequest) -> Plan {
    plan_on(HostCapabilities::default(), command, request)
}

pub(super) fn lines() -> RunRequest {
    RunRequest { modes: vec![(StandardStream::Output, BufferMode::Line)], ..RunRequest::default() }
}

/// Returns a static executable that consists of an ELF header.
fn static_executable() -> tempfile::TempPath {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut header = [0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16] = 2;
    header[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    header[20] = 1;
    header[52] = 64;
    file.write_all(&header).unwrap();
    file.into_temp_path()
}

/// grep read whole blocks, and the row said that the mode of its input was set.
#[test]
fn a_program_that_reads_directly_has_no_input_mode() {
    for (command, is_honoured) in [("grep x", false), ("tail -n1", false), ("sort", true)] {
        let modes = vec![(StandardStream::Input, BufferMode::None)];
        let plan = plan_for(command, RunRequest { modes, ..RunRequest::default() });
        let row = plan.rows.iter().find(|row| row.option == "--stdin none").expect("a row");
        assert_eq!(row.effect == Effect::Whole, is_honoured, "{command}: {row:?}");
    }
}

#[test]
fn an_empty_request_gets_the_recommended_delay() {
    let plan = plan_for("cut -c1", RunRequest::default());
    assert_eq!(plan.supervision.unwrap().delay, Some(RECOMMENDED_DELAY));
    assert!(plan.library.is_none() && plan.refusals().is_empty() && plan.remarks().is_empty());
}

#[test]
fn modes_of_a_dynamic_program_need_no_supervisor() {
    let plan = plan_for("cut -c1", lines());
    assert_eq!(plan.library.unwrap().standard[1].as_deref(), Some("line"));
    assert!(plan.supervision.is_none() && !plan.terminal);
}

#[test]
fn a_mode_has_no_effect_on_a_program_without_a_stream_for_its_data() {
    let effect = |command: &str, request: &RunRequest| {
        let plan = plan_for(command, request.clone());
        let row = plan.rows.iter().find(|row| row.option == "--stdout line").unwrap();
        (row.effect, row.technique, plan.remarks().len())
    };
    let forced = RunRequest { force: true, ..lines() };
    let none = (Effect::Part, Technique::Nothing, 1);
    for command in ["missing/dd", "missing/cat x", "missing/gzip", "nice missing/dd", "missing/tee"] {
        assert_eq!(effect(command, &lines()), none, "{command}");
    }
    assert_eq!(effect("missing/dd", &forced), none);
    assert_eq!(effect("missing/tee", &forced), (Effect::Whole, Technique::Library, 0), "it has streams");
    assert_eq!(effect("missing/cut", &lines()), (Effect::Whole, Technique::Library, 0));
}

#[test]
fn a_static_program_gets_substitutes_or_refusals() {
    let path = static_executable();
    let command = path.to_str().unwrap();
    let plan = plan_for(command, lines());
    assert_eq!(plan.supervision.unwrap().delay, Some(SUBSTITUTE_DELAY));
    assert_eq!((plan.remarks().len(), plan.refusals().len()), (1, 0));
    for request in [
        RunRequest { fix_order: true, ..RunRequest::default() },
        RunRequest { coalesce: Some(CoalesceScope::All), ..RunRequest::default() },
        RunRequest { modes: vec![(StandardStream::Output, BufferMode::Full(None))], ..RunRequest::default() },
        RunRequest { files: vec![("*".into(), BufferMode::Line)], ..RunRequest::default() },
    ] {
        let refusals = plan_for(command, request.clone()).refusals();
        assert!(refusals.len() == 1 && refusals[0].contains("statically"), "{request:?}: {refusals:?}");
    }
}

#[test]
fn runtimes_out_of_reach_are_told() {
    let request =
        RunRequest { rescue: true, max_delay: Some(Duration::from_millis(100)), ..RunRequest::default() };
    for command in ["swipl a.pl", "clisp a.lisp", "elixir a.exs", "erl -noshell"] {
        let plan = plan_for(command, request.clone());
        let remarks = plan.remarks();
        assert_eq!(remarks.len(), 1, "{command}: {remarks:?}");
        assert!(remarks[0].starts_with("--max-delay 100ms, --rescue: out of reach in this "), "{remarks:?}");
    }
}

#[test]
fn without_tracing_a_terminal_is_the_substitute() {
    let host = HostCapabilities { not_traceable: Some("forbidden".into()), ..HostCapabilities::default() };
    let plan = plan_on(host.clone(), "cut -c1", RunRequest::default());
    assert!(plan.terminal && plan.supervision.is_none() && plan.remarks()[0].contains("forbidden"));
    let plan = plan_on(host, "cut -c1", RunRequest { rescue: true, ..RunRequest::default() });
    assert!(plan.refusals()[0].contains("forbidden"));
}

#[test]
fn without_proc_options_from_outside_reach_no_buffer() {
    let host = HostCapabilities { no_proc: true, ..HostCapabilities::default() };
    let rescue = RunRequest { rescue: true, ..RunRequest::default() };
    let remarks = plan_on(host.clone(), "cut -c1", rescue).remarks();
    assert!(remarks.len() == 1 && remarks[0].contains("/proc is not mounted"), "{remarks:?}");
    assert!(plan_on(host, "cut -c1", lines()).remarks().is_empty(), "the library needs no /proc");
}

#[test]
fn where_files_cannot_be_duplicated_options_from_outside_hold_in_part() {
    let host = HostCapabilities { no_foreign_files: true, ..HostCapabilities::default() };
    let rescue = RunRequest { rescue: true, ..RunRequest::default() };
    let delay = RunRequest { max_delay: Some(Duration::from_millis(100)), ..rescue.clone() };
    let remarks = plan_on(host.clone(), "cut -c1", delay.clone()).remarks();
    assert!(remarks.len() == 1 && remarks[0].starts_with("--max-delay 100ms, --rescue: out"), "{remarks:?}");
    assert!(
        remarks[0].contains("pidfd_getfd(2) is forbidden") && remarks[0].contains("SYS_PTRACE"),
        "{remarks:?}"
    );
    assert!(plan_for("cut -c1", delay).remarks().is_empty());
    assert!(plan_on(host, "cut -c1", lines()).remarks().is_empty(), "the library needs no descriptor");
}

#[test]
fn an_unreachable_runtime_gets_a_terminal_only_on_request() {
    let plan = plan_for("guile x.scm", RunRequest::default());
    assert!(!plan.terminal && plan.refusals().is_empty() && plan.remarks()[0].contains("`weir run --pty`"));
    let plan = plan_for("julia x.jl", RunRequest::default());
    assert!(plan.refusals().is_empty() && plan.remarks()[0].contains("Julia's own buffers"));
    for request in [lines(), RunRequest { rescue: true, ..RunRequest::default() }] {
        let plan = plan_for("guile x.scm", request);
        assert!(plan.terminal && plan.refusals().is_empty() && plan.remarks()[0].contains("line by line"));
    }
    let host = HostCapabilities { stdout_is_terminal: true, ..HostCapabilities::default() };
    let plan = plan_on(host, "guile x.scm", RunRequest::default());
    assert!(!plan.terminal && plan.refusals().is_empty());
}

#[test]
fn gathering_turns_off_draining_from_outside() {
    let request = RunRequest {
        coalesce: Some(CoalesceScope::All),
        max_delay: Some(Duration::from_millis(5)),
        fix_fork: true,
        ..RunRequest::default()
    };
    let plan = plan_for("cut -c1", request);
    assert_eq!(plan.supervision, Some(SupervisionPlan::default()));
    assert_eq!(plan.gathered_delay, Duration::from_millis(5));
    let effect = |option: &str| plan.rows.iter().find(|row| row.option.starts_with(option)).unwrap().effect;
    assert_eq!((effect("--max-delay"), effect("--fix-fork")), (Effect::Part, Effect::StandIn));
}

#[test]
fn runtimes_that_cannot_be_gathered_are_refused() {
    let request = RunRequest { coalesce: Some(CoalesceScope::All), ..RunRequest::default() };
    for (name, why) in [("node", "several threads"), ("java", "several threads"), ("ruby", "SIGSYS")] {
        let refusals = plan_for(name, request.clone()).refusals();
        assert!(refusals.len() == 1 && refusals[0].contains(why), "{name}: {refusals:?}");
    }
    assert_eq!(plan_for("cut -c1", request).rows[0].effect, Effect::Whole);
}

#[test]
fn a_buffer_of_another_size_is_part_of_what_was_asked_for() {
    let effect = |command: &str, size: Option<u64>| {
        let modes = vec![(StandardStream::Output, BufferMode::Full(size.map(weir_model::Size)))];
        plan_for(command, RunRequest { modes, ..RunRequest::default() }).rows[0].effect
    };
    for (command, whole) in
        [("perl x", Effect::Already), ("python3 x", Effect::Whole), ("tclsh x", Effect::Whole)]
    {
        assert_eq!(effect(command, None), whole, "{command}");
        let sized = if command == "tclsh x" { Effect::Whole } else { Effect::Part };
        assert_eq!(effect(command, Some(65_536)), sized, "{command}");
    }
}

#[test]
fn a_hook_has_one_mode() {
    let request = RunRequest {
        modes: vec![(StandardStream::Output, BufferMode::Full(None))],
        max_delay: Some(Duration::from_millis(100)),
        ..RunRequest::default()
    };
    let plan = plan_for("tclsh x", request.clone());
    let row = plan.rows.iter().find(|row| row.option.starts_with("--max-delay")).unwrap();
    assert!(row.effect == Effect::StandIn && row.text.contains("buffer is full"), "{row:?}");
    assert_eq!(plan.hooks.as_deref(), Some("full"));
    // Ruby's default is a full buffer, so its hook is free for the delay.
    let plan = plan_for("ruby x", request);
    assert_eq!(plan.hooks.as_deref(), Some("delay:0.1"));
}

#[test]
fn programs_that_a_shell_starts_are_planned() {
    let script = |text: &str| ["sh", "-c", text].map(OsString::from);
    let of = |text: &str, request: RunRequest| plan(&script(text), &request, &HostCapabilities::default());
    let delay = RunRequest { max_delay: Some(Duration::from_millis(5)), ..RunRequest::default() };
    for text in ["sleep 1; cut -c1 x", "mawk -W interactive 1"] {
        assert!(of(text, delay.clone()).remarks().is_empty(), "{text}");
    }
    for (text, why) in [
        ("julia x", "Julia's own buffers"),
        ("cat x | swipl y", "a file that the program opens"),
        ("sh -c 'erl z'", "delayed_write"),
        ("mawk 1", "weir run --max-delay 5.00ms -- mawk"),
        ("guile x", "weir run --max-delay 5.00ms -- guile"),
    ] {
        let remarks = of(text, delay.clone()).remarks();
        let says = remarks.len() == 1 && remarks[0].contains("out of reach in programs that it starts: ");
        let is_missing = text == "mawk 1" && ResolvedProgram::of(&words(text)).path.is_none();
        assert!(is_missing || says && remarks[0].contains(why), "{text}: {remarks:?}");
    }
    let order = RunRequest { fix_order: true, ..RunRequest::default() };
    for text in ["python3 mo.py 2>&1", "exec ruby mo.rb"] {
        let plan = of(text, order.clone());
        assert!(plan.remarks().is_empty(), "{text}: {:?}", plan.remarks());
        assert_eq!(plan.hooks.as_deref(), Some("none"), "{text}");
        assert!(plan.variables.contains(&("PYTHONUNBUFFERED", "1")), "{text}: {:?}", plan.variables);
    }
}

#[test]
fn programs_that_a_wrapper_starts_are_planned() {
    let plan = plan_for("timeout -k 1 5 nice python3 x", lines());
    assert_eq!(plan.command, words("timeout -k 1 5 nice python3 x"));
    assert_eq!((plan.runtime.facts.name, plan.remarks().len()), ("Python", 0), "{:?}", plan.rows);
    let options = words("nice -n 5 mawk -W interactive 1");
    if ResolvedProgram::of(&words("mawk")).path.is_some() {
        assert_eq!(plan_for("nice -n 5 mawk 1", lines()).command, options);
    }
    let remarks = plan_for("env -i A=1 python3 x", lines()).remarks();
    assert!(remarks.len() == 1 && remarks[0].contains("env … weir run -- python3"), "{remarks:?}");
    // The library adds its variables again in a program that has loaded it.
    assert_eq!(plan_for("env -i ./stuck x", lines()).remarks(), Vec::<String>::new());
    let remarks = plan_for("docker run x", RunRequest::default()).remarks();
    assert_eq!(remarks, ["--max-delay 100ms: docker has another process start the program: use weir there"]);
}

#[test]
fn launchers_are_seen_through() {
    let path = static_executable();
    let path = path.to_str().unwrap();
    for launcher in [
        "unshare -f",
        "setpriv --nnp",
        "setuidgid nobody",
        "chpst -u nobody",
        "softlimit -o 9",
        "prlimit -n9",
    ] {
        let plan = plan_for(&format!("{launcher} {path}"), lines());
        let says = plan.remarks().first().is_some_and(|remark| remark.contains("linked statically"));
        assert!(says && plan.supervision.is_some(), "{launcher}: {:?}", plan.rows);
    }
}

#[test]
fn a_program_that_traces_others_leaves_nothing_to_a_tracer() {
    let of = |command: &str, request: RunRequest| {
        let plan = plan_for(command, request);
        (plan.rows[0].effect, plan.rows[0].technique, plan.remarks().join("; "), plan.refusals().len())
    };
    let rescue = RunRequest { rescue: true, ..RunRequest::default() };
    for command in
        ["strace -f -o /dev/null cut x", "timeout 5 ltrace cut", "gdb --args cut", "nice strace -p 17"]
    {
        for request in [RunRequest::default(), rescue.clone()] {
            let (effect, technique, remarks, refusals) = of(command, request);
            assert_eq!((effect, technique, refusals), (Effect::Part, Technique::Nothing, 0), "{command}");
            assert!(remarks.contains("a process can have only one tracer"), "{command}: {remarks}");
        }
    }
    assert_eq!(of("strace cut x", lines()).0, Effect::Whole, "the library needs no tracer");
    let path = static_executable();
    let (effect, _, remarks, _) = of(&format!("strace {}", path.to_str().unwrap()), lines());
    assert!(effect == Effect::Part && remarks.contains("linked statically"), "{remarks}");
    let coalesce = RunRequest { coalesce: Some(CoalesceScope::All), ..RunRequest::default() };
    let (effect, _, remarks, _) = of("strace cut x", coalesce);
    assert!(effect == Effect::Part && remarks.contains("a kill loses gathered bytes"), "{remarks}");
    let script = ["sh", "-c", "strace -f python3 x"].map(OsString::from);
    let plan = plan(&script, &RunRequest::default(), &HostCapabilities::default());
    let remarks = plan.remarks();
    assert_eq!(plan.lost_techniques, [Technique::Outside]);
    assert!(remarks.len() == 1 && remarks[0].contains("strace (python3 (strace traces it"), "{remarks:?}");
}

#[test]
fn the_library_may_not_be_in_another_root_directory() {
    for command in ["chroot /tmp /bin/slow", "bwrap --bind root / /bin/slow", "unshare -R /tmp /bin/slow"] {
        let plan = plan_for(command, lines());
        assert_eq!(plan.supervision.and_then(|plan| plan.delay), Some(SUBSTITUTE_DELAY), "{command}");
        assert_eq!((plan.rows[0].effect, plan.remarks().len()), (Effect::StandIn, 1), "{command}");
        assert!(plan.library.is_none() && plan.lost_techniques.contains(&Technique::Library), "{command}");
        assert_eq!(plan.hooks, None, "{command}: Ruby would not start");
        let plan = plan_for(command, RunRequest { fix_order: true, ..RunRequest::default() });
        assert!(plan.remarks()[0].contains("not known: "), "{command}: {:?}", plan.rows);
    }
    assert_eq!(plan_for("chroot / cut x", lines()).rows[0].effect, Effect::Whole);
}

/// The shell gives ssh and the like another standard input before they start.
#[test]
fn the_input_of_a_loop_is_private_for_programs_that_no_other_option_reaches() {
    let request = RunRequest { private_stdin: true, ..RunRequest::default() };
    for command in ["ssh h uptime", "docker exec c x", "sudo uptime", "env -i uptime", "./static"] {
        let script = format!("while read -r h; do {command}; done < hosts");
        let words = ["sh".into(), "-c".into(), script.into()];
        let plan = plan(&words, &request, &HostCapabilities::default());
        assert_eq!(
            (plan.remarks(), plan.rows[0].effect),
            (vec![], Effect::Whole),
            "{command}: {:?}",
            plan.rows
        );
    }
    let words = ["sh".into(), "-c".into(), "sudo sh -c 'while read a; do cat; done < b'".into()];
    // Without root, the loader gives sudo no library, which would keep weir's variables.
    let keeps_library = ResolvedProgram::of(&["sudo".into()]).takes_library();
    let remarks = plan(&words, &request, &HostCapabilities::default()).remarks();
    assert_eq!(remarks.is_empty(), keeps_library, "{remarks:?}");
}

#[test]
fn programs_in_the_file_of_a_script_are_planned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script");
    std::fs::write(&path, "#!/bin/sh\nlog() { echo; }\nlog x | julia y\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = path.to_str().unwrap();
    for command in [script.to_owned(), format!("sh -e {script} -c"), format!("env A=1 {script}")] {
        let remarks = plan_for(&command, RunRequest::default()).remarks();
        let says = "--max-delay 100ms: out of reach in programs that it starts: julia (Julia's own buffers";
        assert!(remarks.len() == 1 && remarks[0].starts_with(says), "{command}: {remarks:?}");
    }
    assert!(plan_for("sh /nowhere/script", RunRequest::default()).remarks().is_empty());
}

#[test]
fn a_shell_is_supervised_for_a_program_that_needs_it() {
    let path = static_executable();
    let of = |request: RunRequest| plan_for(&format!("timeout 5 sh -c {}", path.to_str().unwrap()), request);
    assert_eq!(of(lines()).supervision.unwrap().delay, Some(SUBSTITUTE_DELAY));
    let request = RunRequest { coalesce: Some(CoalesceScope::All), ..lines() };
    assert_eq!(of(request).supervision, Some(SupervisionPlan::default()), "gathered calls are not drained");
}

#[test]
fn a_shell_passes_hooks_and_variables_to_its_children() {
    let plan = plan_for(
        "sh -c true",
        RunRequest { modes: vec![(StandardStream::Output, BufferMode::None)], ..RunRequest::default() },
    );
    let files = InjectedFiles { library: None, hooks: Some("/h".into()) };
    let changes = plan.environment_changes(&files, |_| None);
    let get =
        |name: &str| changes.iter().rev().find(|(of, _)| of == name).and_then(|(_, value)| value.clone());
    assert_eq!(get("PYTHONUNBUFFERED"), Some("1".into()));
    assert_eq!(get("RUBYOPT"), Some("-r/h/ruby/weir_run.rb".into()));
    assert_eq!(get("PERL5OPT"), Some("-I/h/perl -MWeirRun".into()));
    assert_eq!(get("WEIR_HOOK"), Some("none".into()));
}
