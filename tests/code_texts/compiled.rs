//! Programs of compiled languages around the code of fixes. All cases of a language are functions of one program, which
//! runs the one whose number is its argument. `@@` is the code.

use weir_diagnose::CodeFix::{
    BufferInput, BufferOutput, CheckErrors, Flush, FlushBeforeFork, ReadUnbuffered, SyncRename, WholeLines,
};
use weir_diagnose::StreamObject::{File, Pipe, Socket, Stderr, Stdin, Stdout};
use weir_model::SourceLanguage;

use super::TestLanguage;

pub const C: TestLanguage = TestLanguage {
    language: SourceLanguage::C,
    needs: &["gcc"],
    file: "prog.c",
    prelude: "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        #include <sys/wait.h>\n\
        static const char *path = \"out\", *temporary = \"tmp\", *directory = \".\";\n\
        static int other(void) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644); }\n",
    function: "static int case_#(void) {\n@@\nreturn 0; }\n",
    main: "int main(int n, char **v) { (void)n; (void)path; (void)temporary; (void)directory; (void)other;\n\
        switch (atoi(v[1])) {\n#CASES#} return 99; }\n",
    branch: "case #: return case_#();\n",
    build: &["gcc", "-Wall", "-Wextra", "-O1", "-o", "prog", "prog.c"],
    run: &["./prog"],
    bodies: &[
        (BufferOutput, Stdout, "@@ for (int i = 0; i < 3000; i++) printf(\"%08d\\n\", i);"),
        (BufferOutput, Stderr, "@@ for (int i = 0; i < 3000; i++) fprintf(stderr, \"%08d\\n\", i);"),
        (BufferOutput, File, "@@ for (int i = 0; i < 3000; i++) fprintf(f, \"%08d\\n\", i); fclose(f);"),
        (
            BufferOutput,
            Pipe,
            "int fd = other(); @@ for (int i = 0; i < 3000; i++) fprintf(f, \"%08d\\n\", i); fclose(f);",
        ),
        (BufferInput, Stdin, "@@ long n = 0; while (getc(stdin) != EOF) n++; printf(\"%ld\", n);"),
        (BufferInput, File, "path = \"in\"; @@ long n = 0; while (getc(f) != EOF) n++; printf(\"%ld\", n);"),
        (
            BufferInput,
            Pipe,
            "int fd = open(\"in\", O_RDONLY); @@ long n = 0; while (getc(f) != EOF) n++; printf(\"%ld\", n);",
        ),
        (Flush, Stdout, "printf(\"kept\"); @@ raise(SIGKILL);"),
        (Flush, File, "FILE *f = fopen(path, \"w\"); fputs(\"kept\", f); @@ raise(SIGKILL);"),
        (
            FlushBeforeFork,
            Stdout,
            "printf(\"kept \"); @@ if (fork() == 0) { printf(\"child \"); exit(0); } wait(NULL); printf(\"end\");",
        ),
        (CheckErrors, Stdout, "printf(\"x\"); @@"),
        (CheckErrors, File, "FILE *f = fopen(\"/dev/full\", \"w\"); fputs(\"x\", f); @@"),
        (SyncRename, File, "FILE *f = fopen(temporary, \"w\"); fputs(\"new\", f); @@"),
        (
            ReadUnbuffered,
            Stdin,
            "@@ char line[20]; if (!fgets(line, 20, stdin)) return 1; return system(\"cat\");",
        ),
        (WholeLines, Stdout, "@@ for (int i = 0; i < 5; i++) printf(\"%08d\\n\", i);"),
        (
            WholeLines,
            File,
            "FILE *f = fopen(path, \"a\"); @@ for (int i = 0; i < 5; i++) fprintf(f, \"%08d\\n\", i); fclose(f);",
        ),
    ],
};

