//! One picture as an SVG file of its own, with title, legend and style, for other programs than browsers.

use super::{PICTURE_STYLE, STYLE};
use crate::svg::{Picture, SERIES_COLOURS, Svg, WIDE, escape, series_class};

/// Height of the title.
const TITLE: f64 = 34.0;
/// Height of a line of the legend.
const LINE: f64 = 22.0;
/// Width of a character of the legend in pixels, and of the mark before it.
const LEGEND: [f64; 2] = [7.0, 34.0];
/// Space around the picture.
const MARGIN: f64 = 12.0;

/// Returns the wide drawing of a picture as the text of an SVG file, on a white ground.
pub fn picture_svg(picture: &Picture) -> String {
    let mut head = Svg::new(WIDE, 0.0);
    head.text("title", [0.0, 20.0], "start", &picture.title);
    let legend = legend(&mut head, picture);
    let top = TITLE + legend;
    let (width, height) = (WIDE + 2.0 * MARGIN, top + picture.wide_height + 2.0 * MARGIN);
    let head = head.finish("", "");
    let head = inside(&head);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>{}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">{head}</g>\n\
         <g transform=\"translate({MARGIN} {})\">{}</g>\n</svg>\n",
        escape(&format!("{}. {}", picture.title, picture.description)),
        flat_style(),
        MARGIN + top,
        inside(&picture.wide)
    )
}

/// Draws the legend below the title and returns its height.
fn legend(svg: &mut Svg, picture: &Picture) -> f64 {
    if picture.legend.len() < 2 {
        return 0.0;
    }
    let [mut x, mut y] = [0.0, TITLE + 10.0];
    for (series, name) in &picture.legend {
        let wide = name.chars().count() as f64 * LEGEND[0] + LEGEND[1];
        if x > 0.0 && x + wide > WIDE {
            (x, y) = (0.0, y + LINE);
        }
        svg.begin("g", &[("class", &series_class(*series))]);
        svg.mark("mark", *series, [x + 6.0, y - 4.0], name);
        svg.end("g");
        svg.text("label", [x + 16.0, y], "start", name);
        x += wide;
    }
    y + LINE - TITLE - 10.0
}

/// Returns what is between the tags of a drawing.
fn inside(drawing: &str) -> &str {
    let from = drawing.find('>').map_or(0, |at| at + 1);
    drawing[from..].strip_suffix("</svg>").unwrap_or(&drawing[from..])
}

/// Returns the style of pictures in light colours, without variables: most programs other than browsers know none.
fn flat_style() -> String {
    let palette = palette();
    let mut flat = String::from("svg .title{font-size:16px;font-weight:600}");
    for rule in PICTURE_STYLE.split('}').map(str::trim).filter(|rule| !rule.is_empty()) {
        let Some((selectors, body)) = rule.split_once('{') else { continue };
        let (own, others): (Vec<&str>, Vec<&str>) =
            body.split(';').partition(|part| part.starts_with("--c:"));
        let body = others.join(";");
        match own.first().and_then(|own| own.strip_prefix("--c:")) {
            Some(_) if selectors.starts_with(".s") && others.is_empty() => {}
            Some(colour) => flat += &format!("{selectors}{{fill:{};{body}}}", resolved(colour, &palette)),
            None if body.contains("var(--c)") => flat += &of_each_series(selectors, &body, &palette),
            None => flat += &format!("{selectors}{{{}}}", resolved(&body, &palette)),
        }
    }
    flat
}

/// Returns a rule with the colour of the series once for each series.
fn of_each_series(selectors: &str, body: &str, palette: &[(String, String)]) -> String {
    let rule = |series: usize| {
        let class = series_class(series);
        let selectors: Vec<String> = selectors
            .split(',')
            .flat_map(|selector| [format!(".{class} {selector}"), format!(".{class}{selector}")])
            .collect();
        let body = body.replace("var(--c)", &format!("var(--c{series})"));
        format!("{}{{{}}}", selectors.join(","), resolved(&body, palette))
    };
    (0..SERIES_COLOURS).map(rule).collect()
}

/// Returns the names and the light colours of the page's style.
fn palette() -> Vec<(String, String)> {
    let root = STYLE.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(root, _)| root);
    let pairs = root.split(';').filter_map(|part| part.trim().split_once(':'));
    pairs.map(|(name, colour)| (format!("var({name})"), colour.to_string())).collect()
}

fn resolved(body: &str, palette: &[(String, String)]) -> String {
    palette.iter().fold(body.to_string(), |body, (variable, colour)| body.replace(variable, colour))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use crate::page::{Document, body};

    #[test]
    fn a_picture_alone_has_title_legend_and_colours_without_variables() {
        let (_, body) = body(&[Document::Bench(Box::new(fixture::textbook()))]);
        for picture in body.pictures() {
            let text = picture_svg(picture);
            assert!(!text.contains("var(") && !text.contains("NaN"), "{text}");
            assert!(text.contains(&escape(&picture.title)) && text.ends_with("</svg>\n"), "{text}");
            assert_eq!(text.matches("<svg").count(), 1);
            assert_eq!(text.matches("<g").count(), text.matches("</g>").count());
            for (_, name) in picture.legend.iter().filter(|_| picture.legend.len() > 1) {
                assert!(text.contains(&format!(">{}</text>", escape(name))), "{name}: {text}");
            }
        }
        let style = flat_style();
        assert!(style.contains(".s1 .mark,.s1.mark{fill:#c44e00;"), "{style}");
        assert!(style.contains(".bar.system{fill:#c44e00;}"), "{style}");
    }
}
