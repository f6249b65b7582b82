script -qec "$PROGRAM" /dev/null >terminal
seen "on a terminal" "$(lines terminal)"
traced fork "$PROGRAM" >file
seen "in a file" "$(lines file)"
