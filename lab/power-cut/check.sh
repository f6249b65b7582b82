mkdir mounted
trap 'umount mounted 2>/dev/null || true' EXIT
cut() { # NAME OPTIONS MKFS…
    cut_name=$1 cut_options=$2
    shift 2
    rm -f image
    truncate -s 320M image
    "$@" image >/dev/null 2>&1
    mount -o "$cut_options" image mounted
    head -c 20000 /dev/zero | tr '\0' o >mounted/file
    sync -f mounted
    traced cut "$PROGRAM" mounted
    ../pull mounted
    umount mounted
    mount -o "$cut_options" image mounted
    case $(head -c 1 mounted/file 2>/dev/null | tr '\0' 0) in
    n) seen "$cut_name" "the new one" ;;
    o) seen "$cut_name" "the old one" ;;
    0) seen "$cut_name" "NULs" ;;
    *) if [ -e mounted/file ]; then seen "$cut_name" empty; else seen "$cut_name" none; fi ;;
    esac
    umount mounted
}
cut "ext4, noauto_da_alloc" loop,noauto_da_alloc mkfs.ext4 -q -F
cut ext4 loop mkfs.ext4 -q -F
cut xfs loop mkfs.xfs -q -f