pub const CPP: TestLanguage = TestLanguage {
    language: SourceLanguage::Cpp,
    needs: &["g++"],
    file: "prog.cpp",
    prelude: "#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n#include <fcntl.h>\n#include <fstream>\n\
        #include <iostream>\n#include <string>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static const char *path = \"out\", *temporary = \"tmp\", *directory = \".\";\n",
    function: "static int case_#() {\n@@\nreturn 0; }\n",
    main: "int main(int, char **v) { (void)path; (void)temporary; (void)directory;\n\
        switch (std::atoi(v[1])) {\n#CASES#} return 99; }\n",
    branch: "case #: return case_#();\n",
    build: &["g++", "-Wall", "-Wextra", "-O1", "-o", "prog", "prog.cpp"],
    run: &["./prog"],
    bodies: &[
        (
            BufferOutput,
            Stdout,
            "@@ char t[9]; for (int i = 0; i < 3000; i++) { std::snprintf(t, 9, \"%08d\", i); std::cout << t << '\\n'; }",
        ),
        (
            BufferOutput,
            Stderr,
            "@@ char t[9]; for (int i = 0; i < 3000; i++) { std::snprintf(t, 9, \"%08d\", i); std::clog << t << '\\n'; }",
        ),
        (
            BufferOutput,
            File,
            "@@ char t[9]; for (int i = 0; i < 3000; i++) { std::snprintf(t, 9, \"%08d\", i); out << t << '\\n'; }",
        ),
        (BufferInput, Stdin, "@@ long n = 0; char c; while (std::cin.get(c)) n++; std::cout << n;"),
        (BufferInput, File, "path = \"in\"; @@ long n = 0; char c; while (in.get(c)) n++; std::cout << n;"),
        (Flush, Stdout, "std::cout << \"kept\"; @@ std::raise(SIGKILL);"),
        (Flush, File, "std::ofstream out(path); out << \"kept\"; @@ std::raise(SIGKILL);"),
        (
            FlushBeforeFork,
            Stdout,
            "std::cout << \"kept \"; @@ if (fork() == 0) { std::cout << \"child \"; std::exit(0); } wait(nullptr); std::cout << \"end\";",
        ),
        (
            FlushBeforeFork,
            File,
            "std::ofstream out(path); out << \"kept \"; @@ if (fork() == 0) { out << \"child \"; out.close(); _exit(0); } wait(nullptr); out << \"end\";",
        ),
        (CheckErrors, Stdout, "std::cout << \"x\"; @@"),
        (CheckErrors, File, "std::ofstream out(\"/dev/full\"); out << \"x\"; @@"),
        (SyncRename, File, "std::ofstream out(temporary); out << \"new\"; @@"),
        (
            ReadUnbuffered,
            Stdin,
            "@@ std::string line; std::getline(std::cin, line); return std::system(\"cat\");",
        ),
        (
            WholeLines,
            Stdout,
            "@@ for (int i = 0; i < 5; i++) std::cout << \"0000000\" + std::to_string(i) + \"\\n\";",
        ),
        (
            WholeLines,
            File,
            "std::ofstream out(path, std::ios::app); @@ for (int i = 0; i < 5; i++) out << \"0000000\" + std::to_string(i) + \"\\n\";",
        ),
    ],
};

