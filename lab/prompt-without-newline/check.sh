# asked FILE: reports whether the prompt is there before the answer.
asked() { if grep -q 'name?' "$1"; then echo seen; else echo "not seen"; fi; }
(sleep 1; echo world) | script -qec "$PROGRAM" /dev/null >terminal &
(sleep 1; echo world) | "$PROGRAM" | cat >pipe &
sleep 0.6
seen "glibc, on a terminal" "$(asked terminal)"
seen "through a pipe" "$(asked pipe)"
wait
