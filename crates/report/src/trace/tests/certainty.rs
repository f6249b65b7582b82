//! Tests of how sampled, estimated and partial numbers are marked.

use super::*;

#[test]
fn a_stream_beside_unknown_calls_shows_the_least_number() {
    let (mut recording, findings) = bytewise();
    let counts = &mut recording.counts[1];
    (counts.exact, counts.estimated, counts.at_least) = (false, true, true);
    let trace = of(&recording, &findings, VERDICT);
    let screen = screen_at(&trace, 100);
    let row = screen.lines().find(|line| line.contains("≥5,000,000")).unwrap_or_else(|| panic!("{screen}"));
    assert!(row.contains("≥4.78 MiB") && !row.contains('*'), "{row}");
    assert!(screen.contains("≥ at least about: some of the unknown calls"), "{screen}");
    assert!(screen.contains("calls at least about 5,000,000"), "{screen}");
    assert!(screen.contains("its streams estimated") && !screen.contains("totals exact"), "{screen}");
    let document = weir_model::trace::TraceDocument::new(&trace);
    let row = document.streams.iter().find(|row| row.at_least).expect("the row of the stream");
    assert_eq!((row.exact, row.estimated), (false, true));
    let mut body = crate::page::Body::default();
    page::page(&document, &mut body, "");
    let html = crate::page::page("t", &body, &[]);
    assert!(html.contains("at least about 5,000,000"), "{html}");
}

#[test]
fn a_stream_shows_its_exact_number_of_calls_only() {
    let (mut recording, findings) = bytewise();
    let sampled = screen_at(&of(&recording, &findings, VERDICT), 80);
    assert!(histogram(&sampled).iter().any(|line| line.contains("fd 1 (sampled) > ")), "{sampled}");
    assert!(
        !sampled.contains("4,999,998") || sampled.matches("4,999,998").count() == 1,
        "the verdict's: {sampled}"
    );
    assert!(sampled.contains("5,000,000*") && sampled.contains("* exact, but the typical size"), "{sampled}");
    recording.counts[1].exact = true;
    let counted = screen_at(&of(&recording, &findings, VERDICT), 80);
    assert!(histogram(&counted).iter().any(|line| line.contains("4,999,998")), "{counted}");
    (recording.counts[1].exact, recording.counts[1].estimated) = (false, true);
    (recording.counts[2].direction, recording.counts[2].estimated) = (weir_model::Direction::Out, true);
    let shared = screen_at(&of(&recording, &findings, VERDICT), 80);
    assert!(shared.contains("5,000,000≈") && shared.contains("≈ estimated from samples"), "{shared}");
    assert!(shared.contains("calls about 5,000,000"), "{shared}");
}
