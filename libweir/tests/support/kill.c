/* kill.c: see kill.h. */
#include "kill.h"

#include <dirent.h>
#include <stdarg.h>
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

int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t raw_clone(void) { return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); }

void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory == MAP_FAILED ? -errno : 0);
    return memory;
}
