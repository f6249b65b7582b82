/* replace_places.c: weir_open_replace with relative names in a program that changes its working directory, and without
 * /proc; durability WEIR_WHOLE without /proc. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

static char directory[] = "/tmp/weir-places-XXXXXX";

static unsigned count_files(const char *where)
{
    unsigned count = 0;
    DIR *d = opendir(where);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return count;
}

/* Returns the content of a file, "" if there is none, and removes the file. */
static const char *take(const char *path)
{
    static char is[100];
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, is, sizeof is - 1);
    is[got < 0 ? 0 : got] = '\0';
    close(fd);
    unlink(path);
    return is;
}

enum ending { REPLACE, CLOSE, EXIT };

/* Opens the file `name` in the directory a, ends the stream in the directory b. */
static int open_and_move(const char *name, const char *place, enum ending ending)
{
    weir_stream *s;
    if (chdir(directory) != 0 || chdir(place) != 0)
        return -1;
    int result = weir_open_replace(&s, name, NULL);
    if (result < 0)
        return result;
    weir_put_str(s, "new\n");
    if (chdir(directory) != 0 || chdir("b") != 0)
        return -1;
    if (ending == EXIT)
        exit(0);
    return ending == REPLACE ? weir_replace(s) : weir_close(s);
}

static void in_another_directory(const char *name, const char *place, bool exists)
{
    check_begin("chdir after opening %s file %s in %s", exists ? "the" : "a new", name, place);
    char path[100];
    int status = -1, result;
    snprintf(path, sizeof path, "%s/a/file", directory);
    for (int ending = REPLACE; ending <= EXIT; ending++) {
        unlink(path);
        if (exists)
            close(open(path, O_WRONLY | O_CREAT, 0600));
        pid_t child = ending == EXIT ? fork() : 0;
        if (child == 0) {
            result = open_and_move(name, place, (enum ending)ending);
            check(result == 0, "end %d: %d", ending, result);
        } else {
            waitpid(child, &status, 0);
            check(status == 0, "exit: %d", status);
        }
        check(chdir(directory) == 0 && count_files("b") == 0, "end %d: %u files in the other directory", ending, count_files("b"));
        check(count_files("a") == (ending == REPLACE || exists), "end %d: %u files", ending, count_files("a"));
        const char *is = take(path);
        check(strcmp(is, ending == REPLACE ? "new\n" : "") == 0, "end %d: %s", ending, is);
    }
}

static void names(void)
{
    check_begin("names of no file");
    weir_stream *s;
    check(chdir(directory) == 0 && chdir("a") == 0, "chdir");
    check(weir_open_replace(&s, "", NULL) == -ENOENT && !s, "an empty name");
    check(weir_open_replace(&s, "new/", NULL) == -ENOENT && !s, "a directory that does not exist");
    check(weir_open_replace(&s, "none/new", NULL) == -ENOENT && !s, "a file in it");
    check(weir_open_replace(&s, "..", NULL) == -EINVAL && !s, "a directory");
    check(symlink("nowhere", "link") == 0 && weir_open_replace(&s, "link", NULL) == 0 && weir_replace(s) == 0, "a dangling link");
    struct stat status;
    check(lstat("link", &status) == 0 && S_ISREG(status.st_mode) && unlink("link") == 0, "is replaced");
    check(count_files(".") == 0, "%u files are left", count_files("."));
}

/* ---- without /proc ---- */

static int replaced_file(const char *path)
{
    weir_stream *s;
    struct weir_options options = {.durability = WEIR_WHOLE};
    int result = weir_open_replace(&s, path, NULL);
    if (result < 0 || weir_put_str(s, "a\n") != 2 || (result = weir_replace(s)) < 0)
        return result;
    if ((result = weir_open_replace(&s, path, &options)) < 0 || weir_put_str(s, "b\n") != 2)
        return result;
    return weir_replace(s);
}

static int whole_records(const char *path, bool moved)
{
    weir_stream *s;
    struct weir_options options = {.durability = WEIR_WHOLE, .mode = WEIR_RECORD};
    int result = weir_open(&s, path, O_WRONLY | O_CREAT | O_APPEND, &options);
    if (result < 0)
        return result;
    weir_putrec(s, "one", 3);
    if (moved && (chdir("/") != 0 || rename("d/file", "d/moved") != 0))
        return -1;
    weir_putrec(s, "two", 3);
    return weir_close(s);
}

static void expect(int result, int expected, const char *what, const char *path, const char *text)
{
    const char *is = take(path);
    check(result == expected && strcmp(is, text) == 0, "%s: %d, %s", what, result, is);
}

static void run_without_proc(void)
{
    weir_stream *s;
    struct weir_options whole = {.durability = WEIR_WHOLE}, data = {.durability = WEIR_DATA};
    if (chroot(directory) != 0 || chdir("/") != 0)
        _exit(77);
    expect(replaced_file("/d/new"), 0, "an absolute name", "/d/new", "b\n");
    check(chdir("/d") == 0, "chdir");
    expect(replaced_file("new"), 0, "a relative name", "new", "b\n");
    expect(whole_records("/d/file", false), 0, "WEIR_WHOLE", "/d/file", "one\ntwo\n");
    expect(whole_records("file", false), 0, "WEIR_WHOLE of a relative name", "file", "one\ntwo\n");
    expect(whole_records("file", true), -ENOENT, "of a file that was moved", "/d/moved", "one\ntwo\n");
    int fd = open("/d/given", O_WRONLY | O_CREAT, 0600);
    expect(weir_fdopen(&s, fd, &whole), -ENOENT, "WEIR_WHOLE of a descriptor", "/d/given", "");
    check(weir_fdopen(&s, fd, &data) == 0 && weir_close(s) == 0, "WEIR_DATA of a descriptor");
    check(count_files("/d") == 0, "%u files are left", count_files("/d"));
    _exit(check_wrong() != 0);
}

static void without_proc(void)
{
    int status = -1;
    check_begin("in a directory without /proc");
    pid_t child = fork();
    if (child == 0)
        run_without_proc();
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        check_skip("chroot(2) needs a privilege");
    else
        check(status == 0, "status %x", (unsigned)status);
}

int main(void)
{
    char path[100];
    if (!mkdtemp(directory))
        return 1;
    for (const char *name = "abd"; *name; name++) {
        snprintf(path, sizeof path, "%s/%c", directory, *name);
        mkdir(path, 0700);
    }
    for (int exists = 0; exists < 2; exists++) {
        in_another_directory("file", "a", exists);
        in_another_directory("./file", "a", exists);
        in_another_directory("a/file", ".", exists);
        in_another_directory("../a/file", "d", exists);
    }
    names();
    without_proc();
    check(chdir(directory) == 0 && rmdir("a") == 0 && rmdir("b") == 0 && rmdir("d") == 0 && rmdir(directory) == 0, "files are left");
    return check_finish("replace_places");
}
