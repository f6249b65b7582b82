# Uses its own file system on a loop device, so that the directory's file system does not matter.
truncate -s 64M image
mkfs.ext4 -q -F image
mkdir mounted
mount -o loop image mounted
trap 'umount mounted' EXIT
head -c 1000000 /dev/zero >mounted/file
sync -f mounted
"$PROGRAM" mounted/file >needs
read -r block memory <needs
seen "what the device takes (STATX_DIOALIGN)" "offset and length: multiples of $block bytes; address: of $memory"
got() { # WORD LENGTH OFFSET ALIGNMENT
    got_said=$("$PROGRAM" mounted/file "$2" "$3" "$4")
    case $got_said in
    "$2") echo "$1" ;;
    *) echo "$got_said" ;;
    esac
}
seen "one block at 0, address aligned" "$(got "one block" "$block" 0 "$memory")"
seen "half a block" "$(got "half a block" $((block / 2)) 0 "$memory")"
seen "one block at 1" "$(got "one block" "$block" 1 "$memory")"
seen "8 blocks at 16 blocks" "$(got "8 blocks" $((block * 8)) $((block * 16)) "$memory")"
seen "8 blocks at 1 block, address at half an alignment" "$(got "8 blocks" $((block * 8)) "$block" $((memory / 2)))"
