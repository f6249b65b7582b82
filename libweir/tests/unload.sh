#!/bin/bash
# unload.sh BUILD: shared objects that use libweir, the static or the shared one, and that dlclose(3) unloads: the timer's
# thread, a stream that is still open, and a thread that ends later. A shared object that was written for <stdio.h> and is built
# with weir/compat is loaded and unloaded again and again.
set -uo pipefail
build=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")/unload" || exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

finish() {
    echo "unload: $passed passed, $failed failed, $skipped skipped"
    exit "$((failed > 0))"
}

# The programs need the C library that libweir was built with. A sanitizer's memory of a thread is not that of an unloaded object.
if ! readelf -d "$build/libweir.so" | grep -q 'NEEDED.*libc\.so\.6' || nm "$build/libweir.a" | grep -q '__[atu][a-z]*san_'; then
    echo "unload: skipped: libweir was not built for glibc, or with a sanitizer"
    skipped=1
    finish
fi
gcc -Wall -Wextra -Werror host.c -o "$work/host" -pthread -ldl || exit
flags=(-Wall -Wextra -Werror -O1 -shared -fPIC -I../../include plugin.c -pthread -lm)
gcc "${flags[@]}" "$build/libweir.a" -o "$work/static.so" || exit
gcc "${flags[@]}" "-L$build" -lweir "-Wl,-rpath,$build" -o "$work/shared.so" || exit
for object in static shared; do
    for function in close_delayed keep_delayed keep scan; do
        for how in close fork; do
            rm -f "$work/file"
            output=$("$work/host" "$work/$object.so" "$function" "$work/file" "$how" 2>&1)
            status=$?
            if [ "$status" = 0 ] && [ "$(cat "$work/file")" = 'a line' ]; then
                passed=$((passed + 1))
            else
                failed=$((failed + 1))
                echo "unload: FAILED: $object $function $how: status $status: $output, file: $(cat "$work/file")"
            fi
        done
    done
done

# Each time the object has streams of its own: standard output is flushed and standard input given back when it is unloaded.
gcc -Wall -Wextra -Werror again.c -o "$work/again" -ldl || exit
flags=(-Wall -Wextra -Werror -O1 -shared -fPIC -isystem ../../include/weir/compat drop_in.c -D_GNU_SOURCE -pthread -lm)
gcc "${flags[@]}" "$build/libweir.a" -o "$work/static.so" || exit
gcc "${flags[@]}" "-L$build" -lweir "-Wl,-rpath,$build" -o "$work/shared.so" || exit
seq 1000 1099 >"$work/in"
for object in static shared; do
    rm -f "$work/file"
    output=$("$work/again" "$work/$object.so" drop_in "$work/file" 20 <"$work/in" 2>&1)
    status=$?
    if [ "$status" = 0 ] && [ "$output" = "$(seq -f 'copied: %g' 1000 1019)" ] &&
        [ "$(sort "$work/file" | uniq -c | tr -s ' ')" = ' 20 a line' ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "unload: FAILED: $object, again and again: status $status: $output, file: $(cat "$work/file")"
    fi
done
finish
