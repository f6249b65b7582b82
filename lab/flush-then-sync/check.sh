"$PROGRAM" >layers || true
read -r program kernel <layers
seen "in the program's buffer after the sync" "$(counted "$program" byte)"
seen "in the page cache after the sync" "$(counted "$kernel" byte)"
seen "after a kill right behind the sync" "$(bytes data)"
