//! Tests of the live screen on terminals of two sizes, of the table and of the document.

use ratatui_core::backend::TestBackend;
use ratatui_core::style::Modifier;
use ratatui_core::terminal::Terminal;
use weir_model::top::{CallRate, PendingStream, ProcessActivity, Survey};
use weir_model::trace::RuntimeId;

use super::{Foot, Selection, Sort, TopView, blocks, document, draw};
use crate::style::Style;
use crate::terminal;

fn activity(pid: u32, command: &str, reads: (f64, f64), writes: (f64, f64)) -> ProcessActivity {
    let rate = |(calls_s, bytes_s)| Some(CallRate { calls_s, bytes_s });
    ProcessActivity {
        pid,
        comm: command.split(' ').next().unwrap().into(),
        command: command.into(),
        reads: rate(reads),
        writes: rate(writes),
        user_share: Some(0.05),
        system_share: Some(0.8),
        waiting: Some(Vec::new()),
        ..ProcessActivity::default()
    }
}

fn waiting(fd: i32, path: &str, text: &str, waits_s: f64) -> PendingStream {
    PendingStream {
        walker: RuntimeId::CPYTHON,
        fd,
        path: path.into(),
        pending_bytes: text.len() as u64,
        waits_s,
        from_before: waits_s > 100.0,
        preview: text.into(),
    }
}

fn survey() -> Survey {
    let mut worker = activity(4711, "python3 worker.py --listen 8080", (0.0, 0.0), (0.0, 0.0));
    worker.system_share = Some(0.0);
    worker.waiting = Some(vec![waiting(1, "pipe:[77]", "ready: listening\n", 718.0)]);
    let foreign = ProcessActivity {
        foreign: true,
        uid: 33,
        reads: None,
        writes: None,
        waiting: None,
        ..activity(9, "nginx: worker", (0.0, 0.0), (0.0, 0.0))
    };
    let copier = activity(300, "cp a b", (100.0, 13_107_200.0), (100.0, 13_107_200.0));
    let bytewise = activity(12345, "./tr2u a w", (250_000.0, 250_000.0), (250_000.0, 250_000.0));
    let processes = vec![foreign, copier, worker, bytewise];
    Survey {
        elapsed_s: 1.0,
        cost_s: 0.004,
        left_out: 0,
        lacks_threads: false,
        hides_others: false,
        processes,
    }
}

fn view<'a>(survey: &'a Survey, selection: &'a Selection, selected: u32) -> TopView<'a> {
    TopView {
        survey,
        selection,
        selected: Some(selected),
        foot: Foot::Keys,
        paused: false,
        help: None,
        interval_s: 1.0,
        style: Style::default(),
    }
}

fn screen(view: &TopView, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

fn lines(view: &TopView, width: u16, height: u16) -> Vec<String> {
    let terminal = screen(view, width, height);
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_string()).collect()
}

