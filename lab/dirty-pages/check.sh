"$PROGRAM" >counts
read -r now later <counts
seen "dirty right after the write of 1 MiB" "$(counted "$now" page)"
seen "dirty a second later" "$(counted "$later" page)"
expire=$(cat /proc/sys/vm/dirty_expire_centisecs) every=$(cat /proc/sys/vm/dirty_writeback_centisecs)
seen "the kernel's timer" "writes pages older than $((expire / 100)) s, checks every $((every / 100)) s"
