/* replace_faults.c: weir_open and weir_open_replace in a real directory, with a fault at every system call in turn: the
 * file is the old one or the whole new one, an error leaves no other file in the directory and no open descriptor. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/fake_kernel.h"

static char directory[64], path[80];
static const char old_text[] = "the old file\n";
static char new_text[20000];

enum { PARTS = 16 };
#define ALL (((1u << FAKE_CALLS) - 1) & ~(1u << FAKE_MMAP))

static const struct fake_fault faults[] = {
    {0, 1, 0, true, 1u << FAKE_WRITE},
    {0, 1, EINTR, false, ALL & ~(1u << FAKE_RENAME | 1u << FAKE_UNLINK | 1u << FAKE_FSTAT | 1u << FAKE_LSEEK | 1u << FAKE_FCNTL)},
    {0, 1, EIO, false, ALL & ~(1u << FAKE_UNLINK)},
    {0, UINT64_MAX, EIO, false, ALL & ~(1u << FAKE_UNLINK | 1u << FAKE_CLOSE)},
    {0, UINT64_MAX, ENOSPC, false, 1u << FAKE_WRITE | 1u << FAKE_FSYNC | 1u << FAKE_OPEN | 1u << FAKE_RENAME},
    {0, 1, EMFILE, false, 1u << FAKE_OPEN},
    {0, 1, EXDEV, false, 1u << FAKE_RENAME},
    {0, 1, ENOMEM, false, 1u << FAKE_MMAP},
};

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        count += e->d_name[0] != '.' || (e->d_name[1] != '.' && e->d_name[1] != '\0');
    closedir(d);
    return count;
}

static void set_up(bool with_old)
{
    unlink(path);
    if (!with_old)
        return;
    FILE *f = fopen(path, "w");
    fputs(old_text, f);
    fclose(f);
    chmod(path, 0640);
}

/* Returns 'o' for the old file, 'n' for the new one, '-' for none, '?' for any other. */
static char file_state(void)
{
    static char is[sizeof new_text + 1];
    FILE *f = fopen(path, "r");
    if (!f)
        return '-';
    size_t bytes = fread(is, 1, sizeof is, f);
    fclose(f);
    if (bytes == strlen(old_text) && memcmp(is, old_text, bytes) == 0)
        return 'o';
    return bytes == sizeof new_text && memcmp(is, new_text, bytes) == 0 ? 'n' : '?';
}

struct outcome {
    int opened, result;
    ssize_t accepted;
};

static int replace_or_close(weir_stream *s, bool cancel)
{
    if (!cancel)
        return weir_replace(s);
    weir_close(s);
    return -ECANCELED;
}

static struct outcome replace_file(const struct weir_options *options)
{
    struct outcome o = {0};
    weir_stream *s = NULL;
    o.opened = weir_open_replace(&s, path, options);
    if (o.opened < 0) {
        check(s == NULL, "a failed open sets the stream to NULL");
        return o;
    }
    for (size_t at = 0; at < sizeof new_text; at += sizeof new_text / PARTS) {
        ssize_t part = weir_write(s, new_text + at, sizeof new_text / PARTS);
        o.accepted += part > 0 ? part : 0;
    }
    bool refused = o.accepted < (ssize_t)sizeof new_text && weir_error(s) == 0; /* -ENOMEM is not sticky */
    o.result = replace_or_close(s, refused);
    return o;
}

/* Replaces the file, with the fault if not NULL, and checks the directory. Returns the number of system calls. */
static uint64_t run(bool with_old, const struct weir_options *options, const struct fake_fault *fault)
{
    set_up(with_old);
    unsigned before = count_descriptors();
    fake_forget();
    fake_plan(fault);
    struct outcome o = replace_file(options);
    uint64_t calls = fake_count(), hits = fake_hits();
    enum fake_call call = fault && fake_note_at(fault->at) ? fake_note_at(fault->at)->call : FAKE_CALLS;
    fake_plan(NULL);
    const char *name = call < FAKE_CALLS ? fake_call_name(call) : "none";
    int error = fault ? fault->error : 0;
    char is = file_state(), without = with_old ? 'o' : '-';
    bool ok = o.opened == 0 && o.result == 0;
    if (!hits || error == 0 || error == EINTR)
        check(ok, "%s %d: open returned %d, replace %d", name, error, o.opened, o.result);
    check(is == 'n' || is == without, "%s %d: half a file: %c", name, error, is);
    if (ok)
        check(is == 'n' && o.accepted == sizeof new_text, "%s %d: replace returned 0, the file is %c", name, error, is);
    if (ok || is == 'n')
        check(count_files() == 1, "%s %d: the new file, and %u files in all", name, error, count_files());
    else
        check(count_files() == with_old, "%s %d: %u files are left", name, error, count_files());
    check(count_descriptors() == before, "%s %d: %u descriptors are left", name, error, count_descriptors() - before);
    return calls;
}

