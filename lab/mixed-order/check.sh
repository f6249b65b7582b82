on_terminal "$PROGRAM"
seen "on a terminal" "$(tr -d "\r" <terminal | xargs)"
traced order "$PROGRAM" >file
seen "in a file" "$(xargs <file)"
"$PROGRAM" bare >bare
seen "printf, then write, without newlines" "$(xargs <bare)"
