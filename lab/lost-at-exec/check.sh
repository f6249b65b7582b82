on_terminal "$PROGRAM"
seen "on a terminal" "$(lines terminal)"
traced exec "$PROGRAM" | cat >pipe
seen "through a pipe" "$(lines pipe)"
