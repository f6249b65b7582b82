#!/bin/bash
# stdio_headers.sh BUILD: weir/stdio.h in C++ programs and in C of several standards, with the static and the shared
# library; and code that must not compile.
set -uo pipefail
build=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")" || exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "stdio_headers: FAILED: $*"
}
skip() {
    skipped=$((skipped + 1))
    echo "stdio_headers: skipped: $*"
}
finish() {
    echo "stdio_headers: $passed passed, $failed failed, $skipped skipped"
    exit "$((failed > 0))"
}

# The programs need the C library and the sanitizers that libweir was built with.
if ! readelf -d "$build/libweir.so" | grep -q 'NEEDED.*libc\.so\.6'; then
    skip "libweir was not built for glibc"
    finish
fi
flags=()
for sanitizer in address thread undefined; do
    case $sanitizer in address) mark=__asan_init ;; thread) mark=__tsan_init ;; *) mark=__ubsan_handle ;; esac
    nm "$build/libweir.a" 2>/dev/null | grep -q "$mark" && flags+=("-fsanitize=$sanitizer")
done

works() { # COMPILER LANGUAGE OPTION…: succeeds if the compiler makes programs of the language with the sanitizers
    local compiler=$1 language=$2
    shift 2
    command -v "$compiler" >/dev/null &&
        echo 'int main(void) { return 0; }' | "$compiler" "${flags[@]}" "$@" -x "$language" -o "$work/works" - 2>/dev/null
}

expected=$'first line 7\nsecond\nx'
for compiler in g++ clang++; do
    for standard in c++11 c++17 gnu++20; do
        for library in "$build/libweir.a" "-L$build -lweir -Wl,-rpath,$build"; do
            if ! works "$compiler" c++; then
                skip "no working $compiler"
                continue
            fi
            # shellcheck disable=SC2086
            "$compiler" "-std=$standard" -Wall -Wextra -Werror "${flags[@]}" -I../include stdio/cplusplus.cpp -o "$work/c++" \
                $library -pthread -lm || {
                fail "$compiler -std=$standard"
                continue
            }
            if out=$("$work/c++" "$work/file") && [ "$out" = $'C++ stdout\nputs' ] && [ "$(cat "$work/file")" = "$expected" ]; then
                pass
            else
                fail "$compiler -std=$standard: the program printed: $out"
            fi
        done
    done
done

# In strict C, without POSIX, a program may define getline.
for compiler in gcc clang; do
    for standard in c89 gnu89 c11 c17 gnu11 gnu17; do
        if ! works "$compiler" c; then
            skip "no working $compiler"
            continue
        fi
        own=""
        case $standard in c*) own='static int getline(char *to, int room) { return fgets(to, room, stdin) != NULL; }' ;; esac
        printf '#include <weir/stdio.h>\n%s\nint main(void) { char a[9]; (void)a; return %s ? putchar(10) != 10 || fclose(stdout) : 1; }\n' \
            "$own" "$([ -n "$own" ] && echo 'getline(a, 9)' || echo '1')" >"$work/own.c"
        if "$compiler" "-std=$standard" -Wall -Wextra -Werror "${flags[@]}" -I../include "$work/own.c" -o "$work/own" \
            "$build/libweir.a" -pthread -lm && "$work/own" <<<line >/dev/null; then # no pipe: some of the programs do not read it
            pass
        else
            fail "$compiler -std=$standard with the program's own getline"
        fi
    done
done

# An inline call of no bytes on a stream without a buffer for writing passes no NULL to memcpy(3).
cat >"$work/empty.c" <<'END'
#include <weir/stdio.h>
int main(void)
{
    FILE *f = fopen("/dev/null", "r");
    return !f || fputs("", f) < 0 || fclose(f) != 0;
}
END
for compiler in gcc g++ clang clang++; do
    case $compiler in *++) language=c++ ;; *) language=c ;; esac
    undefined=(-fsanitize=undefined -fno-sanitize-recover=undefined)
    if ! works "$compiler" "$language" "${undefined[@]}"; then
        skip "no undefined behaviour sanitizer of $compiler"
    elif "$compiler" -x "$language" -O2 "${flags[@]}" "${undefined[@]}" -I../include "$work/empty.c" -x none -o "$work/empty" \
        "$build/libweir.a" -pthread -lm && "$work/empty"; then
        pass
    else
        fail "$compiler: an inline call of no bytes"
    fi
done

