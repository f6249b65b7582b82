/* kill_spill_dir.c: directory and names of spill files, and the owners and permissions that the directory may have. */
#include "support/kill.h"

static struct weir_options kill_safe = {.durability = WEIR_KILL, .mode = WEIR_FULL};

static void expect_dir(const char *expected)
{
    char have[256];
    int result = weir_spill_dir(have, sizeof have);
    check(result == 0 && strcmp(have, expected) == 0, "%s is not %s", have, expected);
}

static void directory_name(void)
{
    char fallback[256], small[8];
    check_begin("name of the directory");
    snprintf(fallback, sizeof fallback, "/dev/shm/weir-%u", (unsigned)geteuid());
    expect_dir(getenv("WEIR_SPILL_DIR"));
    check(weir_spill_dir(small, sizeof small) == -ENAMETOOLONG, "a buffer that is too small");
    char *was = strdup(getenv("WEIR_SPILL_DIR"));
    unsetenv("WEIR_SPILL_DIR");
    unsetenv("XDG_RUNTIME_DIR");
    expect_dir(fallback);
    setenv("XDG_RUNTIME_DIR", was, 1);
    char *in_runtime_dir = strdup(in_dir("weir"));
    expect_dir(in_runtime_dir);
    setenv("XDG_RUNTIME_DIR", "/proc/1/no-such", 1);
    expect_dir(fallback);
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    expect_dir(fallback);
    if (geteuid() == 0) { /* root with a user's environment must not make a directory that the user cannot use */
        must(chown(was, 12345, 12345));
        setenv("XDG_RUNTIME_DIR", was, 1);
        expect_dir(fallback);
        must(chown(was, 0, 0));
    }
    setenv("XDG_RUNTIME_DIR", was, 1);
    setenv("WEIR_SPILL_DIR", "", 1); /* as if it were not set */
    expect_dir(in_runtime_dir);
    setenv("WEIR_SPILL_DIR", was, 1);
    free(was);
    free(in_runtime_dir);
}

static int open_in(const char *dir)
{
    weir_stream *s = NULL;
    char *was = strdup(getenv("WEIR_SPILL_DIR"));
    setenv("WEIR_SPILL_DIR", dir, 1);
    int result = weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT, &kill_safe);
    if (result == 0)
        check(weir_close(s) == 0, "close");
    setenv("WEIR_SPILL_DIR", was, 1);
    free(was);
    return result;
}

static void directory_owner(void)
{
    struct stat status;
    check_begin("owner and permissions of the directory");
    check(open_in(in_dir("new")) == 0 && stat(in_dir("new"), &status) == 0 && (status.st_mode & 0777) == 0700,
          "a new directory");
    must(chmod(in_dir("new"), 0770));
    check(open_in(in_dir("new")) == -EPERM, "writable for a group");
    must(chmod(in_dir("new"), 01777));
    check(open_in(in_dir("new")) == -EPERM, "writable for all");
    must(chmod(in_dir("new"), 0755));
    check(open_in(in_dir("new")) == 0, "readable for all");
    must(symlink("new", in_dir("link")));
    check(open_in(in_dir("link")) == -ENOTDIR, "a link to a directory");
    check(open_in(in_dir("sink")) == -ENOTDIR, "a file");
    check(open_in(in_dir("no/such")) == -ENOENT, "in a missing directory");
    if (geteuid() == 0) {
        must(chown(in_dir("new"), 12345, 12345));
        check(open_in(in_dir("new")) == -EPERM, "another user's directory");
    }
    rmdir(in_dir("new"));
}

static void names(void)
{
    weir_stream *a, *b;
    struct stat status;
    char prefix[32];
    check_begin("names");
    must(weir_open(&a, in_dir("sink"), O_WRONLY, &kill_safe));
    must(weir_open(&b, in_dir("sink"), O_WRONLY, &kill_safe));
    sprintf(prefix, "%d-", (int)getpid());
    const char *found = find_file(prefix, ".weir");
    check(count_files("weir") == 2 && found, "two files with this process's PID");
    check(found && stat(found, &status) == 0 && (status.st_mode & 07777) == 0600, "mode %o", (unsigned)status.st_mode);
    check(weir_close(a) == 0 && weir_close(b) == 0 && count_files("weir") == 0, "close");
    struct weir_options options = kill_safe;
    options.spill = in_dir("mine.weir");
    must(weir_open(&a, in_dir("sink"), O_WRONLY, &options));
    check(access(in_dir("mine.weir"), F_OK) == 0, "a name from the options");
    check(weir_open(&b, in_dir("sink"), O_WRONLY, &options) == -EEXIST, "a name that exists");
    pid_t pid = fork();
    if (pid == 0) {
        must(weir_putc(a, 'x'));
        _exit(find_file("mine.weir.", "-0") && access(in_dir("mine.weir"), F_OK) == 0 && weir_close(a) == 0 ? 0 : 1);
    }
    check(wait_for(pid) == 0, "a child's file has another name");
    check(weir_close(a) == 0 && count_files("weir") == 0, "close");
}

/* The library finds the file after the program has called chdir(2). */
static void relative_name(void)
{
    weir_stream *s = NULL;
    char *was = getcwd(NULL, 0);
    struct weir_options options = kill_safe;
    check_begin("relative names");
    must(chdir(getenv("WEIR_SPILL_DIR")));
    options.spill = "near.weir";
    must(weir_open(&s, "sink", O_WRONLY | O_TRUNC, &options));
    must(weir_write(s, "here", 4));
    must(chdir("/"));
    check(access(in_dir("near.weir"), F_OK) == 0, "the file");
    check(weir_close(s) == 0 && access(in_dir("near.weir"), F_OK) != 0, "close");
    must(chdir(in_dir(".")));
    pid_t pid = fork();
    if (pid == 0) {
        must(weir_open(&s, "sink", O_WRONLY | O_TRUNC, &options));
        must(weir_write(s, "there", 5));
        _exit(0);
    }
    wait_for(pid);
    must(chdir(was));
    struct weir_recovered found;
    char have[8] = "";
    check(weir_recover(in_dir("near.weir"), -1, &found) == 0 && found.bytes == 5, "recover");
    check(found.path[0] == '/' && strstr(found.path, "/sink"), "the path is %s", found.path);
    check(read_file(in_dir("sink"), have, sizeof have) == 5 && memcmp(have, "there", 5) == 0, "the sink has %.5s", have);
    free(was);
}

static void refused_options(void)
{
    weir_stream *s = NULL;
    char memory[100];
    struct weir_options options = kill_safe;
    check_begin("options that cannot be kill-safe");
    check(weir_open(&s, in_dir("sink"), O_RDWR, &options) == -EINVAL, "reading and writing");
    options.buffer = memory;
    options.buffer_bytes = sizeof memory;
    check(weir_open(&s, in_dir("sink"), O_WRONLY, &options) == -EINVAL, "the caller's memory");
    options = (struct weir_options){.flags = WEIR_HOLDER};
    check(weir_open(&s, in_dir("sink"), O_WRONLY, &options) == -EINVAL, "WEIR_HOLDER without WEIR_KILL");
    options = (struct weir_options){.spill = "x"};
    check(weir_open(&s, in_dir("sink"), O_WRONLY, &options) == -EINVAL, "a spill file without WEIR_KILL");
    check(count_files("weir") == 0, "a spill file is left");
}

int main(void)
{
    kill_dir("/dev/shm");
    write_file(in_dir("sink"), "", 0);
    directory_name();
    directory_owner();
    names();
    relative_name();
    refused_options();
    kill_dir_remove();
    return check_finish("kill_spill_dir");
}