pub const GO: TestLanguage = TestLanguage {
    language: SourceLanguage::Go,
    needs: &["go"],
    file: "prog.go",
    prelude: "package main\nimport (\"bufio\"; \"fmt\"; \"io\"; \"log\"; \"os\"; \"os/exec\"; \"syscall\")\n\
        var path, temporary, directory = \"out\", \"tmp\", \".\"\n\
        func count(r *bufio.Reader) { n := 0; for { if _, err := r.ReadByte(); err == io.EOF { break }; n++ }; fmt.Print(n) }\n\
        func die() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }\n",
    function: "func case_#() {\n@@\n}\n",
    main: "func main() { _, _ = log.Print, exec.Command\nswitch os.Args[1] {\n#CASES#default: os.Exit(99) } }\n",
    branch: "case \"#\": case_#()\n",
    build: &["go", "build", "-o", "prog", "prog.go"],
    run: &["./prog"],
    bodies: &[
        (BufferOutput, Stdout, "@@\nfor i := 0; i < 3000; i++ { fmt.Fprintf(w, \"%08d\\n\", i) }"),
        (BufferOutput, Stderr, "@@\nfor i := 0; i < 3000; i++ { fmt.Fprintf(w, \"%08d\\n\", i) }"),
        (
            BufferOutput,
            File,
            "f, _ := os.Create(path)\n@@\nfor i := 0; i < 3000; i++ { fmt.Fprintf(w, \"%08d\\n\", i) }",
        ),
        (
            BufferOutput,
            Socket,
            "conn, _ := os.Create(path)\n@@\nfor i := 0; i < 3000; i++ { fmt.Fprintf(w, \"%08d\\n\", i) }",
        ),
        (BufferInput, Stdin, "@@\ncount(r)"),
        (BufferInput, File, "f, _ := os.Open(\"in\")\n@@\ncount(r)"),
        (BufferInput, Socket, "conn, _ := os.Open(\"in\")\n@@\ncount(r)"),
        (Flush, Stdout, "w := bufio.NewWriter(os.Stdout); fmt.Fprint(w, \"kept\")\n@@\ndie()"),
        (
            FlushBeforeFork,
            Stdout,
            "w := bufio.NewWriter(os.Stdout); fmt.Fprint(w, \"kept \")\n@@\nc := exec.Command(\"printf\", \"child \"); c.Stdout = os.Stdout; c.Run(); fmt.Fprint(w, \"end\"); w.Flush()",
        ),
        (CheckErrors, Stdout, "w := bufio.NewWriter(os.Stdout); fmt.Fprint(w, \"x\")\n@@"),
        (
            CheckErrors,
            File,
            "f, _ := os.OpenFile(\"/dev/full\", os.O_WRONLY, 0); w := bufio.NewWriter(f); fmt.Fprint(w, \"x\")\n@@",
        ),
        (
            SyncRename,
            File,
            "f, _ := os.Create(temporary); if _, err := f.Write([]byte(\"new\")); err != nil { os.Exit(1) }\n@@",
        ),
        (
            ReadUnbuffered,
            Stdin,
            "for i := 0; i < 10; i++ {\n@@\n_, _ = n, err }\nc := exec.Command(\"cat\"); c.Stdin, c.Stdout = os.Stdin, os.Stdout; c.Run()",
        ),
        (WholeLines, Stdout, "for i := 0; i < 5; i++ { line := fmt.Sprintf(\"%08d\\n\", i)\n@@\n}"),
        (
            WholeLines,
            File,
            "f, _ := os.Create(path)\nfor i := 0; i < 5; i++ { line := fmt.Sprintf(\"%08d\\n\", i)\n@@\n}",
        ),
    ],
};

pub const RUST: TestLanguage = TestLanguage {
    language: SourceLanguage::Rust,
    needs: &["rustc"],
    file: "prog.rs",
    prelude: "#![allow(unused_imports, dead_code, unreachable_code)]\n\
        use std::fs::{self, File}; use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};\n\
        use std::mem::ManuallyDrop; use std::os::fd::FromRawFd; use std::process::Command;\n\
        const PATH: &str = \"out\";\n\
        fn lines(out: &mut impl Write) -> io::Result<()> { for i in 0..3000 { write!(out, \"{i:08}\\n\")?; } out.flush() }\n\
        fn count(input: impl BufRead) { print!(\"{}\", input.bytes().count()); }\n",
    function: "fn case_#() -> io::Result<()> {\n@@\nOk(()) }\n",
    main: "fn main() -> io::Result<()> { match std::env::args().nth(1).as_deref() {\n#CASES#_ => std::process::exit(99) } }\n",
    branch: "Some(\"#\") => case_#(),\n",
    build: &["rustc", "--edition", "2021", "-o", "prog", "prog.rs"],
    run: &["./prog"],
    bodies: &[
        (BufferOutput, Stdout, "@@ lines(&mut out)?;"),
        (BufferOutput, Stderr, "@@ lines(&mut out)?;"),
        (BufferOutput, File, "let f = File::create(PATH)?; @@ lines(&mut out)?;"),
        (BufferOutput, Socket, "let stream = File::create(PATH)?; @@ lines(&mut out)?;"),
        (BufferInput, Stdin, "@@ input.fill_buf()?; count(input);"),
        (BufferInput, File, "let f = File::open(\"in\")?; @@ input.fill_buf()?; count(input);"),
        (BufferInput, Socket, "let stream = File::open(\"in\")?; @@ input.fill_buf()?; count(input);"),
        (Flush, Stdout, "print!(\"kept\"); @@ std::process::abort();"),
        (
            Flush,
            File,
            "let mut out = BufWriter::new(File::create(PATH)?); out.write_all(b\"kept\")?; @@ std::process::abort();",
        ),
        (
            FlushBeforeFork,
            Stdout,
            "print!(\"kept \"); @@ Command::new(\"printf\").arg(\"child \").status()?; print!(\"end\");",
        ),
        (CheckErrors, Stdout, "print!(\"x\"); @@"),
        (
            CheckErrors,
            File,
            "let mut out = BufWriter::new(File::create(\"/dev/full\")?); out.write_all(b\"x\")?; @@",
        ),
        (
            SyncRename,
            File,
            "let (temporary, path, directory) = (\"tmp\", PATH, \".\"); let mut f = File::create(temporary)?; f.write_all(b\"new\")?; @@",
        ),
        (ReadUnbuffered, Stdin, "for _ in 0..10 { @@ } Command::new(\"cat\").status()?;"),
        (WholeLines, Stdout, "for i in 0..5 { let line = format!(\"{i:08}\\n\"); @@ }"),
        (
            WholeLines,
            File,
            "let mut f = File::create(PATH)?; for i in 0..5 { let line = format!(\"{i:08}\\n\"); @@ }",
        ),
    ],
};

