status=0
traced full "$PROGRAM" >/dev/full 2>said || status=$?
seen "exit status" "$status"
