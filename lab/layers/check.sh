"$PROGRAM" >looks
fs=$(stat -f -c %T .)

# of STEP FIELD: prints a field of a step: 2 bytes in the buffer, 3 bytes in the file, 4 dirty pages, 5 written sectors.
of() { awk -v step="$1" -v field="$2" '$1 == step { print $field }' looks; }
in_memory() {
    if [ "$fs" = tmpfs ]; then echo "no device: tmpfs"
    elif [ "$(of "$1" 4)" = -1 ]; then echo "unknown: no cachestat"
    else counted "$(of "$1" 4)" page; fi
}
device() {
    before=$(of "$1" 5) after=$(of "$2" 5)
    if [ "$fs" = tmpfs ]; then echo "no device: tmpfs"
    elif [ "$after" = -1 ]; then echo "unknown: no statistics"
    else echo "$(grouped $((after - before))) sectors"; fi
}
every=$(cat /proc/sys/vm/dirty_writeback_centisecs)
timer=$((($(cat /proc/sys/vm/dirty_expire_centisecs) + every) / 100))

seen "after putc, in the program's buffer" "$(counted "$(of putc 2)" byte)"
seen "after putc, in the file" "$(counted "$(of putc 3)" byte)"
seen "after fflush, in the file" "$(counted "$(of fflush 3)" byte)"
seen "after fflush, in memory only" "$(in_memory fflush)"
seen "after fsync, in memory only" "$(in_memory fsync)"
seen "written during fsync, by all programs" "$(device fflush fsync)"
seen "automatically at a newline, line mode" "$(counted "$(of newline 3)" byte)"
seen "automatically when 4,102 bytes are put" "$(counted "$(of full 3)" byte)"
seen "automatically at exit" "$(counted "$(of exit 3)" byte)"
seen "O_SYNC, in memory only after write" "$(in_memory O_SYNC)"
seen "automatically by the kernel, after up to" "$timer s"

# The picture: a line for each layer, and between them the calls that pass the bytes on.
seen picture "program   buffer: $(of putc 2) B after putc, lost by a kill"
seen picture "   |      by hand: fflush    automatic: 4,096 B full, newline in line mode, exit"
seen picture "   v"
seen picture "kernel    page cache: $(of fflush 3) B after fflush, dirty: $(in_memory fflush)"
seen picture "   |      by hand: fsync     automatic: O_SYNC, the timer (up to $timer s)"
seen picture "   v"
seen picture "device    during fsync: $(device fflush fsync) written, by all programs; dirty: $(in_memory fsync)"
