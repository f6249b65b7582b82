/* events.h: the types and constants that the BPF programs and weir share. build.rs generates the Rust side from the BTF
 * of `union shared_types`, so this header is the only place where they are defined. Fields are naturally aligned and
 * leave no padding (build.rs checks it). */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

enum event_limit {
    SIZE_SLOTS = 32,        /* of the size histograms, one per power of two; itself one, for the verifier's masks */
    DATA_BYTES = 64,        /* first bytes of a transfer */
    PATH_BYTES = 248,       /* paths are truncated to this, with the NUL */
    NAME_BYTES = 64,        /* last component of a path */
    COMPONENT_BYTES = 256,  /* a component of a path, with the NUL: NAME_MAX of Linux + 1 */
    DIRECTORY_BYTES = 768,  /* the components of a working directory's path */
    PREVIEW_BYTES = 256,    /* first pending or read-ahead bytes of a buffer */
    SYSCALL_NUMBERS = 512,  /* above the highest system call number of x86-64 and arm64 */
    FIRST_CALLS = 8,        /* of a stream are emitted one by one: enough to tell its mode */
    FAILED_CALLS = 32,      /* failed and short calls of a stream that are emitted one by one */
    EMITTED_SEEKS = 64,     /* lseek(2) calls of a stream that are emitted one by one */
    UNBUFFERED_STREAMS = 8, /* after so many in a row, a stream's first read triggers no buffer walk */
};

/* How on_sys_exit handles a system call. 0: it ignores the call. */
enum syscall_class {
    CLASS_READ = 1, /* (fd, buffer, bytes) */
    CLASS_WRITE,
    CLASS_RECVFROM, /* (fd, buffer, bytes, flags) */
    CLASS_PREAD,    /* (fd, buffer, bytes, offset) */
    CLASS_PWRITE,
    CLASS_READV,    /* (fd, iovec, count) */
    CLASS_WRITEV,
    CLASS_PREADV,   /* (fd, iovec, count, offset) */
    CLASS_PWRITEV,
    CLASS_VMSPLICE, /* (fd, iovec, count): reads from the reading end of a pipe */
    CLASS_RECVMSG,  /* (fd, msghdr, flags) */
    CLASS_SENDMSG,
    CLASS_RECVMMSG, /* (fd, mmsghdr, count, flags) */
    CLASS_SENDMMSG,
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
    CLASS_PLAIN,    /* emitted with its arguments: ftruncate, fadvise … */
    CLASS_SYNC,     /* (fd): fsync, fdatasync …; args[5] is the time since which it blocked, in ns */
    CLASS_PROTECT,  /* (address, bytes, protection): mprotect */
    CLASS_RING,     /* (entries, parameters): io_uring_setup, returns a descriptor; args[2] is the ring's flags */
};

/* The class of each system call, as CALL_NAME = CLASS_…. weir finds the number by the name. The kernel reports execve(2)
 * and execveat(2) by other tracepoints. */
