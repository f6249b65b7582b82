//! Cures as code, by language. One table a topic.

use crate::language::Language;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Gather small output.
    BufferOutput,
    /// Take input in blocks.
    BufferInput,
    /// Let bytes go before waiting, or ending.
    Flush,
    /// Let bytes go before fork(2) or exec(2).
    FlushBeforeFork,
    /// Look at errors of output.
    CheckErrors,
    /// Sync a file, then rename it.
    SyncRename,
}

/// The cure in a language, without a full stop.
pub(crate) fn code(language: Language, topic: Topic) -> String {
    match topic {
        Topic::BufferOutput => buffer_output(language),
        Topic::BufferInput => buffer_input(language),
        Topic::Flush => flush(language),
        Topic::FlushBeforeFork => flush_before_fork(language),
        Topic::CheckErrors => check_errors(language),
        Topic::SyncRename => sync_rename(language),
    }
    .into()
}

fn buffer_output(language: Language) -> &'static str {
    match language {
        Language::C => {
            "setvbuf(stream, NULL, _IOFBF, 65536) and no fflush in the loop; in place of write(2), fwrite \
                or putc"
        }
        Language::Python => "open(path, 'wb') without buffering=0, print(…) without flush=True",
        Language::Perl => "leave $| at 0 and use print, not syswrite",
        Language::Ruby => "$stdout.sync = false, write, not syswrite",
        Language::Shell => {
            "one process for the whole loop: awk '…' input > output, or done > output behind the loop"
        }
        Language::Awk => "leave out fflush() and system(\"\")",
        Language::Lua => "io.stdout:setvbuf('full', 65536), io.write, no flush() in the loop",
        Language::Node => "collect pieces in an array and write(pieces.join('')) once in 64 KiB",
        Language::Tcl => "fconfigure $channel -buffering full -buffersize 65536",
        Language::Java => "new BufferedOutputStream(out, 65536), PrintStream without autoflush",
        Language::Go => "w := bufio.NewWriterSize(out, 65536); defer w.Flush()",
        Language::Rust => "let mut out = BufWriter::with_capacity(65536, io::stdout().lock())",
    }
}

fn buffer_input(language: Language) -> &'static str {
    match language {
        Language::C => {
            "fread, getc or getline on a stream (setvbuf(stream, NULL, _IOFBF, 65536)), or read(2) into \
                64 KiB"
        }
        Language::Python => "open(path, 'rb') without buffering=0, and iterate, or read(65536)",
        Language::Perl => "read or <$handle>, not sysread of single characters",
        Language::Ruby => "each_line or read(65536), not sysread(1)",
        Language::Shell => {
            "read takes one byte a call, so that others can go on with the input: let awk or mapfile do \
                the loop"
        }
        Language::Awk => "read whole lines with getline",
        Language::Lua => "io.lines(), or read(65536), not read(1)",
        Language::Node => "fs.createReadStream(path, {highWaterMark: 65536})",
        Language::Tcl => "fconfigure $channel -buffersize 65536, then gets or read",
        Language::Java => "new BufferedInputStream(in, 65536)",
        Language::Go => "r := bufio.NewReaderSize(in, 65536)",
        Language::Rust => "BufReader::with_capacity(65536, input)",
    }
}

fn flush(language: Language) -> &'static str {
    match language {
        Language::C => {
            "fflush(stream) before waiting or ending, or setvbuf(stream, NULL, _IOLBF, 0) once at the start"
        }
        Language::Python => "print(…, flush=True), or sys.stdout.reconfigure(line_buffering=True) once",
        Language::Perl => "STDOUT->autoflush(1), that is $| = 1",
        Language::Ruby => "$stdout.sync = true, or $stdout.flush",
        Language::Shell => "nothing in the shell itself holds bytes: see the command that it runs",
        Language::Awk => "fflush() behind each print that must not wait",
        Language::Lua => "io.stdout:flush() before waiting, or io.stdout:setvbuf('line') once",
        Language::Node => "end() the stream and exit in its 'finish'",
        Language::Tcl => "flush $channel, or fconfigure $channel -buffering line",
        Language::Java => "flush(), or new PrintWriter(out, true)",
        Language::Go => "w.Flush() before waiting or os.Exit",
        Language::Rust => "out.flush()? before waiting or process::exit",
    }
}

fn flush_before_fork(language: Language) -> &'static str {
    match language {
        Language::C => {
            "fflush(NULL) before fork(), exec and system(), and _exit() in a child that does not exec"
        }
        Language::Python => "sys.stdout.flush() before os.fork(), os.exec*() and subprocess",
        Language::Perl => "STDOUT->flush before fork and exec",
        Language::Ruby => "$stdout.flush before fork and exec",
        Language::Lua => "io.stdout:flush() before os.execute and io.popen",
        _ => "flush every stream before fork and exec",
    }
}

fn check_errors(language: Language) -> &'static str {
    match language {
        Language::C => {
            "test what write(2) and fsync(2) return, and for streams: if (fflush(f) || ferror(f) || \
                fclose(f)) exit(1)"
        }
        Language::Python => "let OSError pass; close the file, or use with, so that the last error is raised",
        Language::Perl => "print {$f} … or die $!; close $f or die $!",
        Language::Ruby => "do not rescue SystemCallError; close the file before the end",
        Language::Shell => "set -e, or command || exit 1",
        Language::Java => "PrintStream hides errors: test checkError(), or write to the OutputStream itself",
        Language::Go => "if err := w.Flush(); err != nil; if err := f.Close(); err != nil",
        Language::Rust => "out.flush()? before the writer is dropped: drop ignores errors",
        Language::Node => "listen to 'error' of the stream and set process.exitCode = 1",
        Language::Lua => "assert(io.write(…)), assert(file:close())",
        Language::Tcl => "do not catch the error of puts and close",
        Language::Awk => "test what close(file) returns and exit 1",
    }
}

fn sync_rename(language: Language) -> &'static str {
    match language {
        Language::Python => {
            "f.flush(); os.fsync(f.fileno()); os.replace(temporary, path); os.fsync(directory)"
        }
        Language::Perl => "$f->flush; $f->sync; rename $temporary, $path",
        Language::Ruby => "f.fsync; File.rename(temporary, path)",
        Language::Shell => "sync FILE before mv, sync DIRECTORY after it",
        Language::Java => "channel.force(true); Files.move(temporary, path, ATOMIC_MOVE)",
        Language::Go => "f.Sync(); os.Rename(temporary, path); dir.Sync()",
        Language::Rust => "file.sync_all()?; fs::rename(temporary, path)?; File::open(dir)?.sync_all()?",
        Language::Node => "fs.fsyncSync(fd); fs.renameSync(temporary, path); fsync the directory",
        _ => "fflush(f); fsync(fileno(f)); rename(temporary, path); fsync(directory)",
    }
}
