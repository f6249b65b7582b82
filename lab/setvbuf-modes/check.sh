writes() {
    "$WEIR" trace --exact --quiet --json "$1.json" -- "$PROGRAM" "$1" >file
    counted "$(calls "$1" 1)" write
}
seen "none" "$(writes none)"
seen "line" "$(writes line)"
seen "full, 64 KiB and NULL" "$(writes full)"
seen "full, 64 KiB and a buffer" "$(writes own)"
