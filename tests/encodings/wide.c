/* wide.c: writes lines of wide characters to the file argv[1], opened with the mode argv[2]. With a third argument it kills itself
 * before it closes the file. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    FILE *out = argc > 2 ? fopen(argv[1], argv[2]) : NULL;
    if (!out)
        return 2;
    for (int line = 0; line < 4; line++) {
        fwprintf(out, L"Gr\u00f6\u00dfe %d\n", line);
        usleep(150000);
    }
    if (argc > 3)
        raise(SIGKILL);
    return fclose(out) != 0;
}
