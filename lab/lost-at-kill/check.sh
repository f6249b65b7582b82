traced kill "$PROGRAM" >file || true
seen "lines in the file" "$(lines file)"
