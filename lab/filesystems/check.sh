kinds=tmpfs,ext4,xfs,btrfs,ext2,ext3 size=20000000 budget=120s
[ -z "$QUICK" ] || { kinds=tmpfs,ext4 size=1000000 budget=3s; }
benched sizes copy --method syscall --records 1,64,4096,65536 --size $size --fs $kinds --budget $budget
benched sync write --method syscall --records 4096 --size 400000 --sync none,o_sync --fs $kinds --budget $budget
seen "copies with 64 bytes faster than with 1 on" "$(figures sizes.json rows fs,record_bytes,elapsed_s.median | awk '
    { time[$1, $2] = $3; kinds[$1] }
    END { for (fs in kinds) if (time[fs, 1] > 2 * time[fs, 64]) well = well " " fs; else missing = 1
          print missing ? "only" well : "all" }')"
seen "O_SYNC at least doubles the time on" "$(figures sync.json rows fs,sync,elapsed_s.median | awk '
    { time[$1, $2] = $3; kinds[$1] }
    END { for (fs in kinds) { if (time[fs, "o_sync"] > 2 * time[fs, "none"]) dear[fs]
                              if ((fs in dear) == (fs == "tmpfs")) other = other " " fs }
          print length(dear) == 0 ? "none" : other ? "but not as stated:" other : "all but tmpfs" }')"
for fs in $(echo $kinds | tr , ' '); do
    # A file system that this machine cannot create has no rows with figures.
    [ -n "$(median sizes "fs=$fs record_bytes=64")" ] || continue
    copy=$(ratio sizes "fs=$fs record_bytes=1" "fs=$fs record_bytes=64")
    sync=$(ratio sync "fs=$fs sync=o_sync" "fs=$fs sync=none")
    seen "$fs" "64 bytes: $copy times faster; O_SYNC: $sync times the time"
done