enum classified_call {
    CALL_read = CLASS_READ,
    CALL_recvfrom = CLASS_RECVFROM,
    CALL_write = CLASS_WRITE, CALL_sendto = CLASS_WRITE,
    CALL_pread64 = CLASS_PREAD,
    CALL_pwrite64 = CLASS_PWRITE,
    CALL_readv = CLASS_READV,
    CALL_writev = CLASS_WRITEV,
    CALL_vmsplice = CLASS_VMSPLICE,
    CALL_preadv = CLASS_PREADV, CALL_preadv2 = CLASS_PREADV,
    CALL_pwritev = CLASS_PWRITEV, CALL_pwritev2 = CLASS_PWRITEV,
    CALL_recvmsg = CLASS_RECVMSG,
    CALL_sendmsg = CLASS_SENDMSG,
    CALL_recvmmsg = CLASS_RECVMMSG,
    CALL_sendmmsg = CLASS_SENDMMSG,
    CALL_sendfile = CLASS_COPY_01,
    CALL_splice = CLASS_COPY_02, CALL_copy_file_range = CLASS_COPY_02,
    CALL_tee = CLASS_TEE,
    CALL_lseek = CLASS_LSEEK,
    CALL_close = CLASS_CLOSE,
    CALL_close_range = CLASS_CLOSE_RANGE,
    CALL_dup2 = CLASS_DUP_TO, CALL_dup3 = CLASS_DUP_TO,
    CALL_dup = CLASS_NEW_FD, CALL_socket = CLASS_NEW_FD, CALL_accept = CLASS_NEW_FD, CALL_accept4 = CLASS_NEW_FD,
    CALL_eventfd2 = CLASS_NEW_FD, CALL_memfd_create = CLASS_NEW_FD,
    CALL_io_uring_setup = CLASS_RING,
    CALL_openat = CLASS_OPENAT, CALL_openat2 = CLASS_OPENAT,
    CALL_open = CLASS_OPEN, CALL_creat = CLASS_OPEN,
    CALL_fcntl = CLASS_FCNTL,
    CALL_truncate = CLASS_PATH_0, CALL_unlink = CLASS_PATH_0,
    CALL_unlinkat = CLASS_PATH_1,
    CALL_rename = CLASS_PATHS_01, CALL_link = CLASS_PATHS_01,
    CALL_renameat = CLASS_PATHS_13, CALL_renameat2 = CLASS_PATHS_13, CALL_linkat = CLASS_PATHS_13,
    CALL_mmap = CLASS_MMAP,
    CALL_pipe = CLASS_PAIR_0, CALL_pipe2 = CLASS_PAIR_0,
    CALL_socketpair = CLASS_PAIR_3,
    CALL_fsync = CLASS_SYNC, CALL_fdatasync = CLASS_SYNC, CALL_sync_file_range = CLASS_SYNC,
    CALL_sync = CLASS_PLAIN, CALL_syncfs = CLASS_PLAIN, CALL_msync = CLASS_PLAIN, CALL_fallocate = CLASS_PLAIN,
    CALL_ftruncate = CLASS_PLAIN, CALL_fadvise64 = CLASS_PLAIN,
    CALL_io_uring_enter = CLASS_PLAIN, CALL_io_submit = CLASS_PLAIN, CALL_kill = CLASS_PLAIN,
    CALL_tgkill = CLASS_PLAIN,
    /* Not an operation on a stream: shows that the dynamic loader has relocated the C library. */
    CALL_mprotect = CLASS_PROTECT,
};

enum event_kind {
    KIND_CALL = 1, /* struct call_event or path_call_event */
    KIND_COUNTERS, /* struct stream_counters */
    KIND_FORK,     /* struct lifecycle_event, as the next two */
    KIND_EXEC,
    KIND_EXIT,
    KIND_BUFFER,   /* struct buffer_event */
    KIND_DIRECTORY, /* struct directory_event */
    KIND_SIGNAL,    /* struct event_head: `pid` sends signal `fd` to process `tid` */
};

/* When a buffer snapshot is taken. */
enum buffer_moment { MOMENT_SAMPLE, MOMENT_FORK, MOMENT_EXEC, MOMENT_EXIT, MOMENT_SIGNAL };

/* Indices of the per-CPU map `tallies`. */
enum tally {
    TALLY_CALLS,        /* recorded calls */
    TALLY_LOST_EVENTS,  /* the ring buffer was full */
    TALLY_COMPAT_CALLS, /* calls of 32-bit programs, which are not decoded */
    TALLY_LOST_STREAMS, /* calls of streams that the map `streams` had no room for */
    TALLY_LOST_PROCESSES, /* children that the map `processes` had no room for */
    TALLY_UNKNOWN_BYTES, /* counted calls of which some bytes are in no counter */
    TALLY_CUT_WALKS,    /* buffer snapshots of a process with more streams than are read */
    TALLY_PATH_CALLS,   /* recorded calls that name a file */
    TALLY_STREAMS,      /* entries of `streams`: those that programs added minus those that programs deleted */
    TALLY_PROCESSES,    /* entries of `processes`, likewise */
    TALLIES,
};

