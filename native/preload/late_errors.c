/* late_errors.c: the errors of flushes, which the next call of the descriptor reports.

   An entry holds for the open descriptor: it ends with a close, and counts only while the descriptor has the same inode. An
   error that the program cannot get any more stays in the region's count, and weir reports it when the process ends. */
#include "gather.h"

#if WEIR_HAS_DISPATCH
#include <asm/errno.h>
#include <asm/stat.h>

static int is_current(const struct late_error *late) {
    struct stat stat;
    return sys2(__NR_fstat, late->fd - 1, &stat) == 0 && stat.st_dev == late->dev && stat.st_ino == late->ino;
}

static void drop(struct late_error *late) {
    late->fd = 0;
    session->late_errors_count--;
}

/* Returns the entry of a descriptor, or null. A child of vfork(2) finds none: the errors are its parent's. */
static struct late_error *find(int fd) {
    struct session *s = session;
    if (likely(!s->late_errors_count) || fd < 0 || s->thread != sys0(__NR_gettid)) return NULL;
    for (struct late_error *late = s->late_errors; late < s->late_errors + MAX_LATE_ERRORS; late++) {
        if (late->fd != fd + 1) continue;
        if (is_current(late)) return late;
        drop(late);
    }
    return NULL;
}

int gather_has_late_error(int fd) { return find(fd) != NULL; }

int gather_take_late_error(int fd) {
    struct late_error *late = find(fd);
    if (!late) return 0;
    drop(late);
    if (late->error != EPIPE) session->region->late_errors--;
    return late->error;
}

void gather_forget_late_errors(unsigned first, unsigned last) {
    struct session *s = session;
    if (likely(!s->late_errors_count) || s->thread != sys0(__NR_gettid)) return;
    for (struct late_error *late = s->late_errors; late < s->late_errors + MAX_LATE_ERRORS; late++)
        if (late->fd && (unsigned)late->fd - 1 >= first && (unsigned)late->fd - 1 <= last) drop(late);
}

void gather_note_late_error(int error) {
    struct session *s = session;
    struct late_error *to = NULL;
    if (!s->region || find(s->out.fd)) return;
    if (error != EPIPE) { /* EPIPE: without a reader the bytes are not missed */
        s->region->late_error = error;
        s->region->late_errors++;
    }
    for (struct late_error *late = s->late_errors; late < s->late_errors + MAX_LATE_ERRORS; late++) {
        if (late->fd && !is_current(late)) drop(late);
        if (!late->fd) to = late;
    }
    if (!to) return;
    *to = (struct late_error){s->out.fd + 1, error, s->out.dev, s->out.ino};
    s->late_errors_count++;
}
#endif
