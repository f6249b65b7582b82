//! The pages of `weir report` in a real browser: no error, no request, and every picture is whole and readable at the width of
//! a phone, a laptop and a large screen, in light and in dark style.

mod browser;
mod common;

use std::fs;
use std::path::Path;

use browser::Browser;
use common::{disk_dir, run, skip, text};

const CHECK: &str = include_str!("browser/check.js");

/// Runs axe-core and returns the rules that are violated, with the first elements.
const AXE_CHECK: &str = "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((rule) => \
                         `${rule.id}: ${rule.help}: ${rule.nodes.slice(0, 2).map((node) => node.html.slice(0, 120))}`))";

/// Returns the text of axe-core, if it was fetched.
fn axe_core() -> Option<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js");
    fs::read_to_string(path).ok()
}

fn succeed(dir: &Path, arguments: &[&str]) {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, text(&output.stderr));
}

/// Writes pages of a bench, a comparison, a trace with findings, an experiment, and of several results together. Returns
/// their names.
fn make_pages(dir: &Path) -> [&'static str; 5] {
    let bench = ["bench", "copy", "--size", "256K", "--rounds", "3", "--budget", "10s", "--quiet"];
    succeed(dir, &[&bench[..], &["--json", "bench.json"]].concat());
    succeed(dir, &["bench", "compare", "--quiet", "--json", "compare.json", "bench.json", "bench.json"]);
    let program = "import os\nfor i in range(3000): os.write(3, b'x')\nprint('a' * 5000)\n";
    fs::write(dir.join("program.py"), program).expect("written");
    let pipeline = "python3 program.py 3>bytes | tee copy | wc -c";
    succeed(dir, &["trace", "--quiet", "--json", "trace.json", "--", "sh", "-c", pipeline]);
    for name in ["bench", "compare", "trace"] {
        succeed(dir, &["report", &format!("{name}.json"), "-o", &format!("{name}.html")]);
    }
    succeed(dir, &["lab", "doubled-at-fork", "--quick", "--quiet", "--html", "lab.html"]);
    let options =
        ["run", "--rescue", "--fix-fork", "--max-delay", "1s", "--coalesce", "--json", "run.json", "--"];
    let killed = "import os\nprint('x' * 100)\nos.kill(os.getpid(), 9)\n";
    run(dir, &[&options[..], &["python3", "-c", killed]].concat());
    fs::write(dir.join("a.log"), "web1 #1\nweb2 #1\nweb1 #3\nweb\0\nweb2 #").expect("written");
    let pattern = "(?<writer>web[12]) #(?<number>[0-9]+)";
    run(dir, &["log", "check", "a.log", "--pattern", pattern, "--quiet", "--json", "check.json"]);
    succeed(dir, &["copy", "--sync", "data", "--json", "copy.json", "a.log", "b.log"]);
    let several = ["run.json", "check.json", "copy.json", "trace.json", "compare.json"];
    succeed(dir, &[&["report", "-o", "all.html"], &several[..]].concat());
    ["bench", "compare", "trace", "lab", "all"]
}

#[test]
fn pages_are_whole_and_readable_at_every_width() {
    let Some(program) = browser::installed() else {
        return skip("report_browser", "chromium is not installed");
    };
    let dir = disk_dir();
    let pages = make_pages(dir.path());
    let mut browser = Browser::start(program, &dir.path().join("profile"));
    let mut problems = Vec::new();
    let axe = axe_core();
    if axe.is_none() {
        skip("report_browser with axe-core", "target/axe is absent: scripts/deps test fetches it from npm");
    }
    for name in pages {
        let page = dir.path().join(format!("{name}.html"));
        let all = [(390, false), (1280, true), (1920, false), (390, true), (1280, false)];
        // The pages of the first three have every kind of picture; the others repeat them with other texts.
        let sizes = if ["bench", "compare", "trace"].contains(&name) { &all[..] } else { &all[..3] };
        for &(width, dark) in sizes {
            let mut found = browser.open(&page, width, dark);
            let checked = browser.evaluate(CHECK);
            let sentences = checked.as_array().expect("a list").iter();
            found.extend(sentences.map(|sentence| sentence.as_str().expect("a sentence").into()));
            if width == 390
                && let Some(axe) = &axe
            {
                let violations = browser.evaluate_promise(&format!("{axe};{AXE_CHECK}"));
                let violations = violations.as_array().expect("a list").iter();
                found.extend(violations.map(|violation| format!("axe-core: {violation}")));
            }
            let style = if dark { "dark" } else { "light" };
            problems.extend(found.iter().map(|what| format!("{name} {width} px {style}: {what}")));
            let pictures = browser.evaluate("document.querySelectorAll('figure svg').length");
            assert!(pictures.as_u64() > Some(0), "{name} has no picture");
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_page_prints_its_tables_and_finds_its_faults() {
    let Some(program) = browser::installed() else {
        return skip("report_browser printing", "chromium is not installed");
    };
    let dir = disk_dir();
    let faulty = dir.path().join("faulty.html");
    let body = "<h1>x</h1><p style='color:#999;background:#aaa'>pale</p><figure><svg role=img aria-label=a \
                width=100 height=50><rect width=9 height=9 /><text x=5 y=20>one</text><text x=9 y=20>two</text>\
                <text x=80 y=40>too wide a text</text></svg></figure><script src=other.js></script>";
    fs::write(&faulty, format!("<!doctype html><html lang=en><body>{body}</body></html>")).expect("written");
    let mut browser = Browser::start(program, &dir.path().join("profile"));
    let errors = browser.open(&faulty, 390, false).join("\n");
    assert!(errors.contains("request: ") && errors.contains("other.js"), "{errors}");
    let found = browser.evaluate(CHECK).to_string();
    for fault in ["contrast", "pale", "overlaps", "cut by"] {
        assert!(found.contains(fault), "{fault}: {found}");
    }

    succeed(dir.path(), &["trace", "--quiet", "--json", "trace.json", "--", "sh", "-c", "seq 2000 | wc -l"]);
    succeed(dir.path(), &["report", "trace.json", "-o", "trace.html"]);
    browser.open(&dir.path().join("trace.html"), 1280, false);
    browser.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = false))");
    let rows =
        "[...document.querySelectorAll('figure details td')].filter((cell) => cell.checkVisibility()).length";
    assert_eq!(browser.evaluate(rows).as_u64(), Some(0), "the tables are closed on the screen");
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({"media": "print"}));
    assert!(browser.evaluate(rows).as_u64() > Some(0), "the tables of the pictures are not printed");
}