/* The beginning of every event. */
struct event_head {
    unsigned long long ns; /* CLOCK_MONOTONIC */
    unsigned int kind;     /* enum event_kind */
    unsigned int pid, tid;
    int fd; /* -1: none */
};

/* struct file and its inode. */
struct open_file {
    unsigned long long key; /* address of the struct file; 0: none */
    unsigned long long dev, ino, pos, size;
    unsigned int mode, flags;
    unsigned int pipe_pages; /* 0: not a pipe */
    unsigned int block_bits;
};

struct call_event {
    struct event_head head;
    struct open_file file;
    unsigned long long args[6];
    long long result;
    unsigned int nr;
    unsigned int counted; /* 1: the call is in its stream's counters too */
    unsigned int data_bytes;
    int tail; /* last byte of the transfer; -1: not read */
    unsigned char data[DATA_BYTES];
};

struct path_call_event {
    struct call_event call;
    char path[2][PATH_BYTES];
};

/* The working directory of a process, before its first path_call_event or execve(2) in that directory. */
struct directory_event {
    struct event_head head;
    unsigned long long ino, dev;
    unsigned int name_bytes;
    unsigned int complete; /* 1: `names` reaches the root of the mount namespace */
    char names[DIRECTORY_BYTES]; /* components of the path from the last to the first, each with its NUL */
};

/* A stream, as counted. Also the value of the map `streams`. */
struct stream_counters {
    struct event_head head;
    struct open_file file;
    unsigned long long first_ns, last_ns; /* ends of the first and the last call */
    unsigned long long bytes;             /* of calls that moved more than one byte; sizes[1] counts the others */
    unsigned long long errors;
    unsigned long long again; /* EAGAIN, EINTR and restarted calls */
    unsigned long long zeros, shorts; /* calls that moved nothing, fewer than requested */
    unsigned long long newline_ends;  /* writes whose last byte is a newline */
    unsigned long long jumps;         /* calls that did not continue where the previous one ended */
    unsigned long long again_bytes;   /* at offsets that were read or written before */
    unsigned long long unaligned;     /* calls that begin or end off a 4096-byte boundary */
    unsigned long long in_kernel;     /* sendfile(2), splice(2) … */
    unsigned long long max_requested_bytes;
    unsigned long long position;       /* file offset after the last call */
    unsigned long long high_offset;    /* highest offset reached */
    unsigned long long seeks, seek_ns; /* lseek(2) calls; end of the last one */
    unsigned long long wait_ns;        /* for which calls blocked; calls that copy in the kernel excluded */
    unsigned int writes;               /* 1: write direction */
    unsigned int emitted, failed;      /* calls that were emitted one by one */
    unsigned int regular;              /* 1: a regular file */
    unsigned int tick, tick_calls;     /* jiffies of the last call, and the calls in that tick */
    unsigned long long stale; /* 1: no call since a sampling gap; the descriptor may refer to another file */
    unsigned long long sizes[SIZE_SLOTS];       /* bytes moved, by call; errors excluded */
    unsigned long long other_requested_sizes[SIZE_SLOTS]; /* requested bytes, if in another slot than the bytes moved */
};

