//! The pictures of fixed results (tests/browser/results) in a real browser, compared by pixels with pictures that a person
//! has looked at (tests/browser/pictures). Texts are hidden, because their shape depends on the installed fonts.
//!
//! `WEIR_DRAW_PICTURES=1` writes the pictures in place of comparing them: look at each before you commit it.

mod browser;
mod common;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use browser::Browser;
use common::{disk_dir, run, skip, text};
use resvg::tiny_skia::Pixmap;
use serde_json::{Value, json};

const RESULTS: [&str; 5] = ["bench", "trace", "lab", "check", "copy"];
/// Hides texts, and returns the name and the box of each picture.
const PICTURES: &str = "(() => { \
    document.querySelectorAll('svg text').forEach((text) => (text.style.visibility = 'hidden')); \
    return [...document.querySelectorAll('figure svg')].map((drawing) => [drawing, drawing.getBoundingClientRect()]) \
        .filter(([drawing, box]) => box.width > 0 && box.height > 0 && !drawing.closest('.legend')) \
        .map(([drawing, box]) => ({id: drawing.closest('figure').id, x: box.x + scrollX, y: box.y + scrollY, \
                                   width: box.width, height: box.height})); })()";
/// Edge of the squares whose mean colours are compared, in pixels: edges of marks differ between versions of a browser.
const SQUARE: usize = 4;
/// The most by which the mean of a colour differs in an equal square, of 255.
const DIFFERENCE: u64 = 24;
/// The most squares of 1,000 that differ in equal pictures.
const DIFFERENT: usize = 2;