pub const JAVA: TestLanguage = TestLanguage {
    language: SourceLanguage::Java,
    needs: &["java", "javac"],
    file: "Prog.java",
    prelude: "import java.io.*; import java.nio.channels.FileChannel; import java.nio.file.*;\n\
        import static java.nio.file.StandardCopyOption.*; import static java.nio.file.StandardOpenOption.*;\n\
        class Prog {\n\
        static class Peer { OutputStream getOutputStream() throws IOException { return new FileOutputStream(\"out\"); }\n\
        InputStream getInputStream() throws IOException { return new FileInputStream(\"in\"); } }\n\
        static void lines(OutputStream out) throws IOException {\n\
        for (int i = 0; i < 3000; i++) out.write(String.format(\"%08d\\n\", i).getBytes()); out.flush(); }\n\
        static void count(InputStream in) throws IOException { int n = 0; while (in.read() >= 0) n++; System.out.print(n); }\n",
    function: "static void case_#() throws Exception {\n@@\n}\n",
    main: "public static void main(String[] v) throws Exception { switch (v[0]) {\n#CASES#default: System.exit(99); } } }\n",
    branch: "case \"#\": case_#(); break;\n",
    build: &["javac", "Prog.java"],
    run: &["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "Prog"],
    bodies: &[
        (BufferOutput, Stdout, "@@ lines(out);"),
        (BufferOutput, Stderr, "@@ lines(out);"),
        (BufferOutput, File, "String path = \"out\"; @@ lines(out);"),
        (BufferOutput, Socket, "Peer socket = new Peer(); @@ lines(out);"),
        (BufferInput, Stdin, "@@ count(in);"),
        (BufferInput, File, "String path = \"in\"; @@ count(in);"),
        (BufferInput, Socket, "Peer socket = new Peer(); @@ count(in);"),
        (Flush, Stdout, "System.out.print(\"kept\"); @@ Runtime.getRuntime().halt(137);"),
        (
            Flush,
            File,
            "Writer out = new BufferedWriter(new FileWriter(\"out\")); out.write(\"kept\"); @@ Runtime.getRuntime().halt(137);",
        ),
        (
            FlushBeforeFork,
            Stdout,
            "System.out.print(\"kept \"); @@ new ProcessBuilder(\"printf\", \"child \").inheritIO().start().waitFor(); System.out.print(\"end\");",
        ),
        (CheckErrors, Stdout, "System.out.print(\"x\"); @@"),
        (
            CheckErrors,
            File,
            "Writer out = new BufferedWriter(new FileWriter(\"/dev/full\")); out.write(\"x\"); @@",
        ),
        (
            SyncRename,
            File,
            "Path temporary = Path.of(\"tmp\"), path = Path.of(\"out\"), directory = Path.of(\".\"); FileChannel channel = FileChannel.open(temporary, CREATE, WRITE); channel.write(java.nio.ByteBuffer.wrap(\"new\".getBytes())); @@",
        ),
        (
            ReadUnbuffered,
            Stdin,
            "for (int i = 0; i < 10; i++) { @@ } new ProcessBuilder(\"cat\").inheritIO().start().waitFor();",
        ),
        (WholeLines, Stdout, "for (int i = 0; i < 5; i++) { String line = String.format(\"%08d\", i); @@ }"),
        (
            WholeLines,
            File,
            "String path = \"out\"; @@ for (int i = 0; i < 5; i++) out.write(String.format(\"%08d\\n\", i).getBytes());",
        ),
    ],
};
