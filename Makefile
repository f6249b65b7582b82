# `make` lists the targets. They call cargo and scripts/.

PREFIX ?= /usr/local
DESTDIR ?=
WEIR := $(or $(CARGO_TARGET_DIR),target)/release/weir
export PREFIX DESTDIR WEIR
# Finds Rust from rustup also in a shell whose PATH does not have it.
export PATH := $(PATH):$(HOME)/.cargo/bin
MAKEFLAGS += --no-builtin-rules

help:
	@awk 'BEGIN { FS = ":.*## "; print "weir measures, explains and fixes I/O buffering" } \
	      /^##@ / { print "\n" substr($$0, 5) } \
	      /^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use
run: build ## build, then measure what buffering costs on this machine (about a minute)
	@$(WEIR) bench copy

# Statically linked, weir starts in half the time, which every command under `weir run` pays.
STATIC = $(if $(filter /%,$(shell $(CC) -print-file-name=libc.a)),-C target-feature=+crt-static)

build: deps-run libweir ## the program, as target/release/weir, and the library
	@cargo rustc --release --locked -p weir-cli --bin weir -- $(STATIC)

ARM := aarch64-unknown-linux-gnu
aarch64: deps-aarch64 ## the program for aarch64, as target/aarch64-unknown-linux-gnu/release/weir
	@LIBURING_DIR=$$(python3 tests/kernels/packages.py uring) && export LIBURING_DIR && \
	  CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
	  AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar \
	  cargo rustc --release --locked --target $(ARM) -p weir-cli --bin weir -- -C target-feature=+crt-static

libweir: deps-run ## the C library and its examples, in target/libweir
	@$(MAKE) --no-print-directory -j2 -C libweir all

install: $(WEIR) ## program, library, man pages, completions, documents; PREFIX=/usr/local DESTDIR=
	@scripts/install install

uninstall: ## remove what install installed
	@scripts/install uninstall

##@ Work on it
check: deps-lint ## formatting, clippy, unit tests, a smoke test of every verb (2 minutes)
	@scripts/check

test: deps-test build ## every kind of test once; ends with the counts (10 minutes)
	@scripts/test quick

test-all: deps-test build ## every test in full, with differential, fuzz and test-kernels (60 minutes)
	@status=0; scripts/test full || status=1; $(MAKE) --no-print-directory test-kernels || status=1; exit $$status

test-campaigns: deps-test build ## only the tests of which `make test` runs a subset, in full
	@scripts/test campaigns

otelcol: ## an OpenTelemetry collector for a test of weir log, as target/otel/otelcol, with go (10 minutes)
	@cd tests/otel && go build -o $(abspath $(or $(CARGO_TARGET_DIR),target))/otel/otelcol .

campaign: deps-test ## fuzz every parser, kill weir 300 times in each verb, cut the power 300 times (25 minutes)
	@scripts/campaign

test-copy-long: deps-test build ## power cuts at 300 points of weir copy --atomic, and of --resume (7 minutes, as root)
	@tests/copy/power-cuts

# ROUNDS: each test repeats so often what it does once or a few times in make test.
test-log-long: deps-test build ## weir log: 25 writers, kills, and kills with senders that resend, 1,000 times each (30 minutes; ROUNDS=)
	@WEIR_LOG_ROUNDS=$(or $(ROUNDS),1000) cargo test --quiet --locked -p weir-cli --test log -- \
		records_of_25_writers a_killed_collector senders_that_resend

test-kernels: deps-kernels build ## weir on Debian's kernels, in virtual machines; KERNELS="6.1 6.12" (15 minutes)
	@case " $(KERNELS) " in "  " | *arm64*) $(MAKE) --no-print-directory aarch64 || echo "test-kernels: no binary for aarch64" ;; esac
	@tests/kernels/run $(KERNELS)

test-qemu: deps-kernels aarch64 ## weir log --gpio on an emulated arm64 board, whose power key is pressed (5 minutes)
	@tests/qemu/run || [ $$? = 77 ]

campaign-libweir: deps-run ## libweir's tests of threads and of faults 1,000 times, with and without the thread sanitizer (2 hours; RUNS=)
	@$(MAKE) --no-print-directory -j2 -C libweir repeat
	@$(MAKE) --no-print-directory -j2 -C libweir repeat REPEATED=threads BUILD=$(or $(CARGO_TARGET_DIR),../target)/libweir-tsan CFLAGS='-O1 -g -fsanitize=thread'

