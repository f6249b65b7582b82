/* tests/lookup.c: compares lookup_next with dlsym(RTLD_NEXT), in an ordinary program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

void *lookup_next(const char *name);

static int wrong;
static void check(int holds, const char *what) {
    if (!holds) printf("wrong: %s\n", what), wrong = 1;
}

/* Functions that the library replaces or calls, an indirect one, and variables. None has two versions: up to glibc 2.35
   dlsym returns the older one. */
static const char *const names[] = {
    "fopen",  "fopen64", "fdopen", "freopen", "fclose", "setvbuf", "read",   "write",   "writev", "execve",    "popen",
    "system", "fcntl",   "dup2",   "mmap64",  "strlen", "stdout",  "_exit",  "environ", "fflush", "sigaction", "signal",
};

int fileno(FILE *stream) { return stream ? -1 : -2; } /* the program's own, before that of the C library */

int main(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = lookup_next(names[i]);
        check(found && found == dlsym(RTLD_NEXT, names[i]), names[i]);
    }
    void *own = lookup_next("fileno");
    check(own && own != (void *)fileno, "the program's own function");
    check(!lookup_next("no_such_function") && !lookup_next(""), "no such function");
    puts(wrong ? "failed" : "passed");
    return wrong;
}