#[test]
fn the_frames_of_a_run_are_shown_one_at_a_time() {
    let Some(program) = browser::installed() else {
        return skip("report_browser frames", "chromium is not installed");
    };
    let dir = disk_dir();
    succeed(dir.path(), &["lab", "doubled-at-fork", "--quick", "--quiet", "--html", "lab.html"]);
    let mut browser = Browser::start(program, &dir.path().join("profile"));
    browser.open(&dir.path().join("lab.html"), 1280, false);
    let shown =
        "[...document.querySelectorAll('.frames figure')].filter((one) => one.checkVisibility()).length";
    let all = browser.evaluate(shown).as_u64().expect("a number");
    assert!(all > 10, "{all} frames");
    browser.evaluate("document.querySelectorAll('.frames .all').forEach((button) => button.click())");
    assert_eq!(browser.evaluate(shown).as_u64(), Some(2), "one of each program");
    let status = "document.querySelector('.frames nav [role=status]').textContent";
    assert!(browser.evaluate(status).as_str().is_some_and(|text| text.starts_with("step 1 of ")));
    browser.evaluate("document.querySelectorAll('.frames nav button')[1].click()");
    assert!(browser.evaluate(status).as_str().is_some_and(|text| text.starts_with("step 2 of ")));
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({"media": "print"}));
    assert_eq!(browser.evaluate(shown).as_u64(), Some(all), "all are printed");
}

#[test]
fn a_picture_can_be_enlarged_and_moved() {
    let Some(program) = browser::installed() else {
        return skip("report_browser zoom", "chromium is not installed");
    };
    let dir = disk_dir();
    succeed(dir.path(), &["trace", "--quiet", "--json", "trace.json", "--", "sh", "-c", "seq 2000 | wc -l"]);
    succeed(dir.path(), &["report", "trace.json", "-o", "trace.html"]);
    let mut browser = Browser::start(program, &dir.path().join("profile"));
    browser.open(&dir.path().join("trace.html"), 1280, false);
    let part = "document.querySelector('#timeline .wide svg').getAttribute('viewBox').split(' ').map(Number)";
    let shown = |browser: &mut Browser| -> Vec<f64> {
        let numbers = browser.evaluate(part);
        numbers.as_array().expect("a list").iter().map(|one| one.as_f64().expect("a number")).collect()
    };
    let whole = shown(&mut browser);
    browser.evaluate("document.querySelector('#timeline .zoom button').click()");
    let half = shown(&mut browser);
    assert_eq!([half[2], half[3]], [whole[2] / 2.0, whole[3] / 2.0], "twice as large");
    assert_eq!(half[0], whole[0] + whole[2] / 4.0, "its middle");
    let press = |key: &str| {
        format!(
            "document.querySelector('#timeline .zoom').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))"
        )
    };
    browser.evaluate(&press("ArrowRight"));
    assert!(shown(&mut browser)[0] > half[0], "moved to the right");
    (0..9).for_each(|_| drop(browser.evaluate(&press("ArrowRight"))));
    let end = shown(&mut browser);
    assert!((end[0] + end[2] - whole[0] - whole[2]).abs() < 1e-6, "not beyond the end: {end:?}");
    browser.evaluate(&press("0"));
    assert_eq!(shown(&mut browser), whole);
}