differential: deps-run ## libweir compared with glibc's stdio on two million random series of calls (8 minutes)
	@$(MAKE) --no-print-directory -j2 -C libweir differential

fuzz: deps-run ## libFuzzer on libweir's streams, with clang (3 minutes; FUZZ_SECONDS=)
	@$(MAKE) --no-print-directory -j2 -C libweir fuzz

drop-in: deps-run libweir ## programs and tests of other projects, built with weir/stdio.h and with glibc's (20 minutes)
	@libweir/drop-in/run

bench-drop-in: deps-bench libweir ## the time of these programs, built with weir/stdio.h and with glibc's (5 minutes)
	@DROP_IN_BUILD_ONLY=1 libweir/drop-in/run bc gawk jq lua54 m4 mawk sed sqlite zlib
	@libweir/drop-in/bench

lint: deps-lint ## formatting, clippy, C and shell warnings, dependencies, file lengths, generated files
	@scripts/lint

generate: deps-run ## write the generated parts of docs/ again: schema enums, tables
	@WEIR_GENERATE=1 cargo test --quiet --locked --workspace --lib --bins generated_
	@scripts/architecture

fmt: deps-lint ## format the Rust code
	@cargo fmt --all
	@rustfmt --edition 2024 crates/diagnose/src/rules/*.rs crates/walkers/src/runtimes/*.rs crates/walkers/src/runtimes/*/*.rs

bench-harness: deps-bench build ## the cost of the harness, compared with plain C and fio
	@cargo bench --quiet --locked -p weir-benches --bench harness

bench-lib: deps-bench libweir ## libweir compared with glibc, musl, sfio, Rust, Go and hand-written loops (4 minutes)
	@$(MAKE) --no-print-directory -C libweir/bench
	@cargo bench --quiet --locked -p weir-benches --bench lib

bench-trace: deps-bench build ## the cost of weir trace, compared with strace, perf trace and bpftrace (5 to 10 minutes)
	@cargo bench --quiet --locked -p weir-benches --bench trace

bench-log: deps-bench build ## weir log compared with socat, nc, cat, s6-log, multilog and rsyslog (5 minutes)
	@cargo bench --quiet --locked -p weir-benches --bench log

bench-copy: deps-bench build ## weir copy compared with cp, dd, cat, rsync, mbuffer, xcp and cpz on four file systems (10 minutes)
	@cargo bench --quiet --locked -p weir-benches --bench copy

bench-run: deps-bench build ## gain and cost of weir run, compared with stdbuf (5 minutes)
	@cargo bench --quiet --locked -p weir-benches --bench run

# With real-time priority, where it is allowed: otherwise each sync and each time slice waits for other processes.
bench-advise: deps-bench build libweir ## the choices of weir advise beside each other, and the predicted times (8 minutes)
	@cargo bench --quiet --locked --no-run -p weir-benches --bench advise
	@$$(chrt -r 1 true 2>/dev/null && echo chrt -r 1) cargo bench --quiet --locked -p weir-benches --bench advise

clean: ## remove the build
	@$(MAKE) --no-print-directory -C libweir clean
	@cargo clean

##@ What it needs
deps: ## everything below
	@scripts/deps run test lint bench

deps-run: ## to build and run: C compiler, Rust, liburing
	@scripts/deps run

deps-test: ## to test: strace, tools for file systems
	@scripts/deps run test

deps-lint: ## to lint: rustfmt, clippy, shellcheck
	@scripts/deps run lint

deps-bench: ## to compare with others: fio, musl, strace, bpftrace
	@scripts/deps run bench

deps-aarch64: ## to build for aarch64: its C compiler and Rust's library
	@scripts/deps run aarch64

deps-kernels: ## for virtual machines: QEMU
	@scripts/deps run kernels

# Builds an absent binary. Installs an existing one unchanged, so that a root without cargo can install.
$(WEIR):
	@$(MAKE) --no-print-directory build

.NOTPARALLEL:
.PHONY: help run build libweir install uninstall check test test-all test-campaigns campaign test-copy-long test-log-long test-kernels test-qemu otelcol aarch64 campaign-libweir differential fuzz drop-in lint generate fmt \
	bench-harness bench-lib bench-drop-in bench-trace bench-run bench-log bench-advise bench-copy clean deps deps-run deps-test deps-lint deps-bench deps-aarch64 deps-kernels
