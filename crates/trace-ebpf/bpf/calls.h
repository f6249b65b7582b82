/* calls.h: the handler at the exit of system calls. Only what is rare is told one by one; reads and writes are
 * counted here, by stream. */
#ifndef WEIR_CALLS_H
#define WEIR_CALLS_H

#include "count.h"
#include "flush.h"
#include "maps.h"

#define PATHS(first, second) ((first) | (second) << 4)

struct arguments {
    u64 at[6];
};

APART int tell_plain(const struct arguments *args, s64 result, u32 nr, u32 fd)
{
    struct call *call;
    u64 file;
    if (!args || !(call = reserve_some(sizeof *call)))
        return 0;
    begin(&call->head, KIND_CALL, fd);
    no_file(&call->file);
    file = (int)fd >= 0 ? file_of(fd) : 0;
    if (file)
        identify(&call->file, file);
    __builtin_memcpy(call->args, args->at, sizeof call->args);
    call->result = result;
    call->nr = nr;
    call->counted = 0;
    call->data_bytes = 0;
    call->tail = -1;
    if (result == 0 && (classes[nr % CLASSES] == CLASS_PAIR_0 || classes[nr % CLASSES] == CLASS_PAIR_3)) {
        u64 at = classes[nr % CLASSES] == CLASS_PAIR_0 ? args->at[0] : args->at[3];
        if (bpf_probe_read_user(call->data, 8, (void *)at) == 0)
            call->data_bytes = 8;
    }
    submit(call, 0);
    return 0;
}

/* Up to two of the arguments, by their numbers, are paths; 6: none. MOVED: a relative one is the first from this
 * directory, which weir asks for while the process is there; answers whether it was. */
#define MOVED 0x100
APART int tell_paths(const struct arguments *args, s64 result, u32 nr, u32 fd, u32 which)
{
    u32 first = which & 7, second = which >> 4 & 7;
    struct path_call *event;
    u64 file;
    if (!args || !(event = reserve_some(sizeof *event)))
        return 0;
    begin(&event->call.head, KIND_CALL, fd);
    no_file(&event->call.file);
    file = (int)fd >= 0 ? file_of(fd) : 0;
    if (file)
        identify(&event->call.file, file);
    __builtin_memcpy(event->call.args, args->at, sizeof event->call.args);
    event->call.result = result;
    event->call.nr = nr;
    event->call.counted = 0;
    event->call.data_bytes = 0;
    event->call.tail = -1;
    event->moved = 0;
    event->path[0][0] = event->path[1][0] = 0;
    if (first < 6)
        bpf_probe_read_user_str(event->path[0], PATH, (void *)args->at[first]);
    if (second < 6)
        bpf_probe_read_user_str(event->path[1], PATH, (void *)args->at[second]);
    int relative = event->path[0][0] != '/' || (second < 6 && event->path[1][0] != '/');
    int moved = which & MOVED && relative;
    event->moved = moved;
    submit(event, moved);
    return moved;
}

/* A call with paths, which begin in a directory, or where the process stands (`here`). */
static __always_inline void on_paths(struct process *process, const struct arguments *args, s64 result, u32 nr,
                                     u32 fd, int here, u32 which)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    u64 directory = process->directory;
    tally(TALLY_NAMES);
    if (here) { /* a dentry's memory may be another directory's one day */
        struct dentry *stands = BPF_CORE_READ(task, fs, pwd.dentry);
        directory = (u64)stands ^ BPF_CORE_READ(stands, d_inode, i_ino);
    }
    if (directory != process->directory)
        which |= MOVED;
    if (tell_paths(args, result, nr, fd, which))
        process->directory = directory;
}

/* Of fsync(2) and its kin: it has not begun before the stream's last write ended. args[5] is free for that. */
static __always_inline void since_last_write(u32 pid, struct arguments *args, u32 fd)
{
    struct stream_key key = {pid, fd * 2 + 1};
    struct counts *counts = bpf_map_lookup_elem(&streams, &key);
    args->at[5] = counts && !counts->doubted ? counts->last_ns : 0;
    if (counts)
        counts->in_tick = 0;
}

/* Of io_uring_setup(2): flags are the third word of its parameters. args[2] is free for them. */
static __always_inline void with_flags(struct arguments *args)
{
    u32 flags = 0;
    bpf_probe_read_user(&flags, sizeof flags, (void *)(args->at[1] + 8));
    args->at[2] = flags;
}

#define AT_FDCWD_ (-100)

struct vector {
    u64 base, bytes;
};

/* Sums a vector, up to 64 parts; where the bytes end matters only when they are all in the first part. */
struct summing {
    u64 at, sum;
};
static long sum_next(u32 i, void *context)
{
    struct summing *s = context;
    struct vector part;
    if (bpf_probe_read_user(&part, sizeof part, (void *)(s->at + i * sizeof part)) != 0)
        return 1;
    s->sum += part.bytes;
    return 0;
}

