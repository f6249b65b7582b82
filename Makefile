# The one front door. `make` lists the targets; the work is done by cargo and by scripts/.

PREFIX ?= /usr/local
DESTDIR ?=
WEIR := $(or $(CARGO_TARGET_DIR),target)/release/weir
export PREFIX DESTDIR WEIR
# Rust from rustup is found even by a shell that was never told about it.
export PATH := $(PATH):$(HOME)/.cargo/bin
MAKEFLAGS += --no-builtin-rules

help:
	@awk 'BEGIN { FS = ":.*## "; print "weir measures, explains and fixes I/O buffering" } \
	      /^##@ / { print "\n" substr($$0, 5) } \
	      /^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use
run: build ## build, then measure what buffering costs on this machine (about a minute)
	@$(WEIR) bench copy

# `weir run` stands before other commands: without shared libraries it starts in half the time.
STATIC = $(if $(filter /%,$(shell $(CC) -print-file-name=libc.a)),-C target-feature=+crt-static)

build: deps-run libweir ## the program, as target/release/weir, and the library
	@cargo rustc --release --locked -p weir-cli --bin weir -- $(STATIC)

libweir: deps-run ## the C library and its examples, in target/libweir
	@$(MAKE) --no-print-directory -j2 -C libweir all

install: $(WEIR) ## program, library, man pages, completions, documents; PREFIX=/usr/local DESTDIR=
	@scripts/install install

uninstall: ## take away what install put there
	@scripts/install uninstall

##@ Work on it
test: deps-test build ## every test; ends with the counts
	@scripts/test

differential: deps-run ## libweir beside glibc's stdio: two million random series of calls (8 minutes)
	@$(MAKE) --no-print-directory -j2 -C libweir differential

fuzz: deps-run ## libFuzzer on libweir's streams, with clang (3 minutes; FUZZ_SECONDS=)
	@$(MAKE) --no-print-directory -j2 -C libweir fuzz

lint: deps-lint ## formatting, clippy, C and shell warnings, the one-way rule, file lengths
	@scripts/lint

fmt: deps-lint ## format the Rust code
	@cargo fmt --all

bench-harness: deps-bench build ## what the harness itself costs, beside plain C and fio
	@cargo bench --quiet --locked -p weir-benches --bench harness

bench-lib: deps-bench libweir ## libweir beside glibc, musl, sfio, Rust, Go and loops by hand (4 minutes)
	@$(MAKE) --no-print-directory -C libweir/bench
	@cargo bench --quiet --locked -p weir-benches --bench lib

bench-trace: deps-bench build ## what weir trace costs, beside strace, perf trace and bpftrace (5 minutes, 10 with noise)
	@cargo bench --quiet --locked -p weir-benches --bench trace

bench-run: deps-bench build ## what weir run saves and costs, beside stdbuf (5 minutes)
	@cargo bench --quiet --locked -p weir-benches --bench run

clean: ## remove what was built
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

# An absent binary is built; a present one is installed as it is, also by a root without cargo.
$(WEIR):
	@$(MAKE) --no-print-directory build

.NOTPARALLEL:
.PHONY: help run build libweir install uninstall test differential fuzz lint fmt bench-harness bench-lib bench-trace bench-run \
	clean deps deps-run deps-test deps-lint deps-bench
