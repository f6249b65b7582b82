/* kill.c: see kill.h. */
#include "kill.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char directory[128];

int64_t must_at(int64_t result, int line, const char *call)
{
    if (result >= 0)
        return result;
    printf("line %d: %s: %s\n", line, call, strerror(result == -1 ? errno : (int)-result));
    fflush(stdout);
    _exit(3);
}

static void empty_dir(void)
{
    char path[512];
    DIR *open_dir = opendir(directory);
    for (struct dirent *entry; open_dir && (entry = readdir(open_dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
    }
    if (open_dir)
        closedir(open_dir);
}

void kill_dir_remove(void)
{
    empty_dir();
    rmdir(directory);
}

void kill_dir(const char *parent)
{
    snprintf(directory, sizeof directory, "%s/weir-test-XXXXXX", parent);
    if (!mkdtemp(directory)) {
        strcpy(directory, "/tmp/weir-test-XXXXXX");
        must(mkdtemp(directory) ? 0 : -errno);
    }
    setenv("WEIR_SPILL_DIR", directory, 1);
}

const char *in_dir(const char *format, ...)
{
    enum { PATHS = 8 };
    static char path[PATHS][256];
    static unsigned next;
    char *to = path[next++ % PATHS];
    va_list arguments;
    int length = snprintf(to, sizeof *path, "%s/", directory);
    va_start(arguments, format);
    vsnprintf(to + length, sizeof *path - (size_t)length, format, arguments);
    va_end(arguments);
    return to;
}

int count_files(const char *suffix)
{
    int count = 0;
    DIR *open_dir = opendir(directory);
    for (struct dirent *entry; open_dir && (entry = readdir(open_dir)) != NULL;) {
        size_t length = strlen(entry->d_name);
        count += length >= strlen(suffix) && strcmp(entry->d_name + length - strlen(suffix), suffix) == 0;
    }
    if (open_dir)
        closedir(open_dir);
    return count;
}

const char *find_file(const char *prefix, const char *suffix)
{
    const char *found = NULL;
    DIR *open_dir = opendir(directory);
    for (struct dirent *entry; open_dir && !found && (entry = readdir(open_dir)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && length >= strlen(suffix) &&
            strcmp(entry->d_name + length - strlen(suffix), suffix) == 0)
            found = in_dir("%s", entry->d_name);
    }
    if (open_dir)
        closedir(open_dir);
    return found;
}

size_t read_file(const char *path, void *to, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got; fd >= 0 && length < bytes && (got = read(fd, (char *)to + length, bytes - length)) > 0;)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    return length;
}

void write_file(const char *path, const void *from, size_t bytes)
{
    int fd = (int)must(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    must(write(fd, from, bytes) == (ssize_t)bytes ? 0 : -EIO);
    close(fd);
}

void identify(const char *path, struct weir__spill_sink *sink)
{
    int fd = (int)must(open(path, O_RDONLY | O_CLOEXEC));
    must(weir__spill_identify(fd, sink));
    close(fd);
}

int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t raw_clone(void) { return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); }

const char *raw_clone_obstacle(void)
{
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory == MAP_FAILED ? -errno : 0);
    *memory = 1;
    bool advised = madvise(memory, 4096, MADV_WIPEONFORK) == 0;
    pid_t pid = raw_clone();
    if (pid == 0)
        _exit(*memory);
    bool wiped = advised && pid > 0 && wait_for(pid) == 0;
    munmap(memory, 4096);
    return wiped ? NULL : "memory is not wiped at clone(2) here";
}

const char *holder_obstacle(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    if (pid == 0)
        _exit(0);
    bool ok = pid > 0 && waitpid(pid, NULL, __WALL) == pid && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    return ok ? NULL : "clone(2) without exit signal or PR_SET_CHILD_SUBREAPER does not work here";
}

void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory == MAP_FAILED ? -errno : 0);
    return memory;
}

/* ---- records ---- */

size_t kill_record(char *to, unsigned writer, unsigned number)
{
    struct random random = random_from((uint64_t)writer << 32 | number);
    size_t length = (size_t)sprintf(to, "%u.%u ", writer, number), more = random_below(&random, KILL_RECORD - 32);
    while (more--)
        to[length++] = (char)('a' + random_below(&random, 26));
    to[length++] = '\n';
    return length;
}

bool kill_put(weir_stream *s, const char *record, size_t length, unsigned function)
{
    switch (function) {
    case 0: return weir_putrec(s, record, length - 1) == (ssize_t)length - 1;
    case 1: return weir_write(s, record, length) == (ssize_t)length;
    case 2: return weir_printf(s, "%.*s", (int)length, record) == (int)length;
    default:
        for (size_t i = 0; i < length; i++)
            if (weir_putc(s, record[i]) < 0)
                return false;
        return true;
    }
}

void kill_write(weir_stream *s, unsigned writer, unsigned from, unsigned upto)
{
    char record[KILL_RECORD];
    for (unsigned number = from; number < upto; number++)
        if (!kill_put(s, record, kill_record(record, writer, number), number % KILL_FUNCTIONS))
            _exit(9);
}

bool kill_check_records(const char *text, size_t bytes, unsigned writers, unsigned *counts)
{
    char record[KILL_RECORD];
    memset(counts, 0, writers * sizeof *counts);
    for (const char *line = text, *end; line < text + bytes; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        unsigned writer = (unsigned)strtoul(line, NULL, 10);
        size_t length = writer < writers ? kill_record(record, writer, counts[writer]) : 0;
        if (!check(end && length == (size_t)(end + 1 - line) && memcmp(line, record, length) == 0,
                   "at %zu of %zu: not record %u of writer %u: %.40s", (size_t)(line - text), bytes,
                   writer < writers ? counts[writer] : 0, writer, line))
            return false;
        counts[writer]++;
    }
    return true;
}
