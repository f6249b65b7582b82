/* directory.bpf.c: emits the path of the working directory. weir cannot read it in /proc once the process has ended. */
#include "directory.h"
#include "ring_buffer.h"

/* Bounds the walk to the root: components and mount points of a path. */
#define MAX_STEPS 128

struct directory_walk {
    struct dentry *at;
    struct vfsmount *mounted;
    struct directory_event *event;
#ifdef BEFORE_6_1
    u32 *bytes; /* in the scratch space, because the verifier would follow each of its ranges */
#else
    u32 bytes;
#endif
    u32 complete;
};
#ifdef BEFORE_6_1
#define BYTES(walk) (*(volatile u32 *)(walk)->bytes)
#else
#define BYTES(walk) ((walk)->bytes)
#endif

/* Adds the last component of the path at `at`, or crosses the mount point there. */
static long walk_component(u32 i, void *context)
{
    struct directory_walk *w = context;
    /* Variables, because BPF_CORE_READ(w->at, ...) would relocate struct directory_walk too. */
    struct dentry *at = w->at;
    struct vfsmount *mounted = w->mounted;
    u32 bytes = BYTES(w);
    if (at == BPF_CORE_READ(mounted, mnt_root)) {
        u64 offset = bpf_core_field_offset(((struct mount *)0)->mnt);
        struct mount *mount = (void *)mounted - offset, *parent = BPF_CORE_READ(mount, mnt_parent);
        w->complete = parent == mount;
        if (!parent || parent == mount)
            return 1;
        w->at = BPF_CORE_READ(mount, mnt_mountpoint);
        w->mounted = (void *)parent + offset;
        return 0;
    }
    struct dentry *parent = BPF_CORE_READ(at, d_parent);
    if (!parent || parent == at || bytes > DIRECTORY_BYTES - COMPONENT_BYTES)
        return 1;
    long read = bpf_probe_read_kernel_str(w->event->names + bytes, COMPONENT_BYTES, BPF_CORE_READ(at, d_name.name));
    if (read <= 1)
        return 1;
    BYTES(w) = bytes + read;
    w->at = parent;
    return 0;
}

static __always_inline int emit_directory(struct dentry *at, struct vfsmount *mounted)
{
#ifdef BEFORE_6_1
    struct scratch_space *own = scratch();
    if (!own)
        return DIRECTORY_LOST;
#endif
    struct directory_event *event = reserve_for_call(sizeof *event);
    struct directory_walk walk = {.at = at, .mounted = mounted, .event = event};
    if (!event)
        return DIRECTORY_LOST;
#ifdef BEFORE_6_1
    own->directory_bytes = 0;
    walk.bytes = &own->directory_bytes;
#endif
    fill_head(&event->head, KIND_DIRECTORY, -1);
    event->ino = BPF_CORE_READ(at, d_inode, i_ino);
    event->dev = BPF_CORE_READ(at, d_inode, i_sb, s_dev);
    LOOP(MAX_STEPS, MAX_STEPS, walk_component, &walk);
    event->name_bytes = BYTES(&walk);
    event->complete = walk.complete;
    submit(event, 0);
    return DIRECTORY_REPORTED;
}

#ifdef BEFORE_6_1
GLOBAL_FUNCTION int report_current_directory(void)
#else
GLOBAL_FUNCTION int report_directory(struct process_state *process)
#endif
{
#ifdef BEFORE_6_1
    struct process_state *process = current_process();
#endif
    struct task_struct *task = (void *)bpf_get_current_task();
    struct dentry *at = BPF_CORE_READ(task, fs, pwd.dentry);
    if (!process)
        return DIRECTORY_SAME;
    /* With the inode number, because the kernel reuses a dentry's memory. */
    u64 directory = (u64)at ^ BPF_CORE_READ(at, d_inode, i_ino);
    if (directory == process->directory)
        return DIRECTORY_SAME;
    int change = emit_directory(at, BPF_CORE_READ(task, fs, pwd.mnt));
    if (change == DIRECTORY_REPORTED)
        process->directory = directory;
    return change;
}
