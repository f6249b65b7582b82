# libc_tests.sh: the stdio tests of glibc and of musl. Read by run; see programs.sh.
# shellcheck shell=bash disable=SC2154,SC2034

# run_tests: runs the programs tests/* in new directories. Status 0 is pass and 77 skip. A test NAME of the folder libio may
# have its standard input in libio/NAME.input.
run_tests() {
    local program status folder input
    for program in tests/*; do
        folder=$(mktemp -d)
        input=$PWD/libio/${program##*:}.input
        [ -e "$input" ] || input=/dev/null
        (cd "$folder" && exec timeout -k 2 200 "$OLDPWD/$program" >out 2>&1 <"$input")
        status=$?
        rm -rf "$folder"
        case $status in 0) status=pass ;; 77) status=skip ;; *) status=fail ;; esac
        echo "$(basename "$program") $status"
    done
}

# A test that does not compile with glibc's headers outside of glibc's tree is left out on both sides: it needs
# what is not public.
package_glibc=glibc
build_glibc() {
    local file flags=(-w -O1 -std=gnu11 -D_GNU_SOURCE -Ipublic -Isupport -idirafter include)
    local path
    flags+=(-DTIMEOUTFACTOR=1 '-DOBJPFX="./"' -include limits.h)
    for path in SRCDIR OBJDIR OBJDIR_ELF_LDSO INSTDIR LIBDIR SLIBDIR BINDIR SBINDIR ROOTSBINDIR COMPLOCALEDIR SYSCONFDIR; do
        flags+=("-D${path}_PATH=\"/\"")
    done
    mkdir -p objects tests public locales
    # not the top folder, which has the C library's own headers
    ln -sfn ../support public/support
    ln -sfn ../test-skeleton.c public/test-skeleton.c
    for file in de_DE.UTF-8 de_DE.ISO-8859-1 en_US.UTF-8 ja_JP.EUC-JP; do # of wide characters
        I18NPATH=$PWD/localedata localedef -i "${file%%.*}" -f "${file#*.}" "locales/$file"
    done
    for file in support/*.c; do
        case $file in */test-* | */tst-* | *-container.c | */links-dso*) continue ;; esac
        $CC "${flags[@]}" -c "$file" -o "objects/$(basename "$file" .c).o" 2>/dev/null
    done
    rm -f support.a
    ar rcs support.a objects/*.o
    for file in {stdio-common,libio}/{tst,bug,test,scanf,tst_,xbug,tstdiomisc,tstgetln,tstscanf,errnobug}[-_0-9.a-z]*.c \
        wcsmbs/tst-fgetwc*.c; do
        case $file in *vtables* | *cleanup*) continue ;; esac
        [ -e "$file" ] || continue
        $CC "${flags[@]}" "$file" support.a -o "tests/${file%%/*}:$(basename "$file" .c)" -lm -pthread 2>errors ||
            echo "does not compile: $file: $(grep -m 1 'error\|undefined' errors)"
    done
    [ -n "$(ls tests)" ]
}
test_glibc() { LOCPATH=$PWD/locales run_tests; }

# There is no Debian package of libc-test: LIBC_TEST names a folder with its sources.
package_musl=-
unpack_musl() { [ -d "${LIBC_TEST:-/missing}/src/functional" ] && rm -rf "$1" && cp -r "$LIBC_TEST" "$1"; }
build_musl() {
    local file
    mkdir -p tests
    for file in src/common/*.c; do $CC -w -O1 -D_GNU_SOURCE -Isrc/common -c "$file" -o "${file%.c}.o"; done
    rm -f src/common/{runtest,mtest}.o
    for file in src/{functional,regression}/*.c; do
        grep -l 'stdio\.h\|wchar\.h' "$file" >/dev/null || continue
        $CC -w -O1 -D_GNU_SOURCE -Isrc/common "$file" src/common/*.o src/common/mtest.c -o "tests/$(basename "$file" .c)" \
            -lm -pthread -ldl -lcrypt -lutil -lrt || echo "does not compile: $file"
    done
    [ -n "$(ls tests)" ]
}
test_musl() { run_tests; }
