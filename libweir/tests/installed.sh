#!/bin/bash
# installed.sh BUILD: programs that are compiled as libweir(7) says, with the library installed: shared, and static although the
# shared library is there too.
set -uo pipefail
build=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")/.." || exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

expect() { # NAME COMMAND...
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "installed: $name: not as expected"
    fi
}

# The programs need the C library that libweir was built with, and no sanitizer.
if ! command -v pkg-config >/dev/null || ! readelf -d "$build/libweir.so" | grep -q 'NEEDED.*libc\.so\.6' ||
    nm "$build/libweir.a" | grep -q '__[atu][a-z]*san_'; then
    echo "installed: skipped: no pkg-config, or libweir was not built for glibc, or with a sanitizer"
    echo "installed: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
make --no-print-directory --quiet install BUILD="$build" PREFIX="$work/usr" LIBDIR="$work/usr/lib" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig
printf '#include <weir.h>\nint main(void) { return weir_put_str(weir_stdout(), "text") < 0 || weir_flush(weir_stdout()) < 0; }\n' >"$work/program.c"
needs() { readelf -d "$work/$1" | grep -c 'NEEDED.*libweir'; }
# The commands of the manual page, with names of this test.
while read -r line; do
    name=shared
    case $line in *libweir.a*) name=static ;; esac
    command=${line#.Dl }
    command=${command//-o program program.c/-o $work/$name $work/program.c}
    expect "$name: $command" eval "$command"
done < <(grep '^\.Dl cc -o program ' man/libweir.7)
expect "the shared library" [ "$(needs shared)" = 1 ]
expect "the static library" [ "$(needs static)" = 0 ]
expect "the output of the static program" [ "$("$work/static")" = text ]
echo "installed: $passed passed, $failed failed, 0 skipped"
exit "$((failed > 0))"
