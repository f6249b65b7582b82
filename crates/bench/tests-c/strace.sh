#!/bin/sh
# strace.sh SAMPLE: compares the call counts of a few samples with those of strace
set -eu
sample=$1
command -v strace >/dev/null || { echo "strace SKIP not installed"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
head -c 100001 /dev/urandom >"$folder/in"
failed=0

# check METHOD RECORD CALL…: compares calls on the two files and on the ring
check() {
    method=$1 record=$2
    shift 2
    rm -f "$folder/out"
    strace -f -y -o "$folder/trace" "$sample" "$method" 0 100001 "$record" "$folder/out" "$folder/in" \
        >"$folder/figures"
    for call; do
        counted=$(sed -n "s/^calls\.$call //p" "$folder/figures")
        seen=$(grep -c -E "^[0-9]+ +$call\([0-9]+<($folder/(in|out)|anon_inode:\[io_uring\])>" "$folder/trace" || :)
        if [ "${counted:-0}" = "$seen" ]; then
            echo "strace $method $record $call $seen ok"
        else
            echo "strace $method $record $call FAILED: counted ${counted:-0}, strace saw $seen"
            failed=1
        fi
    done
}

for record in 64 4096 65536; do
    check syscall "$record" read write
    check pread-pwrite "$record" pread64 pwrite64
    check vector "$record" readv writev
    check stdio "$record" read write
    check io_uring "$record" io_uring_enter
    check sendfile "$record" sendfile
    check copy_file_range "$record" copy_file_range
    check mmap "$record" ftruncate
done
check stdio-char 1 read write
exit $failed
