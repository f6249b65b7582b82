# try WHAT COMMAND…: reports whether the line arrives through a pipe within a second.
try() {
    try_what=$1
    shift
    rm -f output
    if [ "$VERSION" = broken ]; then
        stdbuf -oL "$@" | cat >output &
    else
        "$WEIR" run --quiet --max-delay 100ms -- "$@" | cat >output &
    fi
    sleep 1.2
    if [ -s output ]; then seen "$try_what" seen; else seen "$try_what" stuck; fi
    wait
}
"${CC:-cc}" -O1 -static -o static ../line.c
try "a plain program" ../line
try "one that sets its own buffer" ../line own
try "a static one" ./static
try "a Python script" "$(python3 -c 'import sys; print(sys.executable)')" -c 'import time; print("line"); time.sleep(3)'
