//! Fixes as code: for each kind of fix a function that returns the text for a language.

use crate::language::SourceLanguage;

/// A change to a program's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeFix {
    /// Write through a buffer instead of with many small calls.
    BufferOutput,
    /// Read blocks instead of a few bytes at a time.
    BufferInput,
    /// Flush before the program waits or ends.
    Flush,
    /// Flush before fork(2) and execve(2).
    FlushBeforeFork,
    /// Check the results of output calls.
    CheckErrors,
    /// Sync a file before its rename and the directory after it.
    SyncRename,
}

/// Returns `fix` as code or as a short instruction for `language`. The text has no full stop: a finding embeds it in a
/// sentence.
pub(crate) fn code_fix(language: SourceLanguage, fix: CodeFix) -> String {
    match fix {
        CodeFix::BufferOutput => buffer_output(language),
        CodeFix::BufferInput => buffer_input(language),
        CodeFix::Flush => flush(language),
        CodeFix::FlushBeforeFork => flush_before_fork(language),
        CodeFix::CheckErrors => check_errors(language),
        CodeFix::SyncRename => sync_rename(language),
    }
    .into()
}

fn buffer_output(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::C => {
            "setvbuf(stream, NULL, _IOFBF, 65536) and no fflush in the loop; fwrite or putc, not write(2)"
        }
        SourceLanguage::Python => "open(path, 'wb') without buffering=0, print(…) without flush=True",
        SourceLanguage::Perl => "leave $| at 0 and use print, not syswrite",
        SourceLanguage::Ruby => "$stdout.sync = false, write, not syswrite",
        SourceLanguage::Shell => {
            "one process for the whole loop: awk '…' input > output, or done > output after the loop"
        }
        SourceLanguage::Awk => "leave out fflush() and system(\"\")",
        SourceLanguage::Lua => "io.stdout:setvbuf('full', 65536), io.write, no flush() in the loop",
        SourceLanguage::Node => "collect pieces in an array and call write(pieces.join('')) once per 64 KiB",
        SourceLanguage::Tcl => "fconfigure $channel -buffering full -buffersize 65536",
        SourceLanguage::Java => "new BufferedOutputStream(out, 65536), PrintStream without autoflush",
        SourceLanguage::Go => "w := bufio.NewWriterSize(out, 65536); defer w.Flush()",
        SourceLanguage::Rust => "let mut out = BufWriter::with_capacity(65536, io::stdout().lock())",
    }
}

fn buffer_input(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::C => {
            "fread, getc or getline on a stream (setvbuf(stream, NULL, _IOFBF, 65536)), or read(2) into \
                64 KiB"
        }
        SourceLanguage::Python => "open(path, 'rb') without buffering=0, and iterate, or read(65536)",
        SourceLanguage::Perl => "read or <$handle>, not sysread of single characters",
        SourceLanguage::Ruby => "each_line or read(65536), not sysread(1)",
        SourceLanguage::Shell => {
            "read must read single bytes, because commands share the input: let awk or mapfile do \
                the loop"
        }
        SourceLanguage::Awk => "read whole lines with getline",
        SourceLanguage::Lua => "io.lines(), or read(65536), not read(1)",
        SourceLanguage::Node => "fs.createReadStream(path, {highWaterMark: 65536})",
        SourceLanguage::Tcl => "fconfigure $channel -buffersize 65536, then gets or read",
        SourceLanguage::Java => "new BufferedInputStream(in, 65536)",
        SourceLanguage::Go => "r := bufio.NewReaderSize(in, 65536)",
        SourceLanguage::Rust => "BufReader::with_capacity(65536, input)",
    }
}

fn flush(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::C => {
            "fflush(stream) before waiting or ending, or setvbuf(stream, NULL, _IOLBF, 0) once at the start"
        }
        SourceLanguage::Python => "print(…, flush=True), or sys.stdout.reconfigure(line_buffering=True) once",
        SourceLanguage::Perl => "STDOUT->autoflush(1), that is $| = 1",
        SourceLanguage::Ruby => "$stdout.sync = true, or $stdout.flush",
        SourceLanguage::Shell => "the shell itself has no output buffer: see the command that it runs",
        SourceLanguage::Awk => "fflush() after each print that must appear at once",
        SourceLanguage::Lua => "io.stdout:flush() before waiting, or io.stdout:setvbuf('line') once",
        SourceLanguage::Node => "end() the stream and exit in its 'finish' event",
        SourceLanguage::Tcl => "flush $channel, or fconfigure $channel -buffering line",
        SourceLanguage::Java => "flush(), or new PrintWriter(out, true)",
        SourceLanguage::Go => "w.Flush() before waiting or os.Exit",
        SourceLanguage::Rust => "out.flush()? before waiting or process::exit",
    }
}

fn flush_before_fork(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::C => {
            "fflush(NULL) before fork(), exec and system(), and _exit() in a child that does not exec"
        }
        SourceLanguage::Python => "sys.stdout.flush() before os.fork(), os.exec*() and subprocess",
        SourceLanguage::Perl => "STDOUT->flush before fork and exec",
        SourceLanguage::Ruby => "$stdout.flush before fork and exec",
        SourceLanguage::Lua => "io.stdout:flush() before os.execute and io.popen",
        _ => "flush every stream before fork and exec",
    }
}

fn check_errors(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::C => {
            "check the results of write(2) and fsync(2); for streams: if (fflush(f) || ferror(f) || \
                fclose(f)) exit(1)"
        }
        SourceLanguage::Python => {
            "do not catch OSError; close the file, or use with, so that the last error is raised"
        }
        SourceLanguage::Perl => "print {$f} … or die $!; close $f or die $!",
        SourceLanguage::Ruby => "do not rescue SystemCallError; close the file before the end",
        SourceLanguage::Shell => "set -e, or command || exit 1",
        SourceLanguage::Java => {
            "PrintStream hides errors: call checkError(), or write to the OutputStream itself"
        }
        SourceLanguage::Go => "if err := w.Flush(); err != nil; if err := f.Close(); err != nil",
        SourceLanguage::Rust => "out.flush()? before the writer is dropped: drop ignores errors",
        SourceLanguage::Node => "listen to the stream's 'error' event and set process.exitCode = 1",
        SourceLanguage::Lua => "assert(io.write(…)), assert(file:close())",
        SourceLanguage::Tcl => "do not catch the error of puts and close",
        SourceLanguage::Awk => "check the result of close(file) and exit 1",
    }
}

fn sync_rename(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::Python => {
            "f.flush(); os.fsync(f.fileno()); os.replace(temporary, path); os.fsync(directory)"
        }
        SourceLanguage::Perl => "$f->flush; $f->sync; rename $temporary, $path",
        SourceLanguage::Ruby => "f.fsync; File.rename(temporary, path)",
        SourceLanguage::Shell => "sync FILE before mv, sync DIRECTORY after it",
        SourceLanguage::Java => "channel.force(true); Files.move(temporary, path, ATOMIC_MOVE)",
        SourceLanguage::Go => "f.Sync(); os.Rename(temporary, path); dir.Sync()",
        SourceLanguage::Rust => {
            "file.sync_all()?; fs::rename(temporary, path)?; File::open(dir)?.sync_all()?"
        }
        SourceLanguage::Node => "fs.fsyncSync(fd); fs.renameSync(temporary, path); fsync the directory",
        _ => "fflush(f); fsync(fileno(f)); rename(temporary, path); fsync(directory)",
    }
}
