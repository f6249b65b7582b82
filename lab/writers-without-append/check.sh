"$PROGRAM"
seen "records" "$(lines file)"
seen "records that are not whole" "$(counted "$(grep -cvE '^writer [1-8] record 1[0-9]{2}$' file || true)" line)"