struct lifecycle_event {
    struct event_head head;
    unsigned long long read_calls, write_calls, read_bytes, written_bytes;
    unsigned long long user_ns, system_ns;       /* sums of whole ticks */
    unsigned long long run_ns;                   /* exact CPU time */
    unsigned long long queued_ns;                /* runnable without a CPU */
    unsigned long long fetched_bytes;            /* read from devices */
    unsigned int child;                          /* of a fork */
    unsigned int status;                         /* of an exit: wait(2)'s status */
    unsigned int flags; /* 1: fork with CLONE_FILES; execve of a plain program; exit of a process with high_fds. 2: fork with CLONE_VM */
    unsigned int argument_bytes;
    char comm[16];
    char path[PATH_BYTES];
    char arguments[PATH_BYTES]; /* first bytes of argv, each argument with its NUL */
};

/* A stdio stream and the first bytes in its buffer. */
struct buffer_event {
    struct event_head head; /* fd: the stream's descriptor */
    struct open_file file;
    char name[NAME_BYTES];
    unsigned long long address, base, end;
    unsigned long long pending, unread; /* bytes */
    unsigned long long wide;            /* pending wide characters; `data` has the first ones if no bytes are pending */
    char charset[16];                   /* the name of the encoding into which the C library converts them */
    unsigned int moment;                /* enum buffer_moment */
    unsigned int flags;                 /* FILE._flags */
    unsigned int walker;                /* as in struct library */
    int call_fd;                        /* descriptor of the call that triggered the walk; -1: none */
    unsigned char data[PREVIEW_BYTES];
};

/* Key of the map `libraries`: an executable or library file. */
struct library_key {
    unsigned long long ino, size;
};

/* The base of the offset in struct library. */
enum list_base {
    LIST_IN_MAPPING,  /* the address of the file's mapping */
    LIST_IN_CODE,     /* mm->start_code */
    LIST_ABSOLUTE,
    LIST_IN_LIBRARY,  /* a program without a list of its own: its streams are in the C library that it maps */
};

/* Where a file keeps the head of its list of streams. */
struct library {
    unsigned long long offset;
    unsigned int walker; /* 1: glibc */
    unsigned int base;   /* enum list_base */
};

/* Values of process_state.command. 0: not weir's own child. */
enum command_state {
    COMMAND_CHILD = 1,
    COMMAND_STOPS, /* gets SIGURG once its C library is relocated */
};

/* process_state.image before the command's first execve(2). */
enum image_number { IMAGE_GATED = -1 };

/* Value of the map `processes`. */
struct process_state {
    unsigned long long list; /* address of the list head of streams; 0: unknown */
    unsigned int walker;
    int image; /* number of execve(2) calls */
    /* Sums over the threads that have exited: */
    unsigned long long read_calls, write_calls, read_bytes, written_bytes, user_ns, system_ns, run_ns;
    unsigned long long queued_ns, fetched_bytes;
    unsigned int high_fds;            /* 1: has counters of descriptors above 63, or detached counters */
    unsigned int command;             /* enum command_state */
    unsigned long long directory;     /* hash of the working directory in the last directory_event */
    unsigned int unbuffered_streams;  /* streams in a row that had no stdio buffer at their first read */
    unsigned int has_last_writes;     /* 1: the map `last_writes` has some of this image */
    unsigned long long fd_bits[2];    /* descriptors below 64 that have had counters: reads, writes */
    unsigned long long written_at, written_end; /* memory written by the last write(2) of a thread that ended in it; may be empty */
};

/* Key of the map `streams`. */
struct stream_key {
    unsigned int pid;
    unsigned int fd_out; /* descriptor * 2, + 1 for writes; with the top bit set: detached counters */
};

/* All types above, for build.rs. */
union shared_types {
    enum event_limit limit;
    enum syscall_class class;
    enum classified_call classified_call;
    enum event_kind kind;
    enum buffer_moment moment;
    enum tally tally;
    enum list_base list_base;
    enum command_state command_state;
    enum image_number image_number;
    struct path_call_event path_call;
    struct directory_event directory;
    struct stream_counters counters;
    struct lifecycle_event lifecycle;
    struct buffer_event buffer;
    struct library_key library_key;
    struct library library;
    struct process_state process;
    struct stream_key stream_key;
};

#endif
