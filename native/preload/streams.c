/* streams.c: sets the modes of stdio streams, and keeps a table of the streams that the program opens. */
#include "streams.h"

#include "gather.h"
#include "handlers.h"

enum { MAX_KNOWN = 256, ERR_INTR = -4 };
/* Words of the FILE of glibc and musl, glibc's _cur_column as the index of a short, and its _mode as that of an int. */
enum { GLIBC_WRITE_BASE = 4, GLIBC_WRITE_POINTER = 5, GLIBC_OFFSET = 18, GLIBC_COLUMN = 64, GLIBC_MODE = 48 };
enum { MUSL_WRITE_BASE = 7 };

/* The bytes that were pending at the fork. */
struct inherited {
    size_t bytes;
    uint64_t hash;
};

/* The streams that the program has opened. A slot is claimed and freed by one atomic step, because threads open
   files. */
static struct known {
    struct file *stream;
    void *memory; /* its buffer, if the library has allocated it */
    size_t bytes;
    struct inherited inherited;
    int forced;
} known[MAX_KNOWN];

static struct known *known_find(struct file *stream) {
    for (int i = 0; i < MAX_KNOWN; i++)
        if (__atomic_load_n(&known[i].stream, __ATOMIC_ACQUIRE) == stream) return &known[i];
    return NULL;
}

