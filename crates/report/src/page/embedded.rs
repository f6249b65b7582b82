//! The results inside of a page. All other text of a page has its `<` escaped, so that the element of a result cannot be
//! imitated by a text in the result.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::PageSource;
use crate::number::bytes_like;
use crate::svg::escape;

/// Results above this size are compressed: a reader does not scroll through more text.
const READABLE_BYTES: usize = 64 << 10;
/// Largest size of a result that [`extract`] decompresses: a page of a few bytes must not fill the memory.
const MAX_EXTRACTED: u64 = 1 << 30;

const BEGIN: &str = "<div class=\"weir-data\" ";
const PLAIN: (&str, &str) = ("<pre tabindex=\"0\">", "</pre>");
const PACKED: (&str, &str) = ("<script type=\"application/gzip;base64\">", "</script>");

/// Why a page does not give its results back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractError {
    /// The text is no page of `weir report`.
    NoPage,
    /// The page has fewer results than the number that was asked for.
    NoSuchResult {
        /// Number of results in the page.
        results: usize,
    },
    /// The page was changed or cut off.
    Damaged,
}

/// Returns the element of a result.
pub(super) fn element(number: usize, source: &PageSource) -> String {
    let sum: String = Sha256::digest(source.text).iter().map(|byte| format!("{byte:02x}")).collect();
    let readable = source.text.len() <= READABLE_BYTES;
    let ((open, close), content) = match readable {
        true => (PLAIN, text(source.text)),
        false => (PACKED, packed(source.text)),
    };
    let size = bytes_like(source.text.len() as u64, 1 << 20);
    let name = escape(source.name);
    let element = format!(
        "{BEGIN}id=\"data-{number}\" data-name=\"{name}\" data-sha256=\"{sum}\" data-form=\"{}\">{open}{content}{close}</div>",
        if readable { "text" } else { "gzip" }
    );
    format!("<details><summary>{name}, {size}</summary>\n{element}</details>\n")
}

/// Returns text whose every character [`untext`] gives back. Carriage returns and other control characters are numbers,
/// because browsers and editors change them.
fn text(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for letter in source.chars() {
        match letter {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '\n' | '\t' => text.push(letter),
            _ if letter.is_control() => text += &format!("&#{};", letter as u32),
            _ => text.push(letter),
        }
    }
    text
}

fn untext(text: &str) -> Option<String> {
    let mut source = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        source += &rest[..at];
        let end = at + rest[at..].find(';')?;
        source.push(match &rest[at + 1..end] {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            number => char::from_u32(number.strip_prefix('#')?.parse().ok()?)?,
        });
        rest = &rest[end + 1..];
    }
    Some(source + rest)
}

fn packed(source: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(source.as_bytes());
    STANDARD.encode(encoder.finish().unwrap_or_default())
}

fn unpacked(content: &str) -> Option<String> {
    let bytes = STANDARD.decode(content).ok()?;
    let mut source = String::new();
    GzDecoder::new(bytes.as_slice()).take(MAX_EXTRACTED).read_to_string(&mut source).ok()?;
    Some(source)
}

/// Returns the result with this number (the first is 0) and its file name, after a check of its sum.
pub fn extract(page: &str, number: usize) -> Result<(String, String), ExtractError> {
    let results = page.matches(BEGIN).count();
    if results == 0 {
        let is_page = page.contains("<meta name=\"generator\" content=\"weir ");
        return Err(if is_page { ExtractError::Damaged } else { ExtractError::NoPage });
    }
    if number >= results {
        return Err(ExtractError::NoSuchResult { results });
    }
    let element = page.split(BEGIN).nth(number + 1).unwrap_or_default();
    read(element).ok_or(ExtractError::Damaged)
}

fn read(element: &str) -> Option<(String, String)> {
    let (head, rest) = element.split_once('>')?;
    let attribute = |name: &str| {
        let (_, value) = head.split_once(&format!("{name}=\""))?;
        value.split_once('"').map(|(value, _)| value)
    };
    let between = |(open, close): (&str, &str)| {
        let (content, _) = rest.strip_prefix(open)?.split_once(close)?;
        Some(content.to_string())
    };
    let source = match attribute("data-form")? {
        "text" => untext(&between(PLAIN)?)?,
        _ => unpacked(&between(PACKED)?)?,
    };
    let sum: String = Sha256::digest(&source).iter().map(|byte| format!("{byte:02x}")).collect();
    let name = untext(&attribute("data-name")?.replace("&quot;", "\"").replace("&#39;", "'"))?;
    (attribute("data-sha256")? == sum).then_some((name, source))
}