/// A picture: three bytes a pixel.
#[derive(Clone)]
struct Pixels {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Reads a PNG file.
    fn read(path: &Path) -> Self {
        let picture = Pixmap::load_png(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let bytes = picture.data().chunks_exact(4).flat_map(|pixel| pixel[..3].to_vec()).collect();
        Self { width: picture.width() as usize, height: picture.height() as usize, bytes }
    }

    /// Returns the mean colour of the square in this column and row of squares.
    fn mean(&self, column: usize, row: usize) -> [u64; 3] {
        let mut sum = [0; 3];
        let mut pixels = 0;
        for y in (row * SQUARE..(row + 1) * SQUARE).take_while(|&y| y < self.height) {
            for x in (column * SQUARE..(column + 1) * SQUARE).take_while(|&x| x < self.width) {
                let at = (y * self.width + x) * 3;
                sum.iter_mut().zip(&self.bytes[at..at + 3]).for_each(|(sum, byte)| *sum += u64::from(*byte));
                pixels += 1;
            }
        }
        sum.map(|sum| sum / pixels)
    }

    /// Returns what differs from `expected`; `None` for equal pictures.
    fn difference(&self, expected: &Self) -> Option<String> {
        if (self.width, self.height) != (expected.width, expected.height) {
            let [seen, expected] = [self, expected].map(|one| format!("{} x {}", one.width, one.height));
            return Some(format!("{seen} pixels, expected {expected}"));
        }
        let [columns, rows] = [self.width, self.height].map(|edge| edge.div_ceil(SQUARE));
        let squares = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        let differs = |&(column, row): &(usize, usize)| {
            let pairs = self.mean(column, row).into_iter().zip(expected.mean(column, row));
            pairs.into_iter().any(|(seen, expected)| seen.abs_diff(expected) > DIFFERENCE)
        };
        let different: Vec<_> = squares.filter(differs).collect();
        (different.len() * 1000 > columns * rows * DIFFERENT).then(|| {
            let (column, row) = different[0];
            let (x, y) = (column * SQUARE, row * SQUARE);
            format!("{} of {} squares differ, first at {x}, {y}", different.len(), columns * rows)
        })
    }
}

fn source(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser").join(folder)
}

/// Draws each picture of a page to a file of `dir`, at half its size. Returns the files' names.
fn draw(browser: &mut Browser, page: &Path, dir: &Path) -> Vec<String> {
    let problems = browser.open(page, 1280, false);
    assert!(problems.is_empty(), "{}: {problems:?}", page.display());
    let pictures = browser.evaluate(PICTURES);
    let pictures = pictures.as_array().expect("a list");
    let draw_one = |(number, picture): (usize, &Value)| {
        let part = |name: &str| picture[name].as_f64().expect("a number").round();
        let clip = json!({"x": part("x"), "y": part("y"), "width": part("width"), "height": part("height"), "scale": 0.5});
        let shot = browser.call("Page.captureScreenshot", json!({"format": "png", "clip": clip}));
        let bytes = STANDARD.decode(shot["data"].as_str().expect("data")).expect("base64");
        let stem = page.file_stem().expect("a name").to_string_lossy();
        let name = format!("{stem}-{number}-{}.png", picture["id"].as_str().expect("a name"));
        fs::write(dir.join(&name), bytes).expect("written");
        name
    };
    pictures.iter().enumerate().map(draw_one).collect()
}

#[test]
fn pictures_are_as_they_were_looked_at() {
    let Some(program) = browser::installed() else {
        return skip("report_pictures", "chromium is not installed");
    };
    let dir = disk_dir();
    let expected = source("pictures");
    let redraws = std::env::var_os("WEIR_DRAW_PICTURES").is_some();
    let drawn = if redraws { expected.clone() } else { dir.path().join("pictures") };
    fs::create_dir_all(&drawn).expect("a directory");
    let mut browser = Browser::start(program, &dir.path().join("profile"));
    let mut names = Vec::new();
    for result in RESULTS {
        let json = source("results").join(format!("{result}.json"));
        let page = dir.path().join(format!("{result}.html"));
        let output =
            run(dir.path(), &["report", json.to_str().expect("UTF-8"), "-o", page.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{result}: {}", text(&output.stderr));
        names.extend(draw(&mut browser, &page, &drawn));
    }
    if redraws {
        return;
    }
    let mut known: Vec<String> = fs::read_dir(&expected)
        .expect("the pictures")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    known.sort();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(sorted, known, "each picture has been looked at, and none is left over");
    let compare = |name: &String| {
        let [seen, expected] = [&drawn, &expected].map(|folder| Pixels::read(&folder.join(name)));
        seen.difference(&expected).map(|what| format!("{name}: {what}"))
    };
    let problems: Vec<String> = names.iter().filter_map(compare).collect();
    assert!(
        problems.is_empty(),
        "{}\nIf the change is meant: WEIR_DRAW_PICTURES=1 cargo test -p weir-cli --test report_pictures, and look at them.",
        problems.join("\n")
    );
}

#[test]
fn a_moved_bar_is_a_difference_and_a_shade_is_none() {
    let white = Pixels { width: 100, height: 60, bytes: vec![255; 100 * 60 * 3] };
    let with_bar = |from: usize, to: usize| {
        let mut pixels = white.clone();
        for x in from..to {
            for y in 20..40 {
                let at = (y * pixels.width + x) * 3;
                pixels.bytes[at..at + 3].copy_from_slice(&[0, 80, 160]);
            }
        }
        pixels
    };
    let bar = with_bar(10, 50);
    assert_eq!(bar.difference(&bar), None);
    let moved = with_bar(10, 53).difference(&bar);
    assert_eq!(moved.as_deref(), Some("10 of 375 squares differ, first at 48, 20"));
    let mut shaded = bar.clone();
    shaded.bytes.iter_mut().for_each(|byte| *byte = byte.saturating_sub(9));
    assert_eq!(shaded.difference(&bar), None);
    let wider = Pixels { width: 50, height: 120, ..white.clone() };
    assert_eq!(wider.difference(&white).as_deref(), Some("50 x 120 pixels, expected 100 x 60"));
}
