/* leave.c: leaves bytes in streams, writes a byte to stderr; at a signal adds a tail to each and exits. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

static volatile sig_atomic_t told;

static void tell(int number)
{
    told = number;
}

static FILE *opened(const char *name, const char *how)
{
    FILE *f = fopen(name, how);
    if (!f)
        abort();
    return f;
}

/* A stream that is read first, then written after the bytes that were read. */
static FILE *both(void)
{
    FILE *f = opened("both", "w+");
    fputs("first\nsecond\n", f);
    rewind(f);
    char line[100];
    if (!fgets(line, sizeof line, f) || fseek(f, 0, SEEK_END) != 0)
        abort();
    fputs("behind", f);
    return f;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = tell};
    sigset_t usr1, before;
    if (argc != 2 || chdir(argv[1]) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 2;
    setlocale(LC_ALL, "C.UTF-8");
    FILE *full = opened("full", "w"), *line = opened("line", "w"), *append = opened("append", "a");
    FILE *wide = opened("wide", "w"), *read_too = both();
    setvbuf(line, NULL, _IOLBF, 4096);
    for (int i = 0; i < 6000; i++)
        fputc('a' + i % 26, full);
    fputs("a line\nits rest", line);
    fputs("appended", append);
    fwprintf(wide, L"gr\u00fc\u00dfe");
    printf("in stdout");
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    if (write(2, ".", 1) != 1)
        return 3;
    while (!told)
        sigsuspend(&before);
    FILE *all[] = {full, line, append, read_too, stdout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fputs(" tail\n", all[i]);
    fwprintf(wide, L" tail\n");
    return 0;
}
