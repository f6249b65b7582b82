after() {
    printf 'one\ntwo\nthree\n' >lines
    "$1" || true
    xargs <lines
}
seen "glibc" "$(after "$PROGRAM")"
musl-gcc -O1 -static -o with_musl "../$VERSION.c"
seen "musl" "$(after ./with_musl)"
