kinds=tmpfs,ext4,xfs,btrfs,ext2,ext3 size=20000000 budget=120s
[ -z "$QUICK" ] || { kinds=tmpfs,ext4 size=1000000 budget=3s; }
benched sizes copy --method syscall --records 1,64,4096,65536 --size $size --fs $kinds --budget $budget
benched sync write --method syscall --records 4096 --size 400000 --sync none,o_sync --fs $kinds --budget $budget
python3 - <<'P'
import json
def times(name, key):
    found = {}
    for row in json.load(open(name))["rows"]:
        found.setdefault(row["fs"], {})[row[key]] = row["elapsed_s"]["median"]
    return found
sizes, sync = times("sizes.json", "record_bytes"), times("sync.json", "sync")
well = [fs for fs, time in sizes.items() if time[1] > 2 * time[64]]
print(f"64 bytes are faster than 1, on how many\t{'all' if len(well) == len(sizes) else ' '.join(well)}")
dear = [fs for fs, time in sync.items() if time["o_sync"] > 2 * time["none"]]
order = [fs for fs in ["tmpfs", "ext2", "ext3", "ext4", "xfs", "btrfs"] if fs in dear]
print(f"a sync costs nothing on tmpfs, and 2 times and more on\t{' '.join(order) or 'none'}")
P
