//! The elements of a drawing as text.

use std::fmt::Write;

/// Returns text for element content and attributes. Characters that a reader cannot see, and that may change how others
/// are shown, are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        if let Some(byte) = weir_model::carried_byte(letter) {
            escaped += &format!("\\x{byte:02x}");
            continue;
        }
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() || weir_model::is_invisible(letter) => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Returns a coordinate with at most one decimal: a tenth of a pixel is finer than any screen.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), String::from)
}

/// A drawing under construction, in CSS pixels from the upper left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Svg {
    /// In pixels of the page, before the browser scales the drawing.
    pub width: f64,
    /// In pixels, like `width`.
    pub height: f64,
    body: String,
}

impl Svg {
    /// Makes an empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Adds an element with numeric attributes; `tip` is shown when the pointer is over it.
    pub fn element(&mut self, name: &str, class: &str, attributes: &[(&str, f64)], tip: Option<&str>) {
        let _ = write!(self.body, "<{name} class=\"{class}\"");
        for (attribute, value) in attributes {
            let _ = write!(self.body, " {attribute}=\"{}\"", number(*value));
        }
        self.close(name, tip);
    }

    /// Adds a straight line between two points.
    pub fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.element("line", class, &[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)], None);
    }

    /// Adds vertical strokes as one element.
    pub fn strokes(&mut self, class: &str, xs: &[f64], [top, bottom]: [f64; 2]) {
        if xs.is_empty() {
            return;
        }
        let (top, bottom) = (number(top), number(bottom));
        let d: String = xs.iter().map(|x| format!("M{} {top}V{bottom}", number(*x))).collect();
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// Adds a rectangle; a negative size counts as 0.
    pub fn rect(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2], tip: Option<&str>) {
        let size = [("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))];
        self.element("rect", class, &size, tip);
    }

    /// Adds a line through points, or the area between them if `closed`.
    pub fn polyline(&mut self, class: &str, points: &[[f64; 2]], closed: bool) {
        let name = if closed { "polygon" } else { "polyline" };
        let points: Vec<String> =
            points.iter().map(|[x, y]| format!("{},{}", number(*x), number(*y))).collect();
        let _ = write!(self.body, "<{name} class=\"{class}\" points=\"{}\"/>", points.join(" "));
    }

    /// Adds the mark of a series. Each of four successive series has its own shape, so that colour is not needed.
    pub fn mark(&mut self, class: &str, series: usize, [x, y]: [f64; 2], tip: &str) {
        const R: f64 = 3.6;
        let d = match series % 4 {
            0 => {
                return self.element("circle", class, &[("cx", x), ("cy", y), ("r", R)], Some(tip));
            }
            1 => format!("M{} {}h6.4v6.4h-6.4z", number(x - 3.2), number(y - 3.2)),
            2 => format!("M{} {}l4.4 7.6h-8.8z", number(x), number(y - 4.6)),
            _ => format!("M{} {}l4.6 4.6l-4.6 4.6l-4.6 -4.6z", number(x), number(y - 4.6)),
        };
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"");
        self.close("path", Some(tip));
    }

    /// Adds text; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: &str, text: &str) {
        let (x, y, text) = (number(x), number(y), escape(text));
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// Begins a group whose visibility the legend controls, or a link to `href`.
    pub fn begin(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.body, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.body, " {attribute}=\"{}\"", escape(value));
        }
        self.body.push('>');
    }

    /// Ends what [`Self::begin`] began.
    pub fn end(&mut self, name: &str) {
        let _ = write!(self.body, "</{name}>");
    }

    fn close(&mut self, name: &str, tip: Option<&str>) {
        match tip {
            Some(tip) => {
                let _ = write!(self.body, "><title>{}</title></{name}>", escape(tip));
            }
            None => self.body += "/>",
        }
    }

    /// Returns the drawing with its title and description for screen readers.
    pub fn finish(self, title: &str, description: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">{}</svg>",
            escape(&format!("{title}. {description}")),
            self.body
        )
    }
}
