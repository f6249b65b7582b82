on_terminal "$PROGRAM" &
traced wait "$PROGRAM" >file &
sleep 1
seen "on a terminal, after a moment" "$(lines terminal)"
seen "in a file, after a moment" "$(lines file)"
wait
seen "in a file, at the end" "$(lines file)"