#[test]
fn eighty_columns() {
    let (survey, selection) = (survey(), Selection::default());
    let lines = lines(&view(&survey, &selection, 4711), 80, 24);
    let expected = [
        "weir top · 4 processes · 500 k calls/s, 500 k tiny · 17 B pending in 1 process",
        "every 1 s · by tiny · weir itself 0.4 %",
        "     PID COMMAND    TINY/s READ/s WRITE/s   A CALL SYS%  PENDING   AGE WHERE",
        "  12345  ./tr2u a w 500 k  250 k   250 k      1 B   80",
    ];
    assert_eq!(lines[..3], expected[..3]);
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        expected[3].split_whitespace().collect::<Vec<_>>()
    );
    assert!(lines[4].contains("4711") && lines[4].contains(" 17 B >11 m fd 1 pipe"), "{lines:#?}");
    assert!(lines[4].contains(" python3 ") && !lines[4].contains("worker"), "{lines:#?}");
    assert_eq!(lines[21], "4711 python3 worker.py --listen 8080");
    assert_eq!(lines[22], r#"fd 1 pipe: 17 B pending for >11 m: "ready: listening\n""#);
    assert_eq!(lines[23], "q quit  ? help  s sort  / filter  p peek  f flush  t trace  space pause");
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_hundred_and_twenty_columns() {
    let (survey, selection) = (survey(), Selection { sort: Sort::Pid, ..Selection::default() });
    let terminal = screen(&view(&survey, &selection, 9), 120, 40);
    let lines = lines(&view(&survey, &selection, 9), 120, 40);
    assert!(lines[2].contains("TINY/s") && lines[2].contains("USR%"), "{lines:#?}");
    assert!(lines[3].trim_start().starts_with("9! nginx: worker"), "{lines:#?}");
    assert!(lines[3].contains('–'), "{lines:#?}");
    assert_eq!(lines[37], "9 ! of user 33: root with CAP_SYS_PTRACE sees more nginx: worker");
    assert_eq!(lines[38], "its buffers cannot be read");
    let buffer = terminal.backend().buffer();
    assert!((0..120).all(|x| buffer[(x, 3)].modifier.contains(Modifier::REVERSED)), "the chosen one");
    assert!(!buffer[(5, 4)].modifier.contains(Modifier::REVERSED));
    let head = lines[2].find("PID").unwrap() as u16;
    assert!(buffer[(head, 2)].modifier.contains(Modifier::UNDERLINED), "sorted by it");
}

#[test]
fn a_process_with_more_capabilities_than_weir_is_named_as_such() {
    let (mut survey, selection) = (survey(), Selection { sort: Sort::Pid, ..Selection::default() });
    survey.processes[0].more_capable = true;
    let lines = lines(&view(&survey, &selection, 9), 120, 40);
    assert_eq!(lines[37], "9 ! of user 33 (it has a capability that weir lacks) nginx: worker");
    let text = terminal::text(&blocks(&survey, &selection, 20), &Style { width: 120, ..Style::default() });
    assert!(
        text.contains("! it has a capability that weir lacks") && !text.contains("CAP_SYS_PTRACE"),
        "{text}"
    );
}

#[test]
fn the_selected_process_is_visible() {
    let processes = (1..=100).map(|pid| activity(pid, "cat", (0.0, 0.0), (0.0, 0.0))).collect();
    let survey = Survey { elapsed_s: 1.0, processes, ..Survey::default() };
    let selection = Selection { sort: Sort::Pid, ..Selection::default() };
    for selected in [1, 18, 19, 50, 100] {
        let lines = lines(&view(&survey, &selection, selected), 80, 24);
        assert!(
            lines[3..21].iter().any(|line| line.trim_start().starts_with(&format!("{selected} "))),
            "{selected}"
        );
        assert!(lines[3..21].iter().all(|line| line.contains("cat")), "the rows are full");
    }
}

#[test]
fn the_last_line_shows_filter_question_and_message() {
    let (survey, selection) = (survey(), Selection { filter: "tr".into(), ..Selection::default() });
    let foot = |foot| lines(&TopView { foot, ..view(&survey, &selection, 1) }, 80, 24)[23].clone();
    assert_eq!(foot(Foot::Typing("tr")), "filter: tr_   enter keeps it, escape drops it");
    assert_eq!(foot(Foot::Question("flush 7?")), "flush 7?   y yes, any other key no");
    assert_eq!(foot(Foot::Message("it has ended")), "it has ended");
    let paused = lines(&TopView { paused: true, ..view(&survey, &selection, 1) }, 80, 24);
    assert_eq!(paused[1], "paused · by tiny · only \"tr\" · weir itself 0.4 %");
    assert!(paused[4].is_empty(), "only one has it: {paused:#?}");
    let help = lines(&TopView { help: Some(0), ..view(&survey, &selection, 1) }, 80, 24);
    assert!(help.iter().any(|line| line.contains("weir flush: write its pending bytes now")), "{help:#?}");
}

#[test]
fn the_whole_help_can_be_read() {
    let (survey, selection) = (survey(), Selection::default());
    let help = |from, width, height| {
        lines(&TopView { help: Some(from), ..view(&survey, &selection, 1) }, width, height)
    };
    let whole = help(0, 80, 24).join("\n");
    assert!(
        whole.replace('\n', " ").contains("unless the process has a capability that root lacks."),
        "{whole}"
    );
    assert!(!whole.contains('…'), "{whole}");
    let small = help(60, 40, 10).join("\n");
    assert!(small.contains("lacks.") && small.contains("up down: more"), "{small}");
    assert!(help(0, 40, 10)[2].contains("q   quit"), "{small}");
}

#[test]
fn any_size_is_drawn() {
    let (survey, selection) = (survey(), Selection::default());
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 6), (79, 7), (300, 100)] {
        for help in [None, Some(0), Some(60)] {
            lines(&TopView { help, ..view(&survey, &selection, 4711) }, width, height);
        }
    }
    lines(&view(&Survey::default(), &selection, 1), 80, 24);
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let mut survey = survey();
    survey.processes[0].command = "evil\u{1b}[2J\u{9b}name".into();
    let plain = Style { unicode: false, ..Style::default() };
    let selection = Selection { sort: Sort::Pid, ..Selection::default() };
    let text = lines(&TopView { style: plain, ..view(&survey, &selection, 9) }, 120, 24).join("\n");
    assert!(text.contains(r"evil\x1b[2J\xc2\x9bname") && text.is_ascii(), "{text}");
}

