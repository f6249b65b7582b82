on_terminal "$PROGRAM"
seen "on a terminal" "$(tr -d "\r" <terminal | xargs)"
# Each call is looked at: without root the tracer else looks into buffers now and then only.
"$WEIR" trace --quiet --every-call --record record --json order.json -- "$PROGRAM" >file
seen "in a file" "$(xargs <file)"
"$PROGRAM" bare >bare
seen "printf, then write, without newlines" "$(xargs <bare)"
