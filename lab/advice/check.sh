"$PROGRAM" >counts
read -r dropped normal random <counts
seen "cached of 256 pages, written, then DONTNEED" "$(counted "$dropped" page)"
seen "cached after one page was read, NORMAL" "$(counted "$normal" page)"
seen "cached after one page was read, RANDOM" "$(counted "$random" page)"
