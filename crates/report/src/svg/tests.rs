use super::*;
use crate::scale::{Axis, Spacing, Unit};

const BYTES: Axis = Axis { spacing: Spacing::Log, unit: Unit::Bytes };
const SECONDS: Axis = Axis { spacing: Spacing::Log, unit: Unit::Seconds };

#[test]
fn markup_in_texts_is_escaped_and_invisible_characters_are_replaced() {
    assert_eq!(
        escape("<a href=\"x\">'&\u{202e}\u{1b}"),
        "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}\u{fffd}"
    );
    assert_eq!(escape("\u{61c}\u{2028}\u{2029}"), "\u{fffd}".repeat(3));
}

#[test]
fn equal_ratios_have_equal_distances_on_log_axes() {
    let chart =
        Chart::new([600.0, 300.0], (BYTES, &[1.0, 65536.0]), (SECONDS, &[1e-3, 1.0]), ["x", "y"]).unwrap();
    let at = |value: f64| chart.x(value).unwrap();
    assert!((at(16.0) - at(1.0) - (at(4096.0) - at(256.0))).abs() < 1e-6);
    assert!(chart.y(1.0).unwrap() < chart.y(1e-3).unwrap(), "larger values are higher");
    assert_eq!(chart.x(0.0), None);
    assert!(Chart::new([600.0, 300.0], (BYTES, &[]), (SECONDS, &[1.0]), ["x", "y"]).is_none());
}

#[test]
fn a_series_has_a_band_a_line_and_a_mark_for_each_point() {
    let mut chart =
        Chart::new([600.0, 300.0], (BYTES, &[1.0, 4.0]), (SECONDS, &[1.0, 4.0]), ["x", "y"]).unwrap();
    let points = [([1.0, 4.0, 3.0, 4.0], "one".into()), ([4.0, 1.0, 1.0, 2.0], "two".into())];
    chart.series(0, &points, true);
    let text = chart.svg.finish("title", "description");
    assert_eq!(text.matches("<circle").count(), 2);
    assert_eq!((text.matches("<polygon").count(), text.matches("<polyline").count()), (1, 1));
    assert!(
        text.contains("<title>two</title>") && text.contains("aria-label=\"title. description\""),
        "{text}"
    );
}

#[test]
fn long_labels_keep_their_ends_and_values_outside_are_at_the_ends() {
    let label = format!("{}/end.log", "x".repeat(200));
    let axis = Axis { spacing: Spacing::Linear, unit: Unit::Number };
    let chart = RowChart::new(WIDE, &[label], (axis, &[1.0, 3.0]), "x").unwrap();
    assert!(chart.x(-5.0) == chart.x(1.0) && chart.x(9.0) == chart.x(3.0));
    let text = chart.svg.finish("", "");
    assert!(text.contains("end.log</text>") && !text.contains(&"x".repeat(100)), "{text}");
}
