# asked FILE: reports whether the prompt is there before the answer.
asked() { if grep -q 'name?' "$1"; then echo seen; else echo "not seen"; fi; }
(sleep 1; echo world) | script -qec "$PROGRAM" /dev/null >terminal &
(sleep 1; echo world) | "$PROGRAM" | cat >pipe &
if command -v musl-gcc >/dev/null; then
    musl-gcc -O1 -static -o with_musl "../$VERSION.c"
    (sleep 1; echo world) | script -qec ./with_musl /dev/null >musl &
fi
sleep 0.6
seen "glibc, on a terminal" "$(asked terminal)"
if [ -e with_musl ]; then seen "musl, on a terminal" "$(asked musl)"; else seen "musl, on a terminal" "not installed"; fi
seen "glibc, through a pipe" "$(asked pipe)"
wait