static void every_call(bool with_old, const struct weir_options *options)
{
    uint64_t calls = run(with_old, options, NULL);
    static unsigned char kinds[4096];
    for (uint64_t k = 1; k <= calls; k++)
        kinds[k] = (unsigned char)fake_note_at(k)->call;
    for (uint64_t k = 1; k <= calls; k++)
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            if (faults[i].calls & 1u << kinds[k]) {
                struct fake_fault fault = faults[i];
                fault.at = k;
                run(with_old, options, &fault);
            }
}

static void replaced(void)
{
    static const enum weir_mode modes[] = {WEIR_NONE, WEIR_LINE, WEIR_FULL, WEIR_RECORD};
    static const size_t sizes[] = {1, 100, 4096, 0};
    for (int m = 0; m < 4; m++)
        for (int old = 0; old < 2; old++) {
            check_begin("mode %d, %s old file", (int)modes[m], old ? "with an" : "without");
            for (int i = 0; i < 4; i++) {
                struct weir_options options = {.mode = modes[m], .buffer_bytes = sizes[i]};
                every_call(old, &options);
            }
        }
}

static void closed_instead(void)
{
    check_begin("closed instead of replaced");
    set_up(true);
    weir_stream *s = NULL;
    check(weir_open_replace(&s, path, NULL) == 0 && weir_put_str(s, "x") == 1, "open and write");
    check(weir_close(s) == 0 && file_state() == 'o' && count_files() == 1, "weir_close keeps the old file");
    struct stat status;
    check(stat(path, &status) == 0 && (status.st_mode & 07777) == 0640, "permissions after weir_close");
    check(weir_open_replace(&s, path, NULL) == 0 && weir_replace(s) == 0, "replacement by an empty file");
    check(stat(path, &status) == 0 && status.st_size == 0 && (status.st_mode & 07777) == 0640, "its permissions");
    check(weir_open_collector(&s, NULL) == 0 && weir_replace(s) == -EINVAL, "weir_replace of a collector");
    check(weir_open_replace(&s, "/tmp/weir-no-such-directory/file", NULL) == -ENOENT, "no such directory");
}

/* Checks the order: last write, fsync of the file, rename, fsync of the directory. */
static void in_order(void)
{
    check_begin("the calls are in order");
    set_up(true);
    weir_stream *s;
    check(weir_open_replace(&s, path, NULL) == 0 && weir_write(s, new_text, sizeof new_text) > 0, "open and write");
    int fd = weir_fd(s);
    fake_forget();
    check(weir_replace(s) == 0, "weir_replace");
    uint64_t written = 0, synced = 0, renamed = 0, directory_synced = 0;
    for (uint64_t i = 1; i <= fake_count(); i++) {
        const struct fake_note *note = fake_note_at(i);
        written = note->call == FAKE_WRITE ? i : written;
        synced = note->call == FAKE_FSYNC && note->fd == fd && !synced ? i : synced;
        renamed = note->call == FAKE_RENAME ? i : renamed;
        directory_synced = note->call == FAKE_FSYNC && note->fd != fd ? i : directory_synced;
    }
    check(written && written < synced && synced < renamed && renamed < directory_synced, "write %d, fsync %d, rename %d, directory %d",
          (int)written, (int)synced, (int)renamed, (int)directory_synced);
}

static void through_a_link(void)
{
    check_begin("a symbolic link is kept");
    char link[100];
    set_up(true);
    snprintf(link, sizeof link, "%s/link", directory);
    check(symlink(path, link) == 0, "symlink");
    weir_stream *s = NULL;
    struct stat status;
    check(weir_open_replace(&s, link, NULL) == 0 && weir_write(s, new_text, sizeof new_text) > 0, "open and write");
    check(weir_replace(s) == 0 && file_state() == 'n', "the link's target is replaced");
    check(lstat(link, &status) == 0 && S_ISLNK(status.st_mode), "the link is kept");
    unlink(link);
}

/* Applies to the open(2) of the temporary file. */
static struct {
    int (*open)(const char *path, int flags, mode_t permissions);
    mode_t seen;        /* permissions at the creation; ~0: no file was created yet */
    const char *appears; /* a file that another program creates before the temporary file; NULL: none */
} spied;

