/* events.h: what the program in the kernel and weir tell each other. The Rust side reads the same structs by
 * their offsets (../src/wire.rs, whose tests compare sizes). All little-endian, no padding. */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

enum { SLOTS = 32 /* a power of two: the verifier understands masks */, HEAD = 64, PATH = 248, NAME = 64, PREVIEW = 256, CLASSES = 512 };
enum { FIRST_CALLS = 8, FAILED_CALLS = 32, TOLD_SEEKS = 64 }; /* so many of a stream are told one by one */
enum { STRANGERS = 8 }; /* behind so many a stream's first read is not looked at any more */

/* What a system call's number means to the program in the kernel. 0: nothing. */
enum class {
    CLASS_READ = 1, /* (fd, buffer, bytes) */
    CLASS_WRITE,
    CLASS_PREAD,    /* (fd, buffer, bytes, offset) */
    CLASS_PWRITE,
    CLASS_READV,    /* (fd, iovec, count) */
    CLASS_WRITEV,
    CLASS_PREADV,   /* (fd, iovec, count, offset) */
    CLASS_PWRITEV,
    CLASS_RECVMSG,  /* (fd, msghdr) */
    CLASS_SENDMSG,
    CLASS_COPY_01,  /* (out, in …): sendfile */
    CLASS_COPY_02,  /* (in, offset, out …): splice, copy_file_range */
    CLASS_TEE,      /* (in, out …) */
    CLASS_LSEEK,
    CLASS_CLOSE,
    CLASS_CLOSE_RANGE,
    CLASS_DUP_TO,   /* (from, to): dup2, dup3 */
    CLASS_NEW_FD,   /* returns a descriptor: dup, socket, accept … */
    CLASS_OPENAT,   /* (directory, path …): returns a descriptor */
    CLASS_OPEN,     /* (path …) */
    CLASS_FCNTL,
    CLASS_PATH_0,   /* (path): unlink, truncate */
    CLASS_PATH_1,   /* (directory, path): unlinkat */
    CLASS_PATHS_01, /* (from, to): rename, link */
    CLASS_PATHS_13, /* (directory, from, directory, to): renameat, linkat */
    CLASS_MMAP,
    CLASS_PAIR_0,   /* (two descriptors): pipe */
    CLASS_PAIR_3,   /* (domain, type, protocol, two descriptors): socketpair */
    CLASS_PLAIN,    /* worth telling, with its arguments: ftruncate, fadvise … */
    CLASS_SYNC,     /* (fd): fsync, fdatasync …; told with when it can have begun at the earliest */
    CLASS_PROTECT,  /* (address, bytes, protection): mprotect */
    CLASS_RING,     /* (entries, parameters): io_uring_setup, returns a descriptor; told with the flags of its parameters */
};

enum kind {
    KIND_CALL = 1,
    KIND_COUNTS,
    KIND_FORK,
    KIND_EXEC,
    KIND_EXIT,
    KIND_BUFFER,
};

enum moment { MOMENT_SAMPLE, MOMENT_FORK, MOMENT_EXEC, MOMENT_EXIT, MOMENT_SIGNAL };

/* The beginning of every event. */
struct head {
    unsigned long long ns;
    unsigned int kind, pid, tid, fd;
};

/* An open file as the kernel has it. */
struct identity {
    unsigned long long key, dev, ino, pos, size;
    unsigned int mode, flags, pipe_pages, block_bits;
};

struct call {
    struct head head;
    struct identity file;
    unsigned long long args[6];
    long long result;
    unsigned int nr, counted;
    unsigned int data_bytes;
    int tail; /* -1: not read */
    unsigned char data[HEAD];
};

struct path_call {
    struct call call;
    unsigned long long moved; /* 1: the process stands in another directory than at its last event with this */
    char path[2][PATH];
};

struct counts {
    struct head head;
    struct identity file;
    unsigned long long first_ns, last_ns;
    unsigned long long bytes; /* of calls that moved more than one */
    unsigned long long errors, again, zeros, shorts, newline_ends, jumps, again_bytes, unaligned, in_kernel;
    unsigned long long asked_max, position, high;
    unsigned long long seeks, seek_ns; /* lseek(2) that moved, and when the last was; position: to where */
    unsigned int writes, told, failed, regular;
    unsigned int tick, in_tick; /* of the kernel's clock, and so many calls in it: see stamp */
    unsigned long long doubted; /* since the last call there was a pause: the descriptor may be another file's */
    unsigned long long sizes[SLOTS];       /* what each call moved, errors left out */
    unsigned long long asked_other[SLOTS]; /* what it asked for, where that is another slot */
};

struct life {
    struct head head;
    unsigned long long read_calls, write_calls, read_bytes, written_bytes, user_ns, system_ns;
    unsigned long long run_ns; /* exact; the two above are sums of ticks */
    unsigned long long queued_ns, fetched_bytes; /* it could have run and had no processor; came from devices */
    unsigned int other; /* of a fork: the child; of an exit: the wait status */
    unsigned int flags; /* 1: of a fork: CLONE_FILES; of an execve: PLAIN; of an exit: descriptors above 63 were used */
    char comm[16];
    char path[PATH];
    unsigned long long argument_bytes; /* of an exec: the beginning of its arguments, each with its NUL */
    char arguments[PATH];
};

struct buffer {
    struct head head; /* fd: of the stream */
    struct identity file; /* what is behind that */
    char name[NAME];      /* its last part: the process may be gone before it is asked for the rest */
    unsigned long long address, base, end, pending, unread;
    unsigned int moment, flags, walker, call_fd;
    unsigned char data[PREVIEW];
};

/* Where a C library keeps its streams; the key is a file by its inode number and size. */
struct library_key {
    unsigned long long ino, size;
};
struct library {
    unsigned long long offset; /* of the list's head from where the file is mapped */
    unsigned int walker;       /* 1: glibc */
    unsigned int how;          /* 0: from the mapping's address; 1: from mm->start_code; 2: absolute; 3: see PLAIN */
};

/* A program of which weir has nothing to do when it begins: its streams are a library's. */
enum { PLAIN = 3 };

enum { GATED = -1 }; /* the image of a command that weir has not let go yet */
enum command {
    COMMAND = 1,
    HELD, /* is to stop where its C library stands */
};

struct process {
    unsigned long long list; /* the address of the list's head; 0: not known */
    unsigned int walker;
    int image;
    unsigned long long read_calls, write_calls, read_bytes, written_bytes, user_ns, system_ns, run_ns;
    unsigned long long queued_ns, fetched_bytes;
    unsigned int high_fds; /* descriptors above 63 were used, or counters put aside */
    unsigned int command;  /* weir's own child, whose end it waits for: enum command */
    unsigned long long directory; /* where it stood when weir was told of it */
    unsigned int strangers; /* so many streams in a row, at their first read, were none of its C library's */
    unsigned int unused; /* fills the eight bytes */
    unsigned long long streams[2]; /* of descriptors below 64: a bit each that has had counters, for reading and for writing */
};

struct stream_key {
    unsigned int pid;
    unsigned int fd_out; /* descriptor * 2, + 1 for writing; or none: see put_aside */
};

_Static_assert(sizeof(struct head) == 24 && sizeof(struct identity) == 56, "as wire.rs has them");
_Static_assert(sizeof(struct call) == 216 && sizeof(struct path_call) == 720, "as wire.rs has them");
_Static_assert(sizeof(struct counts) == 760 && sizeof(struct life) == 624, "as wire.rs has them");
_Static_assert(sizeof(struct buffer) == 456 && sizeof(struct process) == 128, "as wire.rs has them");

#endif
