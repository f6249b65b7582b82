# text_programs.sh: sed, grep, gawk, dash, less and sqlite's shell. Read by run; see programs.sh.
# shellcheck shell=bash disable=SC2154,SC2034

# print_trs FOLDER…: the results that automake's `make check` leaves there. Tests that measure time are left out.
print_trs() {
    local file name
    find "$@" -name '*.trs' | sort | while read -r file; do
        name=${file%.trs}
        case $name in *perf* | *slow*) continue ;; esac
        awk -v name="${name//\//:}" '/^:global-test-result:/ { result = tolower($2) }
            END { sub(/^x/, "", result); print name, result ? result : "absent" }' "$file"
    done
}

# Their tests in gnulib-tests are those of gnulib's replacements for stdio, which look into the C library's FILE.
build_sed() { configure_and_make --disable-dependency-tracking --disable-nls; }
test_sed() {
    make -k check SUBDIRS=. >check.log 2>&1
    print_trs testsuite
}

build_grep() { configure_and_make --disable-dependency-tracking --disable-nls; }
test_grep() {
    make -k -C tests check >check.log 2>&1
    print_trs tests
}

# Without extensions: they are libraries that would each have their own copy of libweir. Debian has removed the manual.
build_gawk() {
    ./configure --disable-dependency-tracking --disable-nls --disable-extensions && make -C support && make gawk
}
test_gawk() {
    make -k -C test check >check.log 2>&1
    # A test prints its name; a failed one leaves _NAME.
    awk '/^[a-z][-a-z0-9_]*$/ { print $1 }' check.log | sort -u | while read -r name; do
        if [ -e "test/_$name" ]; then echo "$name fail"; else echo "$name pass"; fi
    done
}

# dash has no tests: those of busybox's ash are taken, and the digests of what both sides print are compared. The results
# of tests that sleep depend on the time.
also_dash=busybox
build_dash() { configure_and_make --disable-dependency-tracking && unpack busybox busybox; }
test_dash() {
    local file name shell=$PWD/src/dash output
    for file in busybox/shell/ash_test/ash-*/*.tests; do
        grep -q sleep "$file" && continue
        name=${file#*ash_test/ash-}
        output=$(cd "${file%/*}" && THIS_SH=$shell timeout 20 "$shell" "${file##*/}" </dev/null 2>&1 | tr -d '\0') || output+=" $?"
        # process numbers and the folder differ
        output=$(sed -e "s|$PWD|PWD|g" -e 's/[0-9]\{4,\}/N/g' <<<"$output" | md5sum | cut -c1-8)
        echo "${name%.tests} $output"
    done
}

# less has no tests: sessions on a terminal, of which the digest of the screen's bytes is compared.
build_less() { configure_and_make; }
test_less() { /usr/bin/python3 "$here/less_sessions" ./less; }

# The shell alone is compiled on both sides; testfixture, which runs the tests, is glibc's.
package_sqlite=sqlite3
build_sqlite() {
    local fixture=$work/glibc/sqlite/testfixture
    ./configure --disable-readline --disable-shared && make sqlite3.c shell.c &&
        $CC -O2 -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_DBPAGE_VTAB \
            -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_OFFSET_SQL_FUNC -DSQLITE_ENABLE_EXPLAIN_COMMENTS -I. shell.c sqlite3.c \
            -o sqlite3 -lm || return
    [ -x "$fixture" ] || make CFLAGS='-O1 -w' testfixture
}
test_sqlite() {
    local file
    for file in test/shell[0-9]*.test; do
        "$work/glibc/sqlite/testfixture" "$file" 2>&1 | tr '\r' '\n' |
            awk '/ Ok$/ { sub(/\.\.\..*/, "", $1); print $1, "pass" } /^! .* (expected|got)/ { print $2, "fail" }
                /\.\.\.$/ { sub(/\.\.\./, "", $1); print $1, "fail" }' | sort -u
    done
}
