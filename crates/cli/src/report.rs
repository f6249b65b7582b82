//! `weir report`: parses the command line, reads results, writes a page or the results inside of one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_bench::Error;
use weir_report::page::{self, Document, ExtractError, PageSource};

use crate::exit_status::{CommandFailure, FAILED, USAGE};
use crate::output_file::{OutputFile, is_stdout};
use crate::{page_file, picture_file};

/// Make one self-contained HTML page from results that --json wrote
///
/// The page has the verdict, pictures, tables and the circumstances of the run. It loads nothing from elsewhere, so it
/// can be sent as one file. The JSON is inside, and --extract gives it back.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Results of weir bench, bench compare, trace, run, lab, log check and copy
    #[arg(value_name = "FILE", required_unless_present = "extract")]
    files: Vec<PathBuf>,

    /// File to write; - is standard output [default: standard output with --extract]
    #[arg(long, short, value_name = "FILE", required_unless_present_any = ["extract", "svg", "png"])]
    output: Option<PathBuf>,

    /// Write one picture of the page as SVG; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "extract")]
    svg: Option<PathBuf>,

    /// Write one picture of the page as a PNG image; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "extract")]
    png: Option<PathBuf>,

    /// With --svg and --png, the picture, by its name; an unknown name lists all [default: the first]
    #[arg(long, value_name = "NAME")]
    picture: Option<String>,

    /// Show the page in a browser
    #[arg(long, conflicts_with = "extract", requires = "output")]
    open: bool,

    /// Write the JSON inside of this page instead of making one
    #[arg(long, value_name = "PAGE", conflicts_with = "files")]
    extract: Option<PathBuf>,

    /// With --extract, the number of the result in a page of several
    #[arg(long, value_name = "N", default_value_t = 1, requires = "extract", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
}

const EXAMPLES: &str = "\
Examples:
  weir bench copy --json copy.json; weir report copy.json -o copy.html
  weir trace --json t.json -- ./program; weir report t.json -o t.html --open
  weir bench compare --json c.json a.json b.json; weir report c.json -o c.html
  weir report copy.json --png sweep.png           its first picture as an image
  weir report copy.json --picture ratios --svg ratios.svg
  weir report --extract copy.html > copy.json     the JSON, byte for byte

weir bench, trace, run, lab, log check and copy also take --html FILE, which is
short for --json and weir report.

The page is written whole or not at all. It is readable without JavaScript.";

const ADVICE: &str = "give a file that 'weir bench --json', or --json of bench compare, trace, run, lab, log check or copy \
                      wrote";

/// Runs `weir report` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.extract {
        Some(page) => extract(args, page),
        None => make(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln_lossy!("weir: {}", error.text);
            ExitCode::from(error.status)
        }
    }
}

/// Returns the failure of the work itself.
fn failed(text: String) -> CommandFailure {
    CommandFailure { text, status: FAILED }
}

/// Opens a file of the command line. A name that cannot be written is wrong usage, as for all verbs.
fn open(path: &Path) -> Result<OutputFile, CommandFailure> {
    OutputFile::open(path).map_err(|text| CommandFailure { text, status: USAGE })
}

fn make(args: &Args) -> Result<(), CommandFailure> {
    let mut documents = Vec::new();
    let mut texts = Vec::new();
    for path in &args.files {
        let text = read(path, ADVICE).map_err(failed)?;
        let document: Document = page::parse(&text)
            .map_err(|error| failed(format!("{}: {}; {ADVICE}", path.display(), error.0)))?;
        documents.push(document);
        texts.push(text);
    }
    let stdout = [&args.output, &args.svg, &args.png].into_iter().flatten().filter(|path| is_stdout(path));
    if stdout.count() > 1 {
        return Err(failed("only one of --output, --svg and --png can use standard output (-)".into()));
    }
    let (title, body) = page::body(&documents);
    write_picture(args, &body)?;
    let Some(path) = args.output.as_deref() else { return Ok(()) };
    if args.open && is_stdout(path) {
        return Err(failed("--open needs a file: --output - goes to standard output".into()));
    }
    let output = open(path)?;
    let names: Vec<String> = args.files.iter().map(|path| name(path)).collect();
    let sources: Vec<PageSource> =
        names.iter().zip(&texts).map(|(name, text)| PageSource { name, text }).collect();
    output.write(&page::page(&title, &body, &sources)).map_err(failed)?;
    if args.open { page_file::show(path).map_err(failed) } else { Ok(()) }
}

/// Writes the picture of `--svg` and `--png`.
fn write_picture(args: &Args, body: &page::Body) -> Result<(), CommandFailure> {
    let id = args.picture.as_deref();
    if let Some(path) = &args.svg {
        let picture = picture_file::picture(body, id).map_err(failed)?;
        open(path)?.write(&page::picture_svg(picture)).map_err(failed)?;
    }
    if let Some(path) = &args.png {
        let image = picture_file::picture(body, id).and_then(picture_file::png).map_err(failed)?;
        open(path)?.write(&image).map_err(failed)?;
    }
    Ok(())
}

fn extract(args: &Args, path: &Path) -> Result<(), CommandFailure> {
    const PAGE: &str = "give a page that weir report wrote";
    let text = read(path, PAGE).map_err(failed)?;
    let problem = |problem: String| failed(format!("{}: {problem}", path.display()));
    let (_, source) = page::extract(&text, args.number as usize - 1).map_err(|error| match error {
        ExtractError::NoPage => problem(format!("not a page of weir report; {PAGE}")),
        ExtractError::NoSuchResult { results } => {
            problem(format!("it has {results} results: use --number 1 to --number {results}"))
        }
        ExtractError::Damaged => {
            problem("the page was changed or cut off; make it again from its JSON".into())
        }
    })?;
    open(args.output.as_deref().unwrap_or(Path::new("-")))?.write(&source).map_err(failed)
}

fn read(path: &Path, advice: &str) -> Result<String, String> {
    let bytes =
        std::fs::read(path).map_err(|error| Error::system("read", path, &error, advice).to_string())?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text; {advice}", path.display()))
}

/// Returns the name of a file without its folder: the reader of the page need not know the sender's folders.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
