# programs.sh: how each program is built and tested. Read by run; the functions run in the program's sources, with the
# compiler in $CC. build_NAME builds; test_NAME prints one line `TEST RESULT` for each test. A result is pass, fail, skip
# or the digest of an output, if the program's suite has no expected ones. package_NAME is Debian's name.
# shellcheck shell=bash disable=SC2034

export FORCE_UNSAFE_CONFIGURE=1 # the configure scripts of GNU refuse to be run by root

# configure_and_make [ARGUMENT…]: into $log
configure_and_make() {
    ./configure "$@" && make
}

# whole TEST COMMAND…: a suite with one result.
whole() {
    local test=$1
    shift
    if "$@" >"$test.log" 2>&1; then echo "$test pass"; else echo "$test fail"; fi
}

build_mawk() { configure_and_make; }
test_mawk() {
    (cd test && whole mawktest ./mawktest)
    (cd test && whole fpe_test ./fpe_test)
}

build_bzip2() { make CC="$CC" bzip2 bzip2recover; }
test_bzip2() { whole test make CC="$CC" test; }

build_zlib() { CC="$CC" ./configure --static && make; }
test_zlib() { whole test make test; }

build_ed() { configure_and_make CC="$CC"; }
test_ed() { whole check make check; }

# Without autoconf and oniguruma: the parser, the lexer and the tests are in the archive.
build_jq() {
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' src/builtin.jq >src/builtin.inc
    echo '#define JQ_VERSION "1.6"' >src/version.h
    # shellcheck disable=SC2046,SC2010
    $CC -O2 -w -D_GNU_SOURCE -DIEEE_8087 -DHAVE_MEMMEM -DUSE_DECNUM=0 -DHAVE_TM_TM_GMT_OFF -DHAVE_GMTIME_R -DHAVE_STRPTIME \
        -DHAVE_TIMEGM -DHAVE_ISATTY -DHAVE_SETLOCALE -DHAVE_ATEXIT -I. -Isrc -o jq $(ls src/*.c | grep -v 'inject_errors\|jq_test\.tmp') \
        -lm -lpthread
}
test_jq() {
    # "Testing 'PROGRAM' at line number N", and "*** Expected …" before the next one if it fails
    ./jq --run-tests tests/jq.test 2>/dev/null |
        awk '/^Testing / { if (name) print name, result; name = "line-" $NF; result = "pass" }
            /^\*\*\*/ { result = "fail" } END { if (name) print name, result }'
}

build_bc() { ./configure --without-readline --without-libedit && make -C lib && make -C bc && make -C dc; }
test_bc() {
    local file output
    for file in Test/*.b; do
        if output=$(timeout 200 bc/bc -l "$file" </dev/null 2>&1); then
            echo "$(basename "$file") $(md5sum <<<"$output" | cut -c1-8)"
        else
            echo "$(basename "$file") skip"
        fi
    done
}

build_m4() { configure_and_make; }
test_m4() {
    make -C checks check >checks.log 2>&1
    awk '/^Checking / { name = $2; sub(/.*\//, "", name); print name, "pass" }' checks.log |
        awk -v failed="$(sed -n 's/^Failed checks were://p; s/^  *\([0-9].*\):.*/\1/p' checks.log | tr '\n' ' ')" '
            { result = index(" " failed " ", " " $1) ? "fail" : $2; print $1, result }'
    if grep -q 'All checks successful' checks.log; then echo "all pass"; else echo "all fail"; fi
}

build_lua54() { make -C src CC="$CC -std=gnu99" MYCFLAGS=-DLUA_USE_POSIX lua; }
package_lua54=lua5.4
test_lua54() {
    cat >io.lua <<'LUA'
local name = os.tmpname()
local f = assert(io.open(name, "w+"))
for i = 1, 5000 do f:write(i, " ", i / 7, " ", string.format("%5.2f %q %-8s|", i / 3, i .. "x", "s"), "\n") end
f:seek("set", 0)
local lines, sum = 0, 0
for line in f:lines() do lines = lines + 1; sum = sum + #line end
print(lines, sum, f:seek(), f:seek("end"), f:seek("set", 100), f:read(10, "n", "l", 0))
f:setvbuf("no"); f:write("unbuffered"); f:seek("cur", -4); print(f:read("a") ~= nil)
f:close()
for l in io.lines(name, "L") do if #l > 60 then io.write(l) break end end
local p = io.popen("printf 'a\nb'; exit 3"); print(p:read("a")); print(p:close())
print(io.open("/missing/file")); print(pcall(f.read, f)); io.stderr:write("err\n"); os.remove(name)
io.output():write(1e15, " ", 0.1, " ", 1e100, " ", -0.0, " ", 2^53, "\n")
LUA
    echo "io $(src/lua io.lua 2>&1 | sed 's/(0x[0-9a-f]*)//' | md5sum | cut -c1-8)"
}
