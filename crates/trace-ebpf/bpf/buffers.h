/* buffers.h: glibc's streams in the memory of the current process: a walk along its list of FILEs. Nothing in
 * it is trusted: reads may fail, the list may be a loop, and so on. Offsets are those of x86-64 and aarch64,
 * the same since 1999 (libio/bits/types/struct_FILE.h). */
#ifndef WEIR_BUFFERS_H
#define WEIR_BUFFERS_H

#include "maps.h"

enum { STDIO_MAGIC = 0xFBAD0000, STDIO_MAGIC_MASK = 0xFFFF0000, STDIO_PUTTING = 0x0800, MOST_FILES = 64 };

struct walking {
    u64 at;
    u64 call_buffer;
    u32 moment, call_fd;
    u32 met, pad; /* it has come by a stream of that descriptor; no byte is left unset, or older kernels refuse it */
};

APART int tell_buffer(const struct walking *w, const struct stdio_file *f, u64 pending, u64 unread)
{
    struct buffer *event;
    if (!w || !f || !(event = w->moment == MOMENT_SAMPLE ? reserve_some(sizeof *event) : reserve(sizeof *event)))
        return 0;
    begin(&event->head, KIND_BUFFER, f->fileno);
    u64 file = (int)f->fileno >= 0 ? file_of(f->fileno) : 0;
    no_file(&event->file);
    event->name[0] = 0;
    if (file) {
        identify(&event->file, file);
        bpf_probe_read_kernel_str(event->name, NAME, BPF_CORE_READ((struct file *)file, f_path.dentry, d_name.name));
    }
    event->address = w->at;
    event->base = f->buf_base;
    event->end = f->buf_end;
    event->pending = pending;
    event->unread = unread;
    event->moment = w->moment;
    event->flags = f->flags;
    event->walker = 1;
    event->call_fd = w->call_fd;
    u64 bytes = pending ? pending : unread;
    if (bytes > PREVIEW)
        bytes = PREVIEW;
    if (bytes)
        bpf_probe_read_user(event->data, bytes & 511, (void *)(pending ? f->write_base : f->read_ptr));
    submit(event, 0);
    return 0;
}

static long walk_next(u32 i, void *context)
{
    struct walking *w = context;
    struct room *own = room();
    if (!own || w->at == 0 || bpf_probe_read_user(&own->file, sizeof own->file, (void *)w->at) != 0)
        return 1;
    struct stdio_file *f = &own->file;
    if ((f->flags & STDIO_MAGIC_MASK) != STDIO_MAGIC)
        return 1;
    u64 size = f->buf_end - f->buf_base, pending = 0, unread = 0;
    if (f->flags & STDIO_PUTTING && f->write_ptr > f->write_base && f->write_ptr - f->write_base <= size)
        pending = f->write_ptr - f->write_base;
    else if (f->read_end > f->read_ptr && f->read_end - f->read_ptr <= size)
        unread = f->read_end - f->read_ptr;
    /* The write that has just returned was of this very buffer: the stream will say so in a moment. */
    if (w->moment == MOMENT_SAMPLE && f->fileno == w->call_fd && w->call_buffer >= f->buf_base &&
        w->call_buffer < f->buf_end)
        pending = 0;
    if (f->fileno == w->call_fd)
        w->met = 1;
    if (w->moment != MOMENT_SAMPLE || f->fileno == w->call_fd || pending)
        tell_buffer(w, f, pending, unread);
    w->at = f->chain;
    return 0;
}

/* Answers whether there was a stream of the call's descriptor. */
APART int walk(const struct process *process, u32 moment, u32 call_fd, u64 call_buffer)
{
    struct walking w = {.call_buffer = call_buffer, .moment = moment, .call_fd = call_fd};
    if (!process || process->walker != 1 || !process->list)
        return 0;
    if (bpf_probe_read_user(&w.at, sizeof w.at, (void *)process->list) == 0)
        bpf_loop(MOST_FILES, walk_next, &w, 0);
    return w.met;
}

/* A compiler reads hundreds of files without its C library's streams, each by one call: after a few of them the first read
 * of another is not worth the walk, which costs as much as all else that is done for the file. Whoever reads by a stream
 * makes a second call, be it for the end of the file. */
static __always_inline void walk_at_call(struct process *process, u32 fd, u64 buffer, int first_read)
{
    if (!process || (first_read && process->strangers >= STRANGERS))
        return;
    int met = walk(process, MOMENT_SAMPLE, fd, buffer);
    if (met)
        process->strangers = 0;
    else if (first_read)
        process->strangers++;
}

#endif
