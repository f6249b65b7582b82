/* jumps.c: the reads and writes that glibc's stdio makes inside itself.

   fflush, a full buffer and an unbuffered putchar do not call the write(2) that this library stands in front of, but
   glibc's own, through the table of functions that all streams over a descriptor share. The two entries in question are
   exchanged there, where they are what they are known to be; so everything in stdio stays as it is but the call itself.
   musl keeps such functions in each stream and makes the call in them: there, stdio's own calls are not gathered. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <linux/elf.h>

#include "calls.h"
#include "libc.h"

enum { ENTRY_READ = 14, ENTRY_WRITE = 15, PAGE = 4096, ERROR_SEEN = 0x20, NOT_CANCELLED = 2 };

typedef long jump_read(struct file *, void *, long);
typedef long jump_write(struct file *, const void *, long);

/* glibc's names; the tables are of GLIBC_2.2.5, and as long as glibc's ABI is. */
WEAK jump_read _IO_file_read;
WEAK jump_write _IO_file_write;
extern void *_IO_file_jumps[] WEAK;  /* streams of bytes */
extern void *_IO_wfile_jumps[] WEAK; /* streams of wide characters */

/* struct _IO_FILE, as it stands in glibc's public headers. */
struct stream {
    int flags;
    char *pointers[11];
    void *markers, *chain;
    int fd, flags2;
    long old_offset;
    char column[8];
    void *lock;
    int64_t offset; /* -1: not known */
};
_Static_assert(offsetof(struct stream, fd) == 112 && offsetof(struct stream, offset) == 144, "as in glibc");

/* _IO_new_file_write, with our call in it. */
static long stream_write(struct file *file, const void *from, long n) {
    struct stream *stream = (struct stream *)(void *)file;
    const char *at = from, *end = at + n;
    if (stream->flags2 & NOT_CANCELLED) return _IO_file_write(file, from, n);
    while (at < end) {
        long done = calls_write(stream->fd, at, (size_t)(end - at));
        if (done < 0) {
            stream->flags |= ERROR_SEEN;
            break;
        }
        at += done;
    }
    n = at - (const char *)from;
    if (stream->offset >= 0) stream->offset += n;
    return n;
}

static long stream_read(struct file *file, void *to, long n) {
    struct stream *stream = (struct stream *)(void *)file;
    if (stream->flags2 & NOT_CANCELLED) return _IO_file_read(file, to, n);
    return calls_read(stream->fd, to, (size_t)n);
}

struct object { /* dl_phdr_info, as far as it is looked at */
    uintptr_t base;
    const char *name;
    const Elf64_Phdr *headers;
    uint16_t count;
};
WEAK int dl_iterate_phdr(int (*each)(struct object *, size_t, void *), void *with);

struct place {
    uintptr_t at;
    int sealed;
};

/* Whether the loader has made this page read-only: then it is made so again. */
static int look(struct object *object, size_t size, void *with) {
    struct place *place = with;
    (void)size;
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *header = &object->headers[i];
        uintptr_t from = (object->base + header->p_vaddr) & -(uintptr_t)PAGE;
        uintptr_t to = (object->base + header->p_vaddr + header->p_memsz) & -(uintptr_t)PAGE;
        if (header->p_type == PT_GNU_RELRO && place->at >= from && place->at < to) return place->sealed = 1;
    }
    return 0;
}

static void exchange(void **entry, const void *known, void *ours) {
    struct place place = {(uintptr_t)entry, 0};
    uintptr_t page = place.at & -(uintptr_t)PAGE;
    if (*entry != known) return;
    dl_iterate_phdr(look, &place);
    if (place.sealed && sys3(__NR_mprotect, page, PAGE, PROT_READ | PROT_WRITE) < 0) return;
    *entry = ours;
    if (place.sealed) sys3(__NR_mprotect, page, PAGE, PROT_READ);
}

void jumps_start(void) {
    void **tables[] = {_IO_file_jumps, _IO_wfile_jumps};
    if (!_IO_file_read || !_IO_file_write || !dl_iterate_phdr) return;
    for (int i = 0; i < 2; i++) {
        if (!tables[i]) continue;
        exchange(&tables[i][ENTRY_READ], (void *)(uintptr_t)_IO_file_read, (void *)(uintptr_t)stream_read);
        exchange(&tables[i][ENTRY_WRITE], (void *)(uintptr_t)_IO_file_write, (void *)(uintptr_t)stream_write);
    }
}
#endif