static int spy_open(const char *name, int flags, mode_t permissions)
{
    if (spied.appears && flags & O_CREAT)
        close(open(spied.appears, O_WRONLY | O_CREAT, 0600));
    int fd = spied.open(name, flags, permissions);
    struct stat status;
    if (flags & O_CREAT && fd >= 0 && fstat(fd, &status) == 0)
        spied.seen = status.st_mode & 07777;
    return fd;
}

/* A descriptor that another user opens before the temporary file has the permissions of the replaced file would show
 * the new content. */
static void nobody_else_may_open_it(void)
{
    check_begin("the temporary file of a private file is private from the start");
    weir_stream *s = NULL;
    struct stat status;
    spied.open = weir__kernel.open;
    weir__kernel.open = spy_open;
    for (int appears = 0; appears < 2; appears++) {
        set_up(!appears);
        if (!appears)
            chmod(path, 0600);
        spied.appears = appears ? path : NULL;
        spied.seen = ~(mode_t)0;
        check(weir_open_replace(&s, path, NULL) == 0, "open_replace");
        check(spied.seen == 0600, "it had the permissions %o", (unsigned)spied.seen);
        weir_put_str(s, "secret");
        check(weir_replace(s) == 0 && stat(path, &status) == 0 && (status.st_mode & 07777) == 0600 && status.st_size == 6,
              "the new file has the permissions %o", (unsigned)status.st_mode);
    }
    spied.appears = NULL;
    set_up(false);
    mode_t mask = umask(027);
    check(weir_open_replace(&s, path, NULL) == 0 && weir_replace(s) == 0, "a new file");
    umask(mask);
    check(stat(path, &status) == 0 && (status.st_mode & 07777) == 0640, "permissions %o", (unsigned)status.st_mode);
    weir__kernel.open = spied.open;
    check(count_files() == 1, "%u files are left", count_files());
}

static void longest_name(void)
{
    check_begin("a name as long as the file system permits");
    char name[NAME_MAX + 1], whole[sizeof directory + sizeof name + 1];
    for (int length = 230; length <= NAME_MAX; length++) {
        memset(name, 'n', (size_t)length);
        name[length] = '\0';
        snprintf(whole, sizeof whole, "%s/%s", directory, name);
        weir_stream *s = NULL;
        int result = weir_open_replace(&s, whole, NULL);
        if (check(result == 0, "%d bytes: open_replace returned %d", length, result))
            check(weir_replace(s) == 0 && unlink(whole) == 0, "%d bytes: replace", length);
    }
    weir_stream *s = (weir_stream *)(uintptr_t)1;
    snprintf(whole, sizeof whole, "%s/%sx", directory, name);
    check(weir_open_replace(&s, whole, NULL) == -ENAMETOOLONG && !s, "a longer name");
}

static void opening_fails(void)
{
    check_begin("weir_open with every call failing");
    set_up(true);
    for (int access = O_RDONLY; access <= O_RDWR; access++)
        for (int i = 0; i < (int)(sizeof faults / sizeof *faults); i++)
            for (uint64_t k = 1; k < 8; k++) {
                struct fake_fault fault = faults[i];
                fault.at = k;
                fault.times = fault.times > 1 ? 1 : fault.times;
                unsigned before = count_descriptors();
                weir_stream *s = (weir_stream *)(uintptr_t)1;
                fake_forget();
                fake_plan(&fault);
                int result = weir_open(&s, path, access | O_APPEND, NULL);
                bool hit = fake_hits() > 0;
                fake_plan(NULL);
                if (result == 0)
                    check(weir_close(s) == 0, "close");
                else
                    check(hit && s == NULL && result == -fault.error && result != -EINTR, "open returned %d", result);
                check(count_descriptors() == before, "%u descriptors are left", count_descriptors() - before);
            }
}

int main(void)
{
    strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/weir-replace-XXXXXX" : "/tmp/weir-replace-XXXXXX");
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof path, "%s/file", directory);
    for (size_t i = 0; i < sizeof new_text; i++)
        new_text[i] = i % 70 == 69 ? '\n' : (char)('a' + i * 7 % 26);
    fake_install();
    replaced();
    closed_instead();
    in_order();
    through_a_link();
    nobody_else_may_open_it();
    longest_name();
    opening_fails();
    unlink(path);
    check_begin("no file is left");
    check(rmdir(directory) == 0, "the directory is not empty");
    return check_finish("replace_faults");
}
