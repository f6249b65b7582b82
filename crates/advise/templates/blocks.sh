#!/bin/sh
# Appends standard input to a file: @NAME@.
# Use: sh log.sh FILE < records
# Only one process may write the file. A kill can leave a part of a record at its end.
set -eu
file=${1:?usage: log.sh FILE}
touch "$file"
size=$(stat -L -c %s "$file")
tail=$((size % 4096)) # O_DIRECT writes begin at a sector, so the bytes after it are written again

# dd writes the last, shorter block without O_DIRECT.
{ tail -c "$tail" "$file" && cat || kill $$; } |
    dd of="$file" bs=@BUFFER@ iflag=fullblock oflag=direct,seek_bytes seek=$((size - tail)) conv=notrunc status=none
