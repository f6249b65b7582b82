/* buffers.bpf.c: walks glibc's list of FILEs. The process may have overwritten any of it: reads may fail, and
 * the list may be circular. */
#include "buffers.h"
#include "open_file.h"
#include "ring_buffer.h"

enum {
    STDIO_MAGIC = 0xFBAD0000, /* _IO_MAGIC */
    STDIO_MAGIC_MASK = 0xFFFF0000,
    STDIO_PUTTING = 0x0800, /* _IO_CURRENTLY_PUTTING */
    MAX_SAMPLED_FILES = 64, /* bounds the cost of a call; few programs have more streams open */
#ifdef BEFORE_6_1
    MAX_FILES = 64, /* the verifier follows each of them */
#else
    MAX_FILES = 4096, /* four times the default RLIMIT_NOFILE */
#endif
    MAX_CHARACTERS = 1 << 20,
    /* Offsets in FILE, in struct _IO_wide_data (since glibc 2.31) and in struct __gconv_step. */
    FILE_WIDE_DATA = 160,
    FILE_MODE = 192, /* more than 0: the stream has wide characters */
    WIDE_WRITE_BASE = 24,
    WIDE_STEP = 160,
    STEP_TO_NAME = 32,
};

/* Reads the pending wide characters of a stream. */
static __always_inline void read_wide(u64 address, const struct stdio_file *f, struct wide_text *wide)
{
    u64 data = 0, step = 0, text[2] = {};
    int mode = 0;
    wide->begin = wide->characters = wide->charset = 0;
    if (!(f->flags & STDIO_PUTTING) || bpf_probe_read_user(&mode, sizeof mode, (void *)(address + FILE_MODE)) != 0 ||
        mode <= 0 || bpf_probe_read_user(&data, sizeof data, (void *)(address + FILE_WIDE_DATA)) != 0 ||
        bpf_probe_read_user(text, sizeof text, (void *)(data + WIDE_WRITE_BASE)) != 0 || text[1] <= text[0] ||
        text[1] - text[0] > MAX_CHARACTERS * 4)
        return;
    wide->begin = text[0];
    wide->characters = (text[1] - text[0]) / 4;
    if (bpf_probe_read_user(&step, sizeof step, (void *)(data + WIDE_STEP)) == 0)
        bpf_probe_read_user(&wide->charset, sizeof wide->charset, (void *)(step + STEP_TO_NAME));
}

/* Emits one stream. A global function, so that the verifier checks it only once. */
GLOBAL_FUNCTION int emit_buffer(const struct buffer_walk *w, const struct stdio_file *f, const struct wide_text *wide,
                                u64 pending, u64 unread)
{
    struct buffer_event *event;
    if (!w || !f || !wide ||
        !(event = w->moment == MOMENT_SAMPLE ? reserve_for_call(sizeof *event) : reserve(sizeof *event)))
        return 0;
    fill_head(&event->head, KIND_BUFFER, f->fileno);
    u64 file = (int)f->fileno >= 0 ? file_of(f->fileno) : 0;
    clear_open_file(&event->file);
    event->name[0] = 0;
    if (file) {
        read_open_file(&event->file, file);
        bpf_probe_read_kernel_str(event->name, NAME_BYTES,
                                  BPF_CORE_READ((struct file *)file, f_path.dentry, d_name.name));
    }
    event->address = w->address;
    event->base = f->buf_base;
    event->end = f->buf_end;
    event->pending = pending;
    event->unread = unread;
    event->wide = wide->characters;
    event->charset[0] = 0;
    if (wide->characters)
        bpf_probe_read_user_str(event->charset, sizeof event->charset, (void *)wide->charset);
    event->moment = w->moment;
    event->flags = f->flags;
    event->walker = 1;
    event->call_fd = w->call_fd;
    u64 bytes = unread, from = f->read_ptr;
    if (pending) {
        bytes = pending;
        from = f->write_base;
    } else if (wide->characters) {
        bytes = wide->characters * 4;
        from = wide->begin;
    }
    if (bytes > PREVIEW_BYTES)
        bytes = PREVIEW_BYTES;
    if (bytes)
        bpf_probe_read_user(event->data, bytes & 511, (void *)from);
    submit(event, 0);
    return 0;
}

/* Skips the bytes that a thread's last write(2) wrote: the thread ended before stdio noted them. */
static __always_inline void skip_last_write(const struct buffer_walk *w, struct stdio_file *f)
{
    if (w->written_at >= f->write_base && w->written_at < f->write_ptr && w->written_end <= f->write_ptr)
        f->write_base = w->written_end;
    if (!w->has_last_writes)
        return;
    struct last_write_key key = {bpf_get_current_pid_tgid() >> 32, w->image, f->write_ptr};
    struct last_write *write = bpf_map_lookup_elem(&last_writes, &key);
    if (write && write->begin >= f->write_base && write->end > write->begin && write->end <= f->write_ptr)
        f->write_base = write->end;
}

