kinds=tmpfs,ext4,xfs,btrfs,ext2,ext3 size=20000000 budget=120s
[ -z "$QUICK" ] || { kinds=tmpfs,ext4 size=1000000 budget=3s; }
benched sizes copy --method syscall --records 1,64,4096,65536 --size $size --fs $kinds --budget $budget
benched sync write --method syscall --records 4096 --size 400000 --sync none,o_sync --fs $kinds --budget $budget
seen "64 bytes are faster than 1, on how many" "$(figures sizes.json rows fs,record_bytes,elapsed_s.median | awk '
    { time[$1, $2] = $3; kinds[$1] }
    END { for (fs in kinds) if (time[fs, 1] > 2 * time[fs, 64]) well = well " " fs; else missing = 1
          print missing ? "only" well : "all" }')"
seen "a sync costs nothing on tmpfs, and 2 times and more on" "$(figures sync.json rows fs,sync,elapsed_s.median | awk '
    { time[$1, $2] = $3; kinds[$1] }
    END { for (fs in kinds) { if (time[fs, "o_sync"] > 2 * time[fs, "none"]) dear[fs]
                              if ((fs in dear) == (fs == "tmpfs")) other = other " " fs }
          print length(dear) == 0 ? "none" : other ? "but not as stated:" other : "every other" }')"