static struct known *known_add(struct file *stream) {
    for (int i = 0; i < MAX_KNOWN; i++) {
        struct file *none = NULL;
        if (__atomic_compare_exchange_n(&known[i].stream, &none, stream, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &known[i];
    }
    return NULL;
}

/* The number of threads that flush the stream of each slot. The kernel zeroes the page in a forked child, which has none of
   these threads. */
static uint32_t *users;

static void start_users(void) {
    enum { MADV_WIPE_ON_FORK = 18, BYTES = MAX_KNOWN * sizeof *users };
    if ((!config.order && !config.exec_flush) || !(users = sys_pages(BYTES))) return;
    if (sys3(__NR_madvise, users, BYTES, MADV_WIPE_ON_FORK) == 0) return;
    sys2(__NR_munmap, users, BYTES);
    users = NULL;
}

/* Ends a use. In a child that a handler has forked meanwhile the number is already 0. */
static void release(int i) {
    uint32_t n = users ? users[i] : 0;
    while (n && !__atomic_compare_exchange_n(&users[i], &n, n - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
}

/* Returns the stream of a slot, or null. fclose waits for `release` before it frees the stream. */
static struct file *hold(int i) {
    if (!__atomic_load_n(&known[i].stream, __ATOMIC_ACQUIRE)) return NULL;
    if (users) __atomic_fetch_add(&users[i], 1, __ATOMIC_SEQ_CST);
    struct file *stream = __atomic_load_n(&known[i].stream, __ATOMIC_SEQ_CST);
    if (!stream) release(i);
    return stream;
}

/* Waits until no other thread flushes the stream that this slot had. The wait has an end, because a child of vfork(2) can
   be killed in a flush. */
static void await_release(const struct known *slot) {
    enum { SLEEP_NS = 50000, MAX_SLEEPS = 100000 };
    const volatile uint32_t *used = users ? &users[slot - known] : NULL;
    for (int sleeps = 0; used && *used && sleeps < MAX_SLEEPS; sleeps++) {
        long moment[2] = {0, SLEEP_NS};
        sys2(__NR_nanosleep, moment, NULL);
    }
}

static int set_buffer(struct file *stream, char *memory, int kind, size_t bytes) {
    int (*call)(struct file *, char *, int, size_t) = NEXT("setvbuf");
    return call ? call(stream, memory, kind, bytes) : -1;
}

/* Allocates a full buffer, because glibc ignores a size without memory. */
static void set_mode(struct known *slot, struct file *stream, struct mode mode) {
    void *memory = NULL;
    if (mode.kind == MODE_KEEP) return;
    if (mode.kind == MODE_FULL && !(memory = sys_pages(mode.bytes))) return;
    if (set_buffer(stream, memory, (int)mode.kind, mode.bytes) != 0) {
        if (memory) sys2(__NR_munmap, memory, mode.bytes);
        return;
    }
    if (slot) {
        slot->memory = memory;
        slot->bytes = mode.bytes;
        slot->forced = config.force;
    }
}

void streams_start(void) {
    start_users();
    if (&stdin && stdin) set_mode(NULL, stdin, config.standard[0]);
    if (&stdout && stdout) set_mode(NULL, stdout, config.standard[1]);
    if (&stderr && stderr) set_mode(NULL, stderr, config.standard[2]);
}

int streams_forced(struct file *stream) {
    if (!config.force) return 0;
    if (&stdin && stream == stdin) return config.standard[0].kind != MODE_KEEP;
    if (&stdout && stream == stdout) return config.standard[1].kind != MODE_KEEP;
    if (&stderr && stream == stderr) return config.standard[2].kind != MODE_KEEP;
    struct known *slot = known_find(stream);
    return slot && slot->forced;
}

static void flush_one(struct file *stream, int fd) {
    if (!stream || !__fpending || !fflush || !fileno) return;
    if (__fpending(stream) && (fd < 0 || fileno(stream) == fd) && handlers_permit_flush(stream)) fflush(stream);
}

void streams_flush(int fd) {
    if (&stdout) flush_one(stdout, fd);
    if (&stderr) flush_one(stderr, fd);
    for (int i = 0; i < MAX_KNOWN; i++) {
        struct file *stream = hold(i);
        flush_one(stream, fd);
        if (stream) release(i);
    }
}

static struct inherited standard_inherited[2];

static size_t pending(struct file *stream) { return stream && __fpending ? __fpending(stream) : 0; }

/* Wide characters are pending in another buffer. */
static int is_wide(const struct file *stream) {
    return gnu_get_libc_version && ((const int *)(const void *)stream)[GLIBC_MODE] > 0;
}

/* Returns the FNV-1a hash of the first `n` pending bytes; 0 for wide characters. */
static uint64_t hash_of(const struct file *stream, size_t n) {
    char *const *words = (char *const *)(const void *)stream;
    const unsigned char *bytes =
        (const unsigned char *)words[gnu_get_libc_version ? GLIBC_WRITE_BASE : MUSL_WRITE_BASE];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if (is_wide(stream)) return 0;
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* glibc adds the bytes of each flush to the column of a stream, or counts them from the last newline on, unless the column is
   0, and reads it nowhere else. A flush therefore changes this value. */
enum { UNCHANGED_COLUMN = 0xffff };

static uint16_t *column_of(struct file *stream) {
    return gnu_get_libc_version ? &((uint16_t *)(void *)stream)[GLIBC_COLUMN] : NULL;
}

static void note_inherited(struct file *stream, struct inherited *inherited) {
    *inherited = (struct inherited){pending(stream), 0};
    if (!inherited->bytes) return;
    inherited->hash = hash_of(stream, inherited->bytes);
    if (column_of(stream)) *column_of(stream) = UNCHANGED_COLUMN;
}

void streams_note_inherited(void) {
    if (&stdout) note_inherited(stdout, &standard_inherited[0]);
    if (&stderr) note_inherited(stderr, &standard_inherited[1]);
    for (int i = 0; i < MAX_KNOWN; i++) note_inherited(known[i].stream, &known[i].inherited);
}

/* Returns true if the inherited bytes are still the first of the `n` pending ones: not flushed, discarded by __fpurge, or written
   by weir. Is wrong only if the process has printed the same bytes again after it discarded or, in musl, flushed them, or after
   it flushed a multiple of 65,536 bytes without a newline. */
static int has_inherited(struct file *stream, const struct inherited *inherited, size_t n) {
    const uint16_t *column = column_of(stream);
    if (n < inherited->bytes || (column && *column != UNCHANGED_COLUMN)) return 0;
    return hash_of(stream, inherited->bytes) == inherited->hash;
}

/* Moves the bytes after the first `keep` pending ones out of a glibc stream to its file. Those that the file does not take
   stay. The process has one thread: it has forked, or the bytes would not be inherited. */
static void write_behind(struct file *stream, size_t keep) {
    char **pointers = (char **)(void *)stream, *from = pointers[GLIBC_WRITE_BASE] + keep;
    int64_t *offset = (int64_t *)(void *)&pointers[GLIBC_OFFSET];
    const char *at = from, *end = pointers[GLIBC_WRITE_POINTER];
    if (is_wide(stream)) return;
    while (at < end) {
        long written = sys_write(fileno(stream), at, (size_t)(end - at));
        if (written < 0 && written != ERR_INTR) break;
        if (written > 0) at += written;
    }
    if (*offset >= 0) *offset += at - from;
    pointers[GLIBC_WRITE_POINTER] = text_put(from, at, (size_t)(end - at));
}

/* Writes the bytes after the inherited ones. If the exec then fails, the stream has only the inherited ones, so no byte is
   written again. If it has the inherited ones no longer, all bytes are its own. */
static void flush_own(struct file *stream, struct inherited *inherited) {
    size_t n = pending(stream);
    if (!n || !handlers_permit_flush(stream)) return;
    if (inherited->bytes && !has_inherited(stream, inherited, n)) inherited->bytes = 0;
    if (!inherited->bytes) fflush(stream);
    else if (n > inherited->bytes && gnu_get_libc_version) write_behind(stream, inherited->bytes);
}

void streams_flush_own(void) {
    if (!fflush || !fileno) return;
    if (&stdout) flush_own(stdout, &standard_inherited[0]);
    if (&stderr) flush_own(stderr, &standard_inherited[1]);
    for (int i = 0; i < MAX_KNOWN; i++) {
        struct file *stream = hold(i);
        flush_own(stream, &known[i].inherited);
        if (stream) release(i);
    }
}

/* Reads the path of a descriptor, for fdopen. The path is empty if /proc has none. */
static void name_of(int fd, char *to, size_t room) {
    char link[40] = "/proc/self/fd/";
    *text_put_number(link + text_length(link), (uint64_t)fd) = 0;
    long got = sys4(__NR_readlinkat, AT_FDCWD, link, to, room - 1);
    to[got > 0 ? got : 0] = 0;
}

/* Adds an opened stream to the table, and sets its configured mode. */
static struct file *register_stream(struct file *stream, const char *path) {
    if (!stream || !config.loaded || (!config.files_count && !config.order && !config.exec_flush)) return stream;
    struct known *slot = known_add(stream);
    for (int i = 0; slot && path && i < config.files_count; i++) {
        if (!glob_matches(config.files[i].glob, path)) continue;
        set_mode(slot, stream, config.files[i].mode);
        break;
    }
    return stream;
}

/* Frees the slot of a stream that closes, and returns the buffer that the library allocated for it. */
static void *unregister_stream(struct file *stream, size_t *bytes) {
    struct known *slot = known_find(stream);
    if (!stream || !slot) return NULL;
    void *memory = slot->memory;
    *bytes = slot->bytes;
    slot->memory = NULL;
    slot->forced = 0;
    slot->inherited.bytes = 0;
    __atomic_store_n(&slot->stream, NULL, __ATOMIC_SEQ_CST);
    await_release(slot);
    return memory;
}

EXPORT struct file *fopen(const char *path, const char *how);
EXPORT struct file *fopen(const char *path, const char *how) {
    struct file *(*call)(const char *, const char *) = NEXT("fopen");
    return call ? register_stream(call(path, how), path) : NULL;
}

EXPORT struct file *fopen64(const char *path, const char *how);
EXPORT struct file *fopen64(const char *path, const char *how) {
    struct file *(*call)(const char *, const char *) = NEXT("fopen64");
    return call ? register_stream(call(path, how), path) : fopen(path, how);
}

EXPORT struct file *fdopen(int fd, const char *how);
EXPORT struct file *fdopen(int fd, const char *how) {
    struct file *(*call)(int, const char *) = NEXT("fdopen");
    struct file *stream = call ? call(fd, how) : NULL;
    char path[4096];
    if (!stream || !config.loaded || !config.files_count) return register_stream(stream, NULL);
    name_of(fd, path, sizeof path);
    return register_stream(stream, path);
}

typedef struct file *reopen_call(const char *, const char *, struct file *);
static struct file *reopen(reopen_call *call, const char *path, const char *how, struct file *stream) {
    size_t bytes;
    if (!call) return NULL;
    if (stream != stdin && stream != stdout && stream != stderr) {
        unregister_stream(stream, &bytes); /* the stream keeps its buffer */
        return register_stream(call(path, how, stream), path);
    }
    return call(path, how, stream);
}

EXPORT struct file *freopen(const char *path, const char *how, struct file *stream);
EXPORT struct file *freopen(const char *path, const char *how, struct file *stream) {
    return reopen(NEXT("freopen"), path, how, stream);
}

EXPORT struct file *freopen64(const char *path, const char *how, struct file *stream);
EXPORT struct file *freopen64(const char *path, const char *how, struct file *stream) {
    return reopen(NEXT("freopen64"), path, how, stream);
}

EXPORT int fclose(struct file *stream);
EXPORT int fclose(struct file *stream) {
    int (*call)(struct file *) = NEXT("fclose");
    size_t bytes = 0;
    void *memory = config.loaded ? unregister_stream(stream, &bytes) : NULL;
    int late = gather_has_late_errors() && fileno ? gather_take_late_error(fileno(stream)) : 0;
    int status = call ? call(stream) : -1;
    if (memory) sys2(__NR_munmap, memory, bytes);
    return late ? fail(-late) : status;
}
