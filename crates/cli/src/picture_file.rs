//! `weir report --svg` and `--png`: one picture of a page as a file.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use weir_report::page::{Body, picture_svg};
use weir_report::svg::Picture;

/// Pixels of the image for each pixel of the page: sharp on screens with small pixels and in print.
const SCALE: f32 = 2.0;
/// Fonts in the order of preference. Widths in pictures are estimated for the first ones.
const FONTS: [&str; 5] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto", "Arial"];
const CODE_FONTS: [&str; 4] = ["DejaVu Sans Mono", "Noto Sans Mono", "Liberation Mono", "Courier New"];

/// Returns the picture with this identifier, or the first one. Fails with the identifiers that the page has.
pub fn picture<'a>(body: &'a Body, id: Option<&str>) -> Result<&'a Picture, String> {
    let pictures = body.pictures();
    let chosen = match id {
        Some(id) => pictures.iter().find(|picture| picture.id == id),
        None => pictures.first(),
    };
    let ids: Vec<&str> = pictures.iter().map(|picture| picture.id.as_str()).collect();
    chosen.ok_or_else(|| match (id, ids.is_empty()) {
        (Some(id), false) => format!("--picture: there is no '{id}'; use one of: {}", ids.join(", ")),
        _ => "the result has no picture".into(),
    })
}

/// Returns the picture as a PNG image. Fails if no font is installed.
pub fn png(picture: &Picture) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    choose_fonts(options.fontdb_mut())?;
    let failed = |error: String| format!("--png: {error}");
    let tree = Tree::from_str(&picture_svg(picture), &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| failed("no size".into()))?;
    let pixmap = Pixmap::new(size.width(), size.height());
    let mut pixmap = pixmap.ok_or_else(|| failed("the picture is too large".into()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| failed(error.to_string()))
}

/// Loads the fonts of this machine, and chooses one for text and one for code.
fn choose_fonts(fonts: &mut Database) -> Result<(), String> {
    fonts.load_system_fonts();
    let installed =
        |name: &&&str| fonts.faces().any(|face| face.families.iter().any(|family| family.0 == **name));
    let other = fonts.faces().find_map(|face| face.families.first()).map(|family| family.0.clone());
    let Some(other) = other else {
        return Err("--png: no font is installed (package fonts-dejavu-core); --svg needs none".into());
    };
    let text = FONTS.iter().find(installed).map_or(other, |name| name.to_string());
    let code = CODE_FONTS.iter().find(installed).map_or(text.clone(), |name| name.to_string());
    fonts.set_sans_serif_family(&text);
    fonts.set_serif_family(&text);
    fonts.set_monospace_family(code);
    Ok(())
}
