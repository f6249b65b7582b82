//! Tests of plots.

use proptest::prelude::*;

use super::*;
use crate::scale::{Spacing, Unit};

const LOG_SECONDS: Axis = Axis { spacing: Spacing::Log, unit: Unit::Seconds };
const LOG_BYTES: Axis = Axis { spacing: Spacing::Log, unit: Unit::Bytes };

fn plot(series: &[(&str, &[(f64, f64)])]) -> Plot {
    Plot {
        title: "elapsed against record".into(),
        x: LOG_BYTES,
        y: LOG_SECONDS,
        series: series
            .iter()
            .map(|(name, points)| Series { name: (*name).into(), points: points.to_vec() })
            .collect(),
        height: 9,
    }
}

fn at(width: usize) -> Style {
    Style { width, ..Style::default() }
}

#[test]
fn points_lie_where_the_axes_say() {
    let lines = plot(&[("a", &[(1.0, 100.0), (256.0, 1.0), (65536.0, 0.01)])]).lines(2, &at(60));
    let column = |line: &str, sign: char| line.chars().position(|c| c == sign);
    // The ends are in the corners, the middle point is in the middle, the ticks are at the points.
    assert!(lines[1].starts_with("   100 s ┤●"), "{lines:#?}");
    assert!(lines[5].starts_with("     1 s ┤"), "{lines:#?}");
    assert!(lines[9].starts_with("   10 ms ┤"), "{lines:#?}");
    let ticks: Vec<usize> =
        lines[10].chars().enumerate().filter(|(_, c)| *c == '┬').map(|(at, _)| at).collect();
    assert_eq!(column(&lines[1], '●'), ticks.first().copied());
    assert_eq!(column(&lines[5], '●'), Some(ticks[ticks.len() / 2]));
    assert_eq!(column(&lines[9], '●'), ticks.last().copied());
    assert!(lines[11].contains("1 B") && lines[11].ends_with("64 KiB"), "{lines:#?}");
}

#[test]
fn series_differ_by_marker_and_the_first_is_in_front() {
    let points: &[(f64, f64)] = &[(1.0, 1.0), (4096.0, 0.1)];
    let lines = plot(&[("front", points), ("back", &[(1.0, 1.0), (4096.0, 0.9)])]).lines(0, &at(80));
    let text = lines.join("\n");
    assert!(lines[0].contains("● front   ○ back"), "{text}");
    assert!(text.contains("where points meet, the first is shown"), "{text}");
    let canvas = lines[2..].join("\n");
    assert_eq!((canvas.matches('●').count(), canvas.matches('○').count()), (2, 1), "{text}");
    let apart = plot(&[("front", points), ("back", &[(1.0, 0.5)])]).lines(0, &at(80)).join("\n");
    assert!(!apart.contains("where points meet"), "{apart}");
}

#[test]
fn ascii_style_draws_ascii_only() {
    let ascii = Style { unicode: false, ..at(80) };
    let text = plot(&[("a", &[(1.0, 1e-5), (9.0, 1e-6)]), ("b", &[(2.0, 1e-6)])]).lines(2, &ascii).join("\n");
    assert!(
        text.is_ascii() && text.contains("* a") && text.contains("o b") && text.contains("10 us"),
        "{text}"
    );
}

#[test]
fn colour_adds_only_the_colour_of_the_series() {
    let plot = plot(&[("a", &[(1.0, 1.0), (64.0, 0.1)]), ("b", &[(1.0, 0.5)])]);
    let coloured = plot.lines(2, &Style { colour: true, ..at(80) }).join("\n");
    assert!(coloured.contains("\u{1b}[36m●"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[33m○"), "{coloured:?}");
    assert!(!plot.lines(2, &at(80)).join("").contains('\u{1b}'));
}

#[test]
fn a_plot_without_points_has_no_lines() {
    assert!(plot(&[]).lines(2, &at(80)).is_empty());
    assert!(plot(&[("a", &[])]).lines(2, &at(80)).is_empty());
    assert!(plot(&[("a", &[(0.0, 1.0), (1.0, f64::NAN), (-1.0, 2.0)])]).lines(2, &at(80)).is_empty());
    assert!(plot(&[("a", &[(64.0, 0.5)])]).lines(2, &at(80)).join("").contains('●'));
}

#[test]
fn markers_stay_distinct() {
    let markers: std::collections::HashSet<char> = (0..34).map(|series| marker(series, &at(80))).collect();
    assert_eq!(markers.len(), 34);
}

fn any_axis() -> impl Strategy<Value = Axis> {
    (any::<bool>(), 0..3).prop_map(|(log, unit)| Axis {
        spacing: if log { Spacing::Log } else { Spacing::Linear },
        unit: [Unit::Seconds, Unit::Bytes, Unit::Number][unit as usize],
    })
}

fn any_value() -> impl Strategy<Value = f64> {
    let wild = prop::num::f64::ANY;
    prop_oneof![wild, 1.0..1e6f64, Just(0.0), Just(1.0), Just(1.0000000001), Just(5e-324), Just(f64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn never_panics_and_never_too_wide(
        axes in (any_axis(), any_axis()),
        series in prop::collection::vec(prop::collection::vec((any_value(), any_value()), 0..6), 0..10),
        height in 0usize..30,
        width in 44usize..130,
    ) {
        let series = series.into_iter().map(|points| Series { name: "s".into(), points }).collect();
        let plot = Plot { title: "t".into(), x: axes.0, y: axes.1, series, height };
        let lines = plot.lines(2, &at(width));
        prop_assert!(lines.iter().all(|line| crate::text::width(line) <= width), "{:#?}", lines);
        let placed = |axis, value| Scale::new(axis, [value]).is_some();
        let visible = plot.points().any(|(x, y)| placed(axes.0, x) && placed(axes.1, y));
        prop_assert_eq!(visible, !lines.is_empty());
    }

    #[test]
    fn never_panics_in_no_width(points in prop::collection::vec((any_value(), any_value()), 0..6), width in 0usize..20) {
        let plot = Plot { x: LOG_BYTES, y: LOG_SECONDS, series: vec![Series { name: "s".into(), points }], title: "t".into(), height: 5 };
        plot.lines(2, &at(width));
    }
}
