/* drop_in.c: a shared object that was written for <stdio.h> and is built with weir/compat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int drop_in(const char *path);

/* Copies a line from standard input to standard output, and leaves both streams as they are. */
static int copy_line(const char *path)
{
    char line[64];
    return !fgets(line, sizeof line, stdin) || printf("%s: %s", path, line) < 0;
}

static int use_memory(void)
{
    char *text = NULL;
    wchar_t *wide = NULL;
    size_t bytes = 0, length = 0;
    FILE *f = open_memstream(&text, &bytes), *w = open_wmemstream(&wide, &length);
    int wrong = !f || !w || fputs("text", f) < 0 || fputws(L"wide", w) < 0 || fclose(f) != 0 || fclose(w) != 0;
    wrong = wrong || strcmp(text, "text") != 0 || wcscmp(wide, L"wide") != 0;
    free(text);
    free(wide);
    return wrong;
}

static int use_command(void)
{
    FILE *f = popen("echo command; exit 3", "r");
    return !f || fgetc(f) != 'c' || pclose(f) != 3 << 8;
}

/* Leaves a file open. */
int drop_in(const char *path)
{
    FILE *f = fopen(path, "a");
    if (!f || fputs("a line\n", f) < 0)
        return 1;
    return copy_line("copied") ? 2 : use_memory() ? 3 : use_command() ? 4 : 0;
}