static long walk_file(u32 i, void *context)
{
    struct buffer_walk *w = context;
    struct scratch_space *own = scratch();
    if (!own || w->address == 0)
        return 1;
    struct stdio_file *f = &own->file;
    if ((i && w->address == own->milestone) || bpf_probe_read_user(f, sizeof *f, (void *)w->address) != 0 ||
        (f->flags & STDIO_MAGIC_MASK) != STDIO_MAGIC) {
        w->address = 0;
        return 1;
    }
    if ((i & (i - 1)) == 0)
        own->milestone = w->address;
    read_wide(w->address, f, &own->wide);
    /* A flush converts and writes wide characters piece by piece, and updates the stream after the last piece. So after a call on
     * the stream's descriptor, or a write(2) in which a thread ended, it is unknown which characters were written. */
    if (w->written_at || (w->moment == MOMENT_SAMPLE && f->fileno == w->call_fd))
        own->wide.characters = 0;
    skip_last_write(w, f);
    u64 size = f->buf_end - f->buf_base, pending = 0, unread = 0;
    if (f->flags & STDIO_PUTTING && f->write_ptr > f->write_base && f->write_ptr - f->write_base <= size)
        pending = f->write_ptr - f->write_base;
    else if (f->read_end > f->read_ptr && f->read_end - f->read_ptr <= size)
        unread = f->read_end - f->read_ptr;
    /* The write(2) that has just returned wrote this buffer, but stdio has not yet reset write_ptr. */
    if (w->moment == MOMENT_SAMPLE && f->fileno == w->call_fd && w->call_buffer >= f->buf_base &&
        w->call_buffer < f->buf_end)
        pending = 0;
    if (f->fileno == w->call_fd)
        w->found_call_fd = 1;
    if (w->moment != MOMENT_SAMPLE || f->fileno == w->call_fd || pending || own->wide.characters)
        emit_buffer(w, f, &own->wide, pending, unread);
    w->address = f->chain;
    return 0;
}

/* Returns how many streams a walk reads at most. */
static __always_inline u32 walk_limit(u32 moment) { return moment == MOMENT_SAMPLE ? MAX_SAMPLED_FILES : MAX_FILES; }

/* Counts a walk that has not reached the end of the list. A sample need not be complete. */
static __always_inline void end_walk(const struct buffer_walk *w)
{
    if (w->address && w->moment != MOMENT_SAMPLE)
        tally(TALLY_CUT_WALKS);
}

/* Sets up the walk. Returns whether the process has a list of streams. */
static __always_inline int begin_walk(struct buffer_walk *w, const struct process_state *process)
{
    if (process->walker != 1 || !process->list)
        return 0;
    w->written_at = process->written_at;
    w->written_end = process->written_end;
    w->has_last_writes = process->has_last_writes;
    w->image = process->image;
    return bpf_probe_read_user(&w->address, sizeof w->address, (void *)process->list) == 0;
}

#ifdef BEFORE_6_1
GLOBAL_FUNCTION int walk_next_file(u32 i)
{
    struct scratch_space *own = scratch();
    return own ? walk_file(i, &own->walk) : 1;
}

static __always_inline long walk_next(u32 i, void *context) { return walk_next_file(i); }

GLOBAL_FUNCTION int walk_current_buffers(u32 moment, u32 call_fd, u64 call_buffer)
{
    struct process_state *process = current_process();
    struct scratch_space *own = scratch();
    if (!process || !own)
        return 0;
    own->walk.call_buffer = call_buffer;
    own->walk.moment = moment;
    own->walk.call_fd = call_fd;
    own->walk.found_call_fd = 0;
    if (begin_walk(&own->walk, process)) {
        LOOP(MAX_FILES, walk_limit(moment), walk_next, 0);
        end_walk(&own->walk);
    }
    return own->walk.found_call_fd;
}
#else
GLOBAL_FUNCTION int walk_buffers(const struct process_state *process, u32 moment, u32 call_fd, u64 call_buffer)
{
    struct buffer_walk w = {.call_buffer = call_buffer, .moment = moment, .call_fd = call_fd};
    if (process && begin_walk(&w, process)) {
        LOOP(MAX_FILES, walk_limit(moment), walk_file, &w);
        end_walk(&w);
    }
    return w.found_call_fd;
}
#endif
