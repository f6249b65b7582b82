/* fake_kernel.h: system calls that go wrong when they are told to. The entries of weir__kernel are replaced
 * by ones that work on files, pipes and terminals in memory (and on real descriptors, which they pass on),
 * count and note every call, and spoil the calls that a plan names. One thread. */
#ifndef WEIR_TESTS_FAKE_KERNEL_H
#define WEIR_TESTS_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_call {
    FAKE_WRITE, /* write, writev, pwrite, pwritev2 */
    FAKE_READ,
    FAKE_LSEEK,
    FAKE_FSTAT,
    FAKE_FCNTL,
    FAKE_FSYNC,
    FAKE_FDATASYNC,
    FAKE_CLOSE,
    FAKE_OPEN,
    FAKE_RENAME,
    FAKE_UNLINK,
    FAKE_POLL,
    FAKE_MMAP,
    FAKE_PIPE2,
    FAKE_TEE,
    FAKE_RECV,
    FAKE_CALLS
};

enum fake_kind { FAKE_FILE, FAKE_PIPE, FAKE_TERMINAL, FAKE_SOCKET };

struct fake_file {
    enum fake_kind kind;
    unsigned char *bytes;
    size_t size, room;
    size_t space;       /* the disk is full beyond; 0: endless */
    size_t begin;       /* of a pipe, terminal or socket: what was read is below */
    unsigned syncs;
    uint64_t written;   /* bytes, ever */
    uint64_t synced;    /* of them, when it was synced last */
    unsigned locks;     /* taken and let go, F_OFD_SETLKW */
    bool locked;
    bool stuck;         /* poll(2) says that it cannot be written to */
    unsigned char *answers; /* of a socket: what is to be read, which is not what was written */
    size_t answers_size;
};

/* What happens to the `times` calls from number `at` on (1 is the first since fake_forget). */
struct fake_fault {
    uint64_t at, times;
    int error;       /* errno; 0: the count is cut */
    bool one_byte;   /* to 1, else to half */
    unsigned calls;  /* only these: 1u << FAKE_WRITE | … */
};

struct fake_note {
    enum fake_call call;
    int fd;
    size_t asked;
    int64_t result; /* or -errno */
};

void fake_install(void);
void fake_remove(void); /* the real kernel again */

void fake_file_make(struct fake_file *f, enum fake_kind kind);
void fake_file_fill(struct fake_file *f, const void *bytes, size_t size);
void fake_file_free(struct fake_file *f);
/* A descriptor for it, with the oflags of open(2). */
int fake_open(struct fake_file *f, int oflags);
bool fake_is_open(int fd);
int64_t fake_position(int fd);
void fake_set_position(int fd, int64_t position); /* as another process that shares it might */

void fake_plan(const struct fake_fault *fault); /* NULL: all goes well again */
uint64_t fake_hits(void);                       /* calls that the plan spoiled */
void fake_forget(void);                         /* no calls yet */
int fake_failed_sync(void); /* errno of a sync, of a file or directory, that the plan made fail; or 0 */
uint64_t fake_count(void);
uint64_t fake_count_of(enum fake_call call);
const struct fake_note *fake_note_at(uint64_t number); /* from 1; NULL: no such call, or too long ago to be kept */

const char *fake_call_name(enum fake_call call);

#endif /* WEIR_TESTS_FAKE_KERNEL_H */
