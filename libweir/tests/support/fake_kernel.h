/* fake_kernel.h: system calls with injected faults. It replaces the entries of weir__kernel by functions that work on
 * files, pipes and terminals in memory, pass calls on real descriptors on, record every call, and make those calls
 * fail that a fault selects. For one thread only. */
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
    FAKE_FTRUNCATE,
    FAKE_CALLS
};

enum fake_kind { FAKE_FILE, FAKE_PIPE, FAKE_TERMINAL, FAKE_SOCKET };

struct fake_file {
    enum fake_kind kind;
    unsigned char *bytes;
    size_t size, capacity;
    size_t space;       /* writes beyond this size fail with ENOSPC; 0: no limit */
    size_t begin;       /* of a pipe, terminal or socket: bytes already read */
    unsigned syncs;
    uint64_t written;   /* bytes, ever */
    uint64_t synced;    /* value of `written` at the last sync */
    unsigned locks;     /* calls of F_OFD_SETLKW, to lock and to unlock */
    bool locked;
    bool not_writable;  /* for poll(2) */
    unsigned char *input; /* of a terminal or socket: the bytes to read, separate from the written ones */
    size_t input_size;
};

/* A fault hits the next `times` calls of the kinds `calls`, from call number `at` on; fake_forget restarts the
 * numbers at 1. */
struct fake_fault {
    uint64_t at, times;
    int error;       /* errno; 0: a short count */
    bool one_byte;   /* the short count is 1, else half */
    unsigned calls;  /* 1u << FAKE_WRITE | … */
};

struct fake_note {
    enum fake_call call;
    int fd;
    size_t requested; /* bytes */
    int64_t result; /* or -errno */
};

void fake_install(void);
/* Restores the real system calls. */
void fake_remove(void);

void fake_file_make(struct fake_file *f, enum fake_kind kind);
void fake_file_fill(struct fake_file *f, const void *bytes, size_t size);
void fake_file_free(struct fake_file *f);
/* Returns a new descriptor for the file, with the oflags of open(2). */
int fake_open(struct fake_file *f, int oflags);
bool fake_is_open(int fd);
int64_t fake_position(int fd);
/* Moves the position, as another process with the same open file description may do. */
void fake_set_position(int fd, int64_t position);

/* Sets the fault and resets its hits; NULL: no fault. */
void fake_plan(const struct fake_fault *fault);
/* Returns how many calls the fault has hit. */
uint64_t fake_hits(void);
/* Returns the record of the first call that the fault has hit, or NULL. It may be behind the fault's number: the memory of
 * closed streams is used again, so that a call of mmap(2) is missing when a scenario is repeated. */
const struct fake_note *fake_first_hit(void);
/* Restarts the numbers of calls at 1. */
void fake_forget(void);
/* Returns the errno of the last sync that the fault made fail, of a file or a directory, or 0. */
int fake_failed_sync(void);
uint64_t fake_count(void);
uint64_t fake_count_of(enum fake_call call);
/* Returns the record of call `number`, from 1 on; NULL if there was none or the record was overwritten. */
const struct fake_note *fake_note_at(uint64_t number);

const char *fake_call_name(enum fake_call call);

#endif /* WEIR_TESTS_FAKE_KERNEL_H */
