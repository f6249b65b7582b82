use super::*;
use crate::bench::fixture;

fn source(text: &str) -> PageSource<'_> {
    PageSource { name: "a \"b\" <c>.json", text }
}

fn page_of(text: &str) -> String {
    page("t", &Body::default(), &[source(text)])
}

/// Returns the page of a document.
fn shown(document: Document) -> String {
    let (title, body) = body(&[document]);
    page(&title, &body, &[])
}

#[test]
fn results_are_given_back_byte_for_byte() {
    let tricky =
        "{\"a\":\"</pre></script><div class=\\\"weir-data\\\" \r\n\t&amp;&#60;\u{7f}é\u{2028}\u{feff}\"}";
    let large = tricky.repeat(3000);
    for text in ["", "\n{}", tricky, &large] {
        let page = page_of(text);
        assert_eq!(extract(&page, 0), Ok(("a \"b\" <c>.json".into(), text.into())));
    }
    assert!(page_of(&large).len() < large.len() / 4, "a large result is compressed");
    let two = page("t", &Body::default(), &[source("{}"), source("[1]")]);
    assert_eq!(extract(&two, 1).map(|(_, text)| text), Ok("[1]".into()));
    assert_eq!(extract(&two, 2), Err(ExtractError::NoSuchResult { results: 2 }));
}

#[test]
fn a_changed_page_gives_nothing_back() {
    let page = page_of("{\"rows\":[1]}");
    assert_eq!(extract(&page.replace("[1]", "[2]"), 0), Err(ExtractError::Damaged));
    assert_eq!(extract(&page[..page.find("[1]").unwrap()], 0), Err(ExtractError::Damaged));
    assert_eq!(extract(&page[..page.find("<style>").unwrap()], 0), Err(ExtractError::Damaged));
    assert_eq!(extract("<html></html>", 0), Err(ExtractError::NoPage));
}

#[test]
fn the_policy_forbids_all_loads_and_names_the_style_and_the_script() {
    let page = page_of("{}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    for unwanted in ["unsafe-inline", " style=\"", " onclick", "http://", "https://", "<link", "<img", "url("]
    {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(unwanted), "{unwanted}");
    }
    // The style and the script must not end their own elements.
    assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
}

#[test]
fn documents_that_no_page_can_show_are_refused_with_the_reason() {
    let long = format!("{{\"schema\":\"weir-bench/1\",\"x\":[\"{}\"]}}", "x".repeat(10_000_000));
    for (text, expected) in [
        ("", "cut off"),
        ("{\"schema\":\"weir-bench/1\",\"rows\":[", "cut off"),
        ("hello", "not JSON"),
        ("{\"schema\":\"weir-bench/1\",\"took_s\":NaN}", "not JSON"),
        ("{\"context\":{},\"benchmarks\":[]}", "not a result of weir: it has no 'schema'"),
        ("[1]", "no 'schema'"),
        ("{\"schema\":\"weir-bench/2\"}", "does not know (known: weir-bench/1"),
        ("{\"schema\":\"weir-lab/1\"}", "its schema is 'weir-lab/1'"),
        ("{\"schema\":\"weir-trace/1\"}", "missing field"),
        (&long, "'x' has a text of 10000000 bytes"),
    ] {
        let error = parse(text).unwrap_err().0;
        assert!(error.contains(expected), "{error}");
        assert!(error.len() < 400, "{error}");
    }
}

#[test]
fn a_bench_page_has_the_conclusions_and_a_mark_for_each_row() {
    let document = fixture::everything();
    let page = shown(Document::Bench(Box::new(document.clone())));
    for answer in &document.answers {
        assert!(page.contains(&escape(&answer.answer)), "{}", answer.answer);
    }
    for warning in &document.warnings {
        assert!(page.contains(&escape(warning)), "{warning}");
    }
    let marks = page.matches("class=\"mark\"").count();
    assert!(marks >= document.rows.iter().filter(|row| row.elapsed_s.is_some()).count(), "{marks}");
    assert!(!page.contains("NaN"), "a coordinate that is no number");
    let (_, body) = body(&[Document::Bench(Box::new(document))]);
    let mut ids: Vec<&str> = body.pictures().iter().map(|picture| picture.id.as_str()).collect();
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all, "identifiers are unique");
}

#[test]
fn the_textbook_has_every_picture() {
    let (_, body) = body(&[Document::Bench(Box::new(fixture::textbook()))]);
    let ids: Vec<&str> = body.pictures().iter().map(|picture| picture.id.as_str()).collect();
    for id in ["sweep", "per-call", "parts", "ratios", "samples", "model", "drift"] {
        assert!(ids.contains(&id), "{id} is not in {ids:?}");
    }
    let sweep = &body.pictures()[0];
    assert!(sweep.wide.contains("page, block") && sweep.wide.contains("within 5 % of the best"));
    assert!(sweep.wide.matches("class=\"band\"").count() >= 2 && sweep.narrow.contains("class=\"band\""));
}

#[test]
fn a_hundred_rows_fit_in_a_megabyte() {
    let mut document = fixture::textbook();
    let rows = document.rows.clone();
    document.rows = rows.iter().cycle().take(100).cloned().collect();
    let text = crate::json::pretty(&document).unwrap();
    let (title, body) = body(&[parse(&text).unwrap()]);
    let page = page(&title, &body, &[source(&text)]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn texts_of_other_programs_are_shown_and_not_obeyed() {
    let mut document = fixture::textbook();
    document.machine.cpu = "<script>alert(1)</script>\u{202e}".into();
    document.warnings = vec!["<img src=x onerror=alert(1)>".into()];
    let page = shown(Document::Bench(Box::new(document)));
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert!(page.contains("&lt;img src=x") && !page.contains('\u{202e}'));
}