APART int by_vector(struct transfer *t, u64 address, u64 parts)
{
    if (!t)
        return 0;
    struct summing s = {address, 0};
    struct vector first;
    t->buffer = 0;
    if (bpf_probe_read_user(&first, sizeof first, (void *)address) == 0 &&
        (parts == 1 || (t->result >= 0 && (u64)t->result <= first.bytes)))
        t->buffer = first.base;
    bpf_loop(parts < 64 ? parts : 64, sum_next, &s, 0);
    t->asked = s.sum;
    return 0;
}

static __always_inline void move_bytes(struct transfer *t, u32 class)
{
    struct {
        u64 name, name_bytes, parts, count;
    } message;
    t->writes = class == CLASS_WRITE || class == CLASS_PWRITE || class == CLASS_WRITEV || class == CLASS_PWRITEV ||
                class == CLASS_SENDMSG;
    t->fd = (u32)t->args[0];
    t->buffer = t->args[1];
    t->asked = t->args[2];
    t->position = -1;
    t->in_kernel = 0;
    if (class == CLASS_PREAD || class == CLASS_PWRITE || class == CLASS_PREADV || class == CLASS_PWRITEV)
        t->position = t->args[3];
    if (class >= CLASS_READV && class <= CLASS_PWRITEV) {
        by_vector(t, t->args[1], t->args[2]);
    } else if (class == CLASS_RECVMSG || class == CLASS_SENDMSG) {
        t->asked = t->buffer = 0;
        if (bpf_probe_read_user(&message, sizeof message, (void *)t->args[1]) == 0)
            by_vector(t, message.parts, message.count);
    }
    count(t);
}

/* Bytes that do not come by the program: counted on both sides. */
static __always_inline void move_inside(struct transfer *t, u32 class)
{
    u32 in = (u32)t->args[0], out = (u32)t->args[1];
    t->asked = t->args[2];
    if (class == CLASS_COPY_01) {
        in = (u32)t->args[1];
        out = (u32)t->args[0];
        t->asked = t->args[3];
    } else if (class == CLASS_COPY_02) {
        out = (u32)t->args[2];
        t->asked = t->args[4];
    }
    t->buffer = 0;
    t->position = -1;
    t->in_kernel = 1;
    t->fd = in;
    t->writes = 0;
    count(t);
    t->fd = out;
    t->writes = 1;
    count(t);
}

/* Counts the move on both sides of the descriptor; whether to tell of it as well. The last one is known from
 * the counters. */
APART int set_position(u32 pid, u32 fd, u64 position)
{
    int news = 1;
    for (u32 writes = 0; writes < 2; writes++) {
        struct stream_key key = {pid, fd * 2 + writes};
        struct counts *counts = bpf_map_lookup_elem(&streams, &key);
        if (!counts || counts->doubted)
            continue;
        if (counts->position != position)
            counts->jumps++;
        counts->position = position;
        counts->seeks++;
        counts->seek_ns = bpf_ktime_get_ns();
        if (counts->seeks > TOLD_SEEKS)
            news = 0;
    }
    return news;
}

/* A C library is mapped: from here on its streams can be found. */
APART int on_mmap(struct process *process, const struct arguments *args, s64 result)
{
    struct library_key key;
    struct library *library;
    u64 file;
    if (!process || !args || process->list || result < 0 || (int)args->at[4] < 0 || args->at[5] != 0)
        return 0;
    file = file_of((u32)args->at[4]);
    if (!file)
        return 0;
    key.ino = BPF_CORE_READ((struct file *)file, f_inode, i_ino);
    key.size = BPF_CORE_READ((struct file *)file, f_inode, i_size);
    library = bpf_map_lookup_elem(&libraries, &key);
    if (library && library->how == 0) {
        process->list = (u64)result + library->offset;
        process->walker = library->walker;
    }
    return 0;
}

/* The dynamic loader protects what it has relocated of a library: the C library's streams stand, and no code of the
 * program has run. Its tracer, who has seen to it that the signal is not blocked, takes it away; without one it does nothing. */
#define SIGURG_ 23
static __always_inline void on_mprotect(struct process *process, const struct arguments *args, s64 result)
{
    if (process->command != HELD || !process->list || result || args->at[2] != 1) /* PROT_READ */
        return;
    process->command = COMMAND;
    bpf_send_signal(SIGURG_);
}

/* F_DUPFD, F_SETFD, F_SETFL, F_DUPFD_CLOEXEC, F_SETPIPE_SZ */
static __always_inline int changes_descriptor(u32 command)
{
    return command == 0 || command == 2 || command == 4 || command == 1030 || command == 1031;
}