#[test]
fn sorted_by_each_column() {
    let survey = survey();
    let first = |sort| Selection { sort, ..Selection::default() }.select(&survey)[0].pid;
    let by = [
        (Sort::Tiny, 12345),
        (Sort::Reads, 12345),
        (Sort::Writes, 12345),
        (Sort::Size, 12345),
        (Sort::System, 12345),
        (Sort::Pending, 4711),
        (Sort::Age, 4711),
        (Sort::Pid, 9),
    ];
    assert_eq!(by.map(|(sort, _)| first(sort)), by.map(|(_, pid)| pid));
    assert_eq!(Sort::Tiny.previous(), Sort::Pid);
    assert_eq!((0..8).map(|steps| Sort::Tiny.next(steps)).collect::<Vec<_>>(), Sort::ALL);
}

#[test]
fn the_filter_matches_command_pid_and_path() {
    let survey = survey();
    let found = |filter: &str| {
        let selection = Selection { filter: filter.into(), ..Selection::default() };
        selection.select(&survey).iter().map(|one| one.pid).collect::<Vec<_>>()
    };
    assert_eq!((found("WORKER"), found("300"), found("pipe:[")), (vec![4711, 9], vec![300], vec![4711]));
    assert_eq!((found("").len(), found("nothing").len()), (4, 0));
}

#[test]
fn one_survey_as_a_table() {
    let survey = survey();
    let text = |rows, width| {
        terminal::text(&blocks(&survey, &Selection::default(), rows), &Style { width, ..Style::default() })
    };
    let wide = text(20, 120);
    assert!(wide.starts_with("top · 4 processes · 500 k calls/s"), "{wide}");
    let worker = wide.lines().find(|line| line.contains("4711")).unwrap();
    assert!(worker.contains("17 B") && worker.ends_with(">11 m  fd 1 pipe"), "{wide}");
    assert!(wide.contains("9!") && wide.contains("! another user's"), "{wide}");
    assert!(wide.contains("more privileged than weir") && !wide.contains("run weir as root"), "{wide}");
    assert!(text(20, 80).lines().all(|line| line.chars().count() <= 80), "{}", text(20, 80));
    let short = text(1, 80);
    assert!(short.contains("tr2u") && !short.contains("4711") && short.contains("and 3 more"), "{short}");
}

#[test]
fn json_has_null_for_unknown_values() {
    let survey = survey();
    let selection = Selection::default();
    let whole = document(&survey, &selection, None);
    assert_eq!((whole.schema, whole.found, whole.processes.len()), ("weir-top/1", 4, 4));
    let value = serde_json::to_value(&whole).unwrap();
    let process = |pid: u32| {
        value["processes"].as_array().unwrap().iter().find(|one| one["pid"] == pid).unwrap().clone()
    };
    assert!(
        process(9)["reads"].is_null()
            && process(9)["pending_bytes"].is_null()
            && process(9)["foreign"] == true
    );
    assert_eq!(process(4711)["waiting"][0]["walker"], "cpython");
    assert_eq!(
        (&process(4711)["waits_s"], &process(4711)["bytes_per_call"]),
        (&718.0.into(), &serde_json::Value::Null)
    );
    assert_eq!(process(12345)["tiny_calls_s"], 500_000.0);
    let part = document(&survey, &selection, Some(1));
    assert_eq!((part.found, part.processes.len()), (4, 1));
}

#[test]
fn processes_without_an_answer_are_named() {
    let mut survey = survey();
    let selection = Selection::default();
    let table = |survey: &Survey| {
        terminal::text(&blocks(survey, &Selection::default(), 20), &Style { width: 120, ..Style::default() })
    };
    assert!(!table(&survey).contains("answer"));
    let hung = survey.processes.iter_mut().find(|one| one.pid == 4711).unwrap();
    (hung.unanswered, hung.waiting) = (true, None);
    let one = table(&survey);
    assert!(one.contains("1 process did not answer, so its buffers are unknown: python3 4711"), "{one}");
    survey.left_out = 12;
    survey.hides_others = true;
    let both = table(&survey).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(both.contains("the buffers of 12 processes were not read: no time left"), "{both}");
    assert!(both.contains("processes of other users are hidden"), "{both}");
    let whole = document(&survey, &selection, Some(1));
    assert_eq!((whole.unanswered, whole.left_out), (1, 12));
    let lines = lines(&view(&survey, &selection, 4711), 120, 24);
    assert!(lines[1].contains("1 process did not answer"), "{lines:#?}");
    assert!(lines[22].starts_with("it did not answer"), "{lines:#?}");
}
