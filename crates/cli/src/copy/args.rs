//! The command line of `weir copy`.

use std::ffi::OsString;
use std::path::PathBuf;

use weir_copier::{BackupNames, CopyMethod, CopySync, Existing, HoleSearch, Preserved, Tristate};
use weir_model::Size;

use super::option_order::OrderedOption;
use super::options;
use crate::output::{OutputOptions, PageFile};

/// Copy files, trees and streams, fast, with progress and a stated durability
///
/// weir copy takes cp's options, so that it can replace cp. It shares blocks where the file system can, keeps holes, copies
/// trees with several threads, and removes what it could not finish. A file named - is standard input or output; ./- is a
/// file of that name.
///
/// Nothing is durable by default, as with cp: --sync and --atomic change that. --summary says what a power cut would cost.
#[derive(clap::Args)]
#[command(
    override_usage = "weir copy [OPTIONS] SOURCE DEST\n       weir copy [OPTIONS] SOURCE... DIRECTORY\n       weir copy [OPTIONS] -t DIRECTORY SOURCE...",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES,
    infer_long_args = true,
    args_override_self = true
)]
#[command(mut_arg("json", |arg| arg.help("At the end, write the counts as JSON (schema weir-copy/1); - is standard output")))]
pub struct Args {
    /// The sources, and the file or directory that they go to
    #[arg(value_name = "FILE", value_parser = options::path_parser())]
    pub operands: Vec<PathBuf>,

    #[command(flatten, next_help_heading = "Durability")]
    pub durable: DurableOptions,

    #[command(flatten, next_help_heading = "Method")]
    pub how: MethodOptions,

    #[command(flatten, next_help_heading = "As cp")]
    pub cp: CpOptions,

    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputOptions<PageFile>,

    /// Print at the end how much was copied, by which methods and calls, and what a power cut would cost
    #[arg(long)]
    pub summary: bool,

    /// While it copies, write a line of JSON for each event (schema weir-copy-event/1); - is standard output
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// The options whose order decides, in their order
    #[arg(skip)]
    pub ordered: Vec<OrderedOption>,
}

/// When a copy is durable, and how it is checked.
#[derive(clap::Args)]
pub struct DurableOptions {
    /// Wait until the copy is durable: none, data (the bytes), or full (bytes, attributes and names)
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = options::parse_sync)]
    pub sync: CopySync,

    /// Write a temporary file, sync it, rename it, sync the directory: a crash leaves the old or the new file
    #[arg(long)]
    pub atomic: bool,

    /// Keep what is copied after a stop or an error, and continue it in the next run; implies --atomic
    #[arg(long)]
    pub resume: bool,

    /// Read each copy back from the device and compare it with its source
    #[arg(long)]
    pub verify: bool,
}

/// How bytes are moved.
#[derive(clap::Args)]
pub struct MethodOptions {
    /// auto, reflink, copy_file_range, splice, sendfile, io_uring, readwrite, mmap, direct or stdio
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = options::parse_method)]
    pub method: CopyMethod,

    /// The bytes of one call
    #[arg(long, value_name = "SIZE", value_parser = options::parse_buffer)]
    pub buffer: Option<Size>,

    /// Share blocks with the source: auto, always (or fail), never [default: auto]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always",
          value_parser = options::parse_tristate)]
    pub reflink: Option<Tristate>,

    /// Holes in the copy: auto (those of the source), always (for NUL bytes too), never [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = options::parse_tristate)]
    pub sparse: Option<Tristate>,

    /// Find the holes of the source by seek (SEEK_HOLE) or scan (all bytes are read)
    #[arg(long, value_name = "HOW", default_value = "seek", value_parser = options::parse_holes)]
    pub holes: HoleSearch,

    /// The page cache: keep, or drop (what the copy brings in is written and dropped after each part)
    #[arg(long, value_name = "WHAT", default_value = "keep", value_parser = options::parse_cache, action = clap::ArgAction::Set)]
    pub cache: bool,

    /// The most bytes per second, such as 50MB/s
    #[arg(long, value_name = "RATE", value_parser = options::parse_rate)]
    pub limit: Option<u64>,

    /// Use the device only when no other process does (ioprio_set)
    #[arg(long)]
    pub nice_io: bool,

    /// Read and write block devices and unusual character devices
    #[arg(long)]
    pub device: bool,

    /// Threads of a tree [default: one per processor, at most 8]
    #[arg(long, value_name = "NUMBER", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub threads: Option<usize>,
}

/// The options of cp.
#[derive(clap::Args)]
pub struct CpOptions {
    /// Copy trees and all attributes: -dR --preserve=all
    #[arg(short = 'a', long)]
    pub archive: bool,