# Code that would crash is a compile error; the same file without the line compiles.
refused() { # WHAT CODE
    for compiler in gcc g++ clang clang++; do
        case $compiler in *++) language=c++ ;; *) language=c ;; esac
        command -v "$compiler" >/dev/null || continue
        code='#include <weir/stdio.h>\nint main(void) { FILE *f = stdout; (void)f; %s return 0; }\n'
        # shellcheck disable=SC2059
        printf "$code" "" | "$compiler" -x "$language" -I../include -O1 -Wall -Werror -c -o /dev/null - ||
            fail "$compiler: $1: the file without the line does not compile"
        # shellcheck disable=SC2059
        if printf "$code" "$2" | "$compiler" -x "$language" -I../include -O1 -Wall -Werror -c -o /dev/null - 2>"$work/errors"; then
            fail "$compiler: $1 compiles"
        else
            pass
        fi
        grep -q "$3" "$work/errors" || fail "$compiler: $1: the error does not contain $3: $(cat "$work/errors")"
    done
}
# Wide functions work in each of them, also in a function that is never used (gawk has one) and without optimization, and
# in C with <wchar.h> alone.
cat >"$work/wide.c" <<'END'
#include <wchar.h>
#include <stdio.h>
#include <stdlib.h>
static void __attribute__((unused)) unused(FILE *f, const wchar_t *s) { putwc(*s, f); }
int main(void)
{
    wchar_t *w;
    size_t n;
    FILE *f = open_wmemstream(&w, &n);
    if (!f || fputws(L"wide", f) < 0 || fwide(f, 0) <= 0 || fclose(f) != 0 || n != 4)
        return 1;
    free(w);
    return getwchar() != L'x' || ungetwc(L'x', stdin) != L'x' || getwc_unlocked(stdin) != L'x' || wprintf(L"%d", 1) != 1 ||
           putwchar(L'\n') != L'\n';
}
END
sed '/stdio.h/d; s/^int main.*/int main(void) { return putwchar(L'"'w'"') != L'"'w'"' || wprintf(L"%d\\n", 1) != 2; }/; /^static/d; /^int main/q' \
    "$work/wide.c" >"$work/alone.c"
cp "$work/wide.c" "$work/wide.cc"
wide() { # FILE INPUT EXPECTED COMPILER OPTION…
    local file=$1 input=$2 expected=$3
    shift 3
    if "$@" "${flags[@]}" -D_GNU_SOURCE -Wall -Wextra -Werror -isystem ../include/weir/compat "$work/$file" -o "$work/wide" \
        "$build/libweir.a" -pthread -lm && [ "$("$work/wide" <<<"$input")" = "$expected" ] &&
        nm "$work/wide" | grep 'weir_stdio_[a-z]*wprintf' >/dev/null; then
        pass
    else
        fail "$*: wide functions, $file"
    fi
}
for option in -O0 -O2; do
    for compiler in gcc clang; do
        works "$compiler" c || continue
        wide wide.c x 1 "$compiler" "$option"
        wide alone.c x w1 "$compiler" "$option"
    done
    for compiler in g++ clang++; do
        works "$compiler" c++ || continue
        wide wide.cc x 1 "$compiler" "$option"
    done
done
refused "a wrong conversion" 'printf("%%s", 1);' format

# ---- weir/compat: a compiler option instead of a changed program ----

compat=(-isystem ../include/weir/compat)

# Other headers may come before and after <stdio.h>; their calls that would mix up the two kinds of FILE are refused.
for order in before after; do
    others='#include <pwd.h>\n#include <grp.h>\n#include <mntent.h>\n#include <malloc.h>\n#include <shadow.h>\n'
    glibc='#include <argp.h>\n#include <printf.h>\n#include <obstack.h>\n#include <error.h>\n'
    if [ $order = before ]; then code="$others$glibc#include <stdio.h>\n"; else code="#include <stdio.h>\n$others$glibc"; fi
    code+='int main(void) { FILE *f = stdout; FILE **p = &stdout; %s return fputs("compat\\n", *p) == 1 && f ? 0 : 1; }\n'
    for compiler in gcc clang; do
        works "$compiler" c || continue
        # shellcheck disable=SC2059
        printf "$code" "" >"$work/compat.c"
        if "$compiler" -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror "${flags[@]}" "${compat[@]}" "$work/compat.c" -o "$work/compat" \
            "$build/libweir.a" -pthread -lm && [ "$("$work/compat")" = compat ] &&
            nm "$work/compat" | grep weir_stdio >/dev/null; then
            pass
        else
            fail "$compiler: weir/compat with other headers $order <stdio.h>"
        fi
        for call in 'getmntent(f);' 'setmntent("/etc/mtab", "r");' 'fgetpwent(f);' 'putgrent(0, f);' 'fgetspent(f);' \
            'register_printf_function(0, 0, 0);' 'malloc_info(0, f);' 'argp_help(0, f, 0, 0);' \
            'struct argp_state s; (void)s.out_stream;'; do
            # shellcheck disable=SC2059
            printf "$code" "$call" >"$work/compat.c"
            if "$compiler" -w -D_GNU_SOURCE "${compat[@]}" -c "$work/compat.c" -o "$work/compat.o" 2>"$work/errors"; then
                fail "$compiler: weir/compat: $call compiles"
            elif grep -q "C library\|no member named" "$work/errors"; then
                pass
            else
                fail "$compiler: weir/compat: $call: $(cat "$work/errors")"
            fi
        done
    done
done

for compiler in g++ clang++; do
    works "$compiler" c++ || continue
    for first in string cstdio iostream pwd.h; do
        printf '#include <%s>\n#include <string>\n#include <fstream>\n#include <cstdio>\n%s\n' "$first" \
            'int main() { std::FILE *f = stdout; std::string s = "compat"; std::fprintf(f, "%s\n", s.c_str()); std::putchar(10); }' \
            >"$work/compat.cc"
        if "$compiler" -Wall -Wextra -Werror "${flags[@]}" "${compat[@]}" "$work/compat.cc" -o "$work/compat" "$build/libweir.a" \
            -pthread -lm && [ "$("$work/compat")" = compat ] && nm "$work/compat" | grep weir_stdio_fprintf >/dev/null; then
            pass
        else
            fail "$compiler: weir/compat with <$first> first"
        fi
    done
done
finish
