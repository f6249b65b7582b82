//! A self-contained page: texts, tables and pictures of results, and the results themselves.
//!
//! The page makes no request: its policy forbids every load and allows only its own style and script, by their hashes. It
//! is readable without the script, which adds tips, a filter of series and a button that saves the JSON.

mod blocks;
mod document;
mod embedded;
pub(crate) mod environment;
mod limits;
mod policy;
mod single;

pub use document::{Document, DocumentError, body, parse};
pub use embedded::{ExtractError, extract};
pub use single::picture_svg;

use std::collections::BTreeMap;

use crate::svg::{Picture, escape};

const STYLE: &str = concat!(include_str!("style.css"), include_str!("picture.css"));
const PICTURE_STYLE: &str = include_str!("picture.css");
const SCRIPT: &str = include_str!("script.js");

/// A result as it was read from a file.
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    /// Name of the file without its folder.
    pub name: &'a str,
    /// Content of the file.
    pub text: &'a str,
}

/// The body of a page under construction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Body {
    html: String,
    pictures: Vec<Picture>,
}

impl Body {
    /// Adds the title of a document.
    pub fn title(&mut self, text: &str) {
        self.html += &format!("<h1>{}</h1>\n", escape(text));
    }

    /// Adds a heading of a section; `id` is the target of links.
    pub fn heading(&mut self, id: &str, text: &str) {
        self.html += &format!("<h2 id=\"{}\">{}</h2>\n", escape(id), escape(text));
    }

    /// Adds blocks of a report.
    pub fn blocks(&mut self, blocks: &[crate::Block]) {
        self.html += &blocks::html(blocks);
    }

    /// Adds a picture, with the blocks behind it in a closed part that a click opens.
    pub fn picture(&mut self, picture: Picture, behind: &[crate::Block]) {
        self.html += &figure(&picture);
        if !behind.is_empty() {
            self.details(&format!("Table: {}", picture.title), behind);
        }
        self.html += "</figure>\n";
        self.pictures.push(picture);
    }

    /// Adds blocks in a closed part that a click opens.
    pub fn details(&mut self, summary: &str, inside: &[crate::Block]) {
        self.closed(summary, |body| body.blocks(inside));
    }

    /// Adds a closed part that a click opens, around what `inside` adds.
    pub fn closed(&mut self, summary: &str, inside: impl FnOnce(&mut Self)) {
        self.html += &format!("<details><summary>{}</summary>\n", escape(summary));
        inside(self);
        self.html += "</details>\n";
    }

    /// Adds an element that other parts of the page link to, around what `inside` adds.
    pub fn target(&mut self, id: &str, class: &str, inside: impl FnOnce(&mut Self)) {
        self.html += &format!("<section id=\"{}\" class=\"{}\">\n", escape(id), escape(class));
        inside(self);
        self.html += "</section>\n";
    }

    /// Adds a paragraph with a link to a part of a picture. `targets`: its identifiers in the wide drawing and in the narrow one, of
    /// which the page shows one.
    pub fn link(&mut self, targets: &[String; 2], text: &str) {
        for (class, target) in ["wide", "narrow"].into_iter().zip(targets) {
            let (target, text) = (escape(target), escape(text));
            self.html += &format!("<p class=\"link {class}\"><a href=\"#{target}\">{text}</a></p>\n");
        }
    }

    /// Adds names and values as a list of terms, such as the environment.
    pub fn facts(&mut self, facts: &[(&str, String)]) {
        self.html += "<dl class=\"facts\">";
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            self.html += &format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        self.html += "</dl>\n";
    }

    /// Adds the machine and its settings; nothing for a document of an older version, which has none.
    pub(crate) fn environment(&mut self, environment: &BTreeMap<String, String>) {
        if !environment.is_empty() {
            self.facts(&environment::facts(environment));
        }
    }

    /// Adds a command in a box.
    pub fn command(&mut self, command: &str) {
        self.html += &format!("<pre class=\"command\"><code>{}</code></pre>\n", escape(command));
    }

    /// Returns the pictures of the page in their order.
    pub fn pictures(&self) -> &[Picture] {
        &self.pictures
    }
}

fn figure(picture: &Picture) -> String {
    let mut html = format!(
        "<figure id=\"{}\"><figcaption><h3>{}</h3><p>{}</p></figcaption>\n",
        escape(&picture.id),
        escape(&picture.title),
        escape(&picture.description)
    );
    if picture.legend.len() > 1 {
        html += "<ul class=\"legend\">";
        for (series, name) in &picture.legend {
            let (class, key) = (crate::svg::series_class(*series), key(*series));
            html += &format!("<li class=\"{class}\" data-series=\"{series}\">{key}{}</li>", escape(name));
        }
        html += "</ul>\n";
    }
    html + &format!(
        "<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>\n",
        picture.wide, picture.narrow
    )
}

/// Returns the sign of a series in the legend: the shape of its marks.
fn key(series: usize) -> String {
    let mut svg = crate::svg::Svg::new(14.0, 14.0);
    svg.mark("mark", series, [7.0, 7.0], "");
    let text = svg.finish("", "").replace("<title></title>", "");
    text.replace(" role=\"img\" aria-label=\". \"", " aria-hidden=\"true\"")
}

/// Returns the page with the title, the body and the sources, which [`extract`] gives back.
pub fn page(title: &str, body: &Body, sources: &[PageSource]) -> String {
    let policy = policy::text(STYLE, SCRIPT);
    let data: String =
        sources.iter().enumerate().map(|(number, source)| embedded::element(number, source)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"weir {version}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{}\
         <footer>\n<h2 id=\"data\">The data of this page</h2>\n\
         <p>The page contains the JSON that it was made from. <code>weir report --extract PAGE</code> gives it back.</p>\n\
         {data}<p class=\"made\">Made by weir {version}. This page loads nothing from elsewhere.</p>\n</footer>\n\
         </main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        body.html,
        title = escape(title),
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests;
