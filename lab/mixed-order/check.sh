on_terminal "$PROGRAM"
seen "on a terminal" "$(tr -d "\r" <terminal | xargs)"
# --every-call: without it and without root the tracer takes buffer snapshots only at intervals.
"$WEIR" trace --quiet --every-call --record record --json order.json -- "$PROGRAM" >file
seen "in a file" "$(xargs <file)"
"$PROGRAM" bare >bare
seen "printf, then write, without newlines" "$(xargs <bare)"
