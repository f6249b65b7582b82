ulimit -c 0
traced end "$PROGRAM" _exit >by_exit
seen "after _exit" "$(lines by_exit)"
"$PROGRAM" abort >by_abort 2>/dev/null || true
seen "after abort" "$(lines by_abort)"
"$PROGRAM" fault >by_fault 2>/dev/null || true
seen "after a fault" "$(lines by_fault)"
