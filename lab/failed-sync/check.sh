mkdir room mounted
mount -t tmpfs -o size=4M tmpfs room
undo() {
    umount mounted 2>/dev/null || true
    umount room
}
trap undo EXIT
truncate -s 16M room/image
mkfs.ext4 -q -F -b 4096 -O ^has_journal room/image
mount -o loop room/image mounted
head -c 1M /dev/zero | tr '\0' y >mounted/file
sync -f mounted
umount mounted
# Punches holes into the image where the data is, and fills the space that could back them.
at=$(grep -obUam1 yyyyyyyy room/image | head -n 1 | cut -d: -f1)
fallocate --punch-hole --offset "$at" --length 1MiB room/image
head -c 8M /dev/zero >room/no-more-room 2>/dev/null || true
mount -o loop room/image mounted
"$PROGRAM" mounted/file >said
seen "first fsync" "$(sed -n 1p said)"
seen "second fsync" "$(sed -n 2p said)"
rm room/no-more-room
umount mounted
mount -o loop room/image mounted
seen "bytes of the data on the disk" "$(counted "$(tr -dc x <mounted/file | wc -c)" byte)"
