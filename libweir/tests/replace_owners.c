/* replace_owners.c: the set-user-ID and set-group-ID bits of a file that weir_replace replaces, for an ordinary user. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

enum { USER = 1201, GROUP = 1202, OTHER = 1203 }; /* they need not exist */

static char directory[] = "/tmp/weir-owners-XXXXXX", path[100];

static void make_old(uid_t owner, gid_t group, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    check(write(fd, "old\n", 4) == 4 && close(fd) == 0, "write the old file");
    check(chown(path, owner, group) == 0 && chmod(path, mode) == 0, "its owner");
}

/* Replaces the file. `syncs`: the program has synced all bytes itself, so that weir_replace has nothing to write. */
static int replace(const char *text, bool syncs)
{
    weir_stream *s;
    struct stat before;
    int result = weir_open_replace(&s, path, NULL);
    if (result < 0)
        return 1;
    if (fstat(weir_fd(s), &before) != 0 || before.st_mode & (S_ISUID | S_ISGID))
        return 2; /* other users could run the incomplete file */
    weir_put_str(s, text);
    if (syncs && weir_sync(s, WEIR_WHOLE) != 0)
        return 3;
    return weir_replace(s) == 0 ? 0 : 4;
}

/* Replaces the file as an ordinary user and checks the mode and the owner of the new one. */
static void expect(const char *name, const char *text, uid_t owner, gid_t group, mode_t mode, mode_t expected)
{
    for (int syncs = 0; syncs < 2; syncs++) {
        check_begin("%s, %s, mode %o", name, syncs ? "synced before" : *text ? "with bytes" : "empty", (unsigned)mode);
        struct stat is;
        int status = -1;
        make_old(owner, group, mode);
        pid_t child = fork();
        if (child == 0) {
            bool is_user = setgroups(0, NULL) == 0 && setgid(GROUP) == 0 && setuid(USER) == 0;
            _exit(is_user ? replace(text, syncs) : 9);
        }
        waitpid(child, &status, 0);
        check(status == 0, "the child ended with %#x", (unsigned)status);
        check(stat(path, &is) == 0 && (is.st_mode & 07777) == expected, "mode %o, not %o", (unsigned)is.st_mode, (unsigned)expected);
        check(is.st_uid == USER && is.st_gid == (group == OTHER ? GROUP : group), "owner %u, group %u", is.st_uid, is.st_gid);
    }
}

static void as_user(void)
{
    static const char *const texts[] = {"new\n", ""};
    for (int i = 0; i < 2; i++) {
        expect("one's own file", texts[i], USER, GROUP, 06755, 06755);
        expect("one's own file", texts[i], USER, GROUP, 04711, 04711);
        expect("one's own file", texts[i], USER, GROUP, 0640, 0640);
        expect("another user's file", texts[i], OTHER, GROUP, 06755, 0755);
        expect("a file of another group", texts[i], USER, OTHER, 06755, 0755);
    }
}

/* The superuser keeps the owner and the bits. */
static void as_superuser(void)
{
    check_begin("another user's file, replaced by the superuser");
    struct stat is;
    make_old(OTHER, OTHER, 06755);
    check(replace("new\n", false) == 0 && stat(path, &is) == 0, "replace");
    check((is.st_mode & 07777) == 06755 && is.st_uid == OTHER && is.st_gid == OTHER, "mode %o, owner %u", (unsigned)is.st_mode,
          is.st_uid);
}

/* Of a file whose owner the program has changed itself. */
static void changed_owner(void)
{
    check_begin("a program that changes the owner itself");
    weir_stream *s;
    struct stat is;
    make_old(OTHER, OTHER, 06755);
    check(weir_open_replace(&s, path, NULL) == 0 && fchown(weir_fd(s), USER, OTHER) == 0 && weir_replace(s) == 0, "replace");
    check(stat(path, &is) == 0 && (is.st_mode & 07777) == 0755 && is.st_uid == USER, "mode %o", (unsigned)is.st_mode);
}

int main(void)
{
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof path, "%s/file", directory);
    if (chown(directory, USER, GROUP) == 0) {
        as_user();
        as_superuser();
        changed_owner();
    } else {
        check_begin("set-user-ID bits");
        check_skip("chown(2) needs a privilege");
    }
    unlink(path);
    rmdir(directory);
    return check_finish("replace_owners");
}