static __always_inline void on_other(struct process *process, u32 pid, struct arguments *args, s64 result,
                                     u32 nr, u32 class)
{
    u32 fd = (u32)args->at[0], made = -1, which = 0;
    int here = 1;
    if (class == CLASS_PROTECT) {
        on_mprotect(process, args, result);
        return;
    }
    tally(TALLY_CALLS);
    switch (class) {
    case CLASS_CLOSE:
        flush_fd(process, pid, fd);
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_CLOSE_RANGE:
        if (result == 0 && !(args->at[2] & 4)) /* CLOSE_RANGE_CLOEXEC closes nothing yet */
            flush_range(process, pid, fd, (u32)args->at[1]);
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_DUP_TO:
        if (result >= 0 && fd != (u32)args->at[1])
            flush_fd(process, pid, (u32)args->at[1]);
        tell_plain(args, result, nr, (u32)result);
        return;
    case CLASS_NEW_FD:
        tell_plain(args, result, nr, (u32)result);
        return;
    case CLASS_FCNTL:
        if (changes_descriptor((u32)args->at[1]))
            tell_plain(args, result, nr, fd);
        return;
    case CLASS_PAIR_0:
    case CLASS_PAIR_3:
        tell_plain(args, result, nr, -1);
        return;
    case CLASS_LSEEK:
        if (result < 0 || set_position(pid, fd, (u64)result))
            tell_plain(args, result, nr, fd);
        return;
    case CLASS_OPENAT:
        which = PATHS(1, 6);
        here = (int)fd == AT_FDCWD_;
        made = result;
        break;
    case CLASS_OPEN:
        which = PATHS(0, 6);
        made = result;
        break;
    case CLASS_PATH_0:
        which = PATHS(0, 6);
        break;
    case CLASS_PATH_1:
        which = PATHS(1, 6);
        here = (int)fd == AT_FDCWD_;
        break;
    case CLASS_PATHS_01:
        which = PATHS(0, 1);
        break;
    case CLASS_PATHS_13:
        which = PATHS(1, 3);
        here = (int)fd == AT_FDCWD_ || (int)args->at[2] == AT_FDCWD_;
        break;
    case CLASS_SYNC:
        since_last_write(pid, args, fd);
        tell_plain(args, result, nr, fd);
        return;
    case CLASS_RING:
        with_flags(args);
        tell_plain(args, result, nr, (u32)result);
        return;
    case CLASS_MMAP:
        on_mmap(process, args, result);
        if ((int)args->at[4] >= 0 && !(args->at[3] & 0x20)) /* MAP_ANONYMOUS */
            tell_plain(args, result, nr, (u32)args->at[4]);
        return;
    default:
        tell_plain(args, result, nr, fd);
        return;
    }
    on_paths(process, args, result, nr, made, here, which);
}

/* Any other than those that count_whole is for. Its frame is not the handler's: one of 64 bytes and more would lie in memory
 * of its own (kernel 6.13 and later), and what is read into that is checked at greater length. */
static __attribute__((noinline)) int on_call(struct pt_regs *regs, s64 result, u32 nr, u32 class)
{
    struct process *process = 0;
    struct room *own = room();
    u32 pid = 0;
    if (!own)
        return 0;
    struct transfer *t = &own->call;
    /* What moves bytes finds its stream in one look-up, or none; for the others it is worth asking first. */
    if (!class || class > CLASS_PWRITE || CALL_IS_32BIT(regs)) {
        pid = bpf_get_current_pid_tgid() >> 32;
        process = bpf_map_lookup_elem(&processes, &pid);
        if (!process)
            return 0;
        if (CALL_IS_32BIT(regs)) {
            tally(TALLY_32BIT);
            return 0;
        }
    }
    t->args[0] = CALL_0(regs);
    t->args[1] = CALL_1(regs);
    t->args[2] = CALL_2(regs);
    t->args[3] = CALL_3(regs);
    t->args[4] = CALL_4(regs);
    t->args[5] = CALL_5(regs);
    t->result = result;
    t->nr = nr;
    if (class <= CLASS_SENDMSG)
        move_bytes(t, class);
    else if (class <= CLASS_TEE)
        move_inside(t, class);
    else if (process)
        on_other(process, pid, (struct arguments *)t->args, result, nr, class);
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
    u32 nr = CALL_NUMBER(regs), class = nr < CLASSES ? classes[nr] : 0;
    if (CALL_IS_32BIT(regs)) /* the numbers of 32-bit calls are other calls' */
        return on_call(regs, result, nr, class);
    if (!class)
        return 0;
    if (class <= CLASS_WRITE &&
        count_whole((u32)CALL_0(regs), CALL_1(regs), CALL_2(regs), result, class == CLASS_WRITE))
        return 0;
    return on_call(regs, result, nr, class);
}

#endif
