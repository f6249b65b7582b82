/* glibc_stdio.c: gathers the reads and writes that glibc's stdio makes internally.

   fflush, a full buffer and an unbuffered putchar do not call the write(2) of this library but glibc's own,
   through the jump table that all streams of descriptors share. If the table's entries for read and write are the
   known functions, they are replaced; the rest of stdio stays unchanged. In musl each stream has its own
   functions, which make the system call themselves: the calls of musl's stdio are not gathered. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include "functions.h"
#include "libc.h"

enum { ENTRY_READ = 14, ENTRY_WRITE = 15, PAGE = 4096, ERROR_SEEN = 0x20, NOT_CANCELLED = 2 };

typedef long jump_read(struct file *, void *, long);
typedef long jump_write(struct file *, const void *, long);

/* glibc's names. The tables have the symbol version GLIBC_2.2.5, so their layout is part of glibc's ABI. */
WEAK jump_read _IO_file_read;
WEAK jump_write _IO_file_write;
extern void *_IO_file_jumps[] WEAK;  /* streams of bytes */
extern void *_IO_wfile_jumps[] WEAK; /* streams of wide characters */

/* struct _IO_FILE of glibc's public headers. */
struct stream {
    int flags;
    char *pointers[11];
    void *markers, *chain;
    int fd, flags2;
    long old_offset;
    char column[8];
    void *lock;
    int64_t offset; /* -1: unknown */
};
_Static_assert(offsetof(struct stream, fd) == 112 && offsetof(struct stream, offset) == 144, "the layout is glibc's");

/* As _IO_new_file_write, but with calls_write instead of write. */
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

struct table_entry {
    uintptr_t address;
    int read_only;
};

/* Called by dl_iterate_phdr: notes whether the loader has made the entry's page read-only (PT_GNU_RELRO). */
static int find_relro(struct object *object, size_t size, void *with) {
    struct table_entry *entry = with;
    (void)size;
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *header = &object->headers[i];
        uintptr_t from = (object->base + header->p_vaddr) & -(uintptr_t)PAGE;
        uintptr_t to = (object->base + header->p_vaddr + header->p_memsz) & -(uintptr_t)PAGE;
        int is_inside = entry->address >= from && entry->address < to;
        if (header->p_type == PT_GNU_RELRO && is_inside) return entry->read_only = 1;
    }
    return 0;
}

/* Replaces a function in a jump table if it is the known one. */
static void replace(void **function, const void *known, void *ours) {
    struct table_entry entry = {(uintptr_t)function, 0};
    uintptr_t page = entry.address & -(uintptr_t)PAGE;
    if (*function != known) return;
    dl_iterate_phdr(find_relro, &entry);
    if (entry.read_only && sys3(__NR_mprotect, page, PAGE, PROT_READ | PROT_WRITE) < 0) return;
    *function = ours;
    if (entry.read_only) sys3(__NR_mprotect, page, PAGE, PROT_READ);
}

void glibc_stdio_start(void) {
    void **tables[] = {_IO_file_jumps, _IO_wfile_jumps};
    if (!_IO_file_read || !_IO_file_write || !dl_iterate_phdr) return;
    for (int i = 0; i < 2; i++) {
        if (!tables[i]) continue;
        replace(&tables[i][ENTRY_READ], (void *)(uintptr_t)_IO_file_read, (void *)(uintptr_t)stream_read);
        replace(&tables[i][ENTRY_WRITE], (void *)(uintptr_t)_IO_file_write, (void *)(uintptr_t)stream_write);
    }
}
#endif