    /// Copy attributes, not content
    #[arg(long)]
    pub attributes_only: bool,

    /// Keep a backup of each overwritten target: none, numbered, existing or simple
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_parser = options::parse_backup)]
    pub backup: Option<Option<Option<BackupNames>>>,

    /// As --backup
    #[arg(short = 'b')]
    pub backup_short: bool,

    /// Copy the content of special files when recursive
    #[arg(long)]
    pub copy_contents: bool,

    /// As --no-dereference --preserve=links
    #[arg(short = 'd')]
    pub no_dereference_links: bool,

    /// Say how each file was copied; implies -v
    #[arg(long)]
    pub debug: bool,

    /// Replace a target that cannot be opened
    #[arg(short = 'f', long)]
    pub force: bool,

    /// Ask before a target is overwritten
    #[arg(short = 'i', long, overrides_with = "no_clobber")]
    pub interactive: bool,

    /// Follow symbolic links that are operands
    #[arg(short = 'H')]
    pub dereference_operands: bool,

    /// Make hard links instead of copies
    #[arg(short = 'l', long)]
    pub link: bool,

    /// Follow all symbolic links of the source
    #[arg(short = 'L', long)]
    pub dereference: bool,

    /// Keep existing targets
    #[arg(short = 'n', long, overrides_with = "interactive")]
    pub no_clobber: bool,

    /// Copy symbolic links as links
    #[arg(short = 'P', long)]
    pub no_dereference: bool,

    /// As --preserve=mode,ownership,timestamps
    #[arg(short = 'p')]
    pub preserve_default: bool,

    /// Keep mode, ownership, timestamps, links, xattr, context or all [default: mode,ownership,timestamps]
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true,
          default_missing_value = "mode,ownership,timestamps", value_parser = options::parse_attributes)]
    pub preserve: Vec<Preserved>,

    /// Do not keep these attributes
    #[arg(long, value_name = "LIST", value_parser = options::parse_attributes)]
    pub no_preserve: Vec<Preserved>,

    /// Make the directories of the source's path in the target
    #[arg(long)]
    pub parents: bool,

    /// Copy directories and what they contain
    #[arg(short = 'r', visible_short_alias = 'R', long)]
    pub recursive: bool,

    /// Remove each existing target before it is opened
    #[arg(long)]
    pub remove_destination: bool,

    /// Make symbolic links instead of copies
    #[arg(short = 's', long)]
    pub symbolic_link: bool,

    /// Remove trailing slashes of sources
    #[arg(long)]
    pub strip_trailing_slashes: bool,

    /// Write into a directory that a symbolic link of the target's tree names
    #[arg(long)]
    pub keep_directory_symlink: bool,

    /// The suffix of backups [default: ~]
    #[arg(short = 'S', long, value_name = "SUFFIX")]
    pub suffix: Option<OsString>,

    /// Copy all sources into this directory
    #[arg(short = 't', long, value_name = "DIRECTORY", value_parser = options::path_parser())]
    pub target_directory: Option<PathBuf>,

    /// The last operand is the copy, also if it is a directory
    #[arg(short = 'T', long)]
    pub no_target_directory: bool,

    /// Overwrite a target only if it is older
    #[arg(short = 'u')]
    pub update_older: bool,

    /// Existing targets: all, none, none-fail or older (overwritten, kept, an error, or overwritten if older)
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "older",
          value_parser = options::parse_update)]
    pub update: Option<Existing>,

    /// Print each file that is copied; a change of the method goes to standard error
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// Stay on the file system of each source
    #[arg(short = 'x', long)]
    pub one_file_system: bool,

    /// Accepted for cp's sake: weir sets no SELinux context
    #[arg(short = 'Z', long, value_name = "CONTEXT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub context: Option<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  weir copy big.img /backup/                     share blocks or copy; a bar
  weir copy -a --sync full src /mnt/usb/         a tree, durable at the end
  weir copy --atomic new.conf /etc/app.conf      the old or the new file
  weir copy --resume disk.img /mnt/usb/          continues after a stop
  weir copy --cache drop huge.tar /archive/      leaves the page cache alone
  weir copy --verify --sync full photo.raw card/ reread from the device
  weir copy --method mmap --buffer 4K a b        an experiment of a textbook
  tar c src | weir copy --limit 20MB/s - x.tar   a stream
  alias cp='weir copy'

Exit status:
  0    every file was copied
  1    a file was not copied, or is not as durable as --sync asks;
       or wrong usage (as cp)
  130  stopped by Ctrl-C";
