/* wide.c: leaves known wide characters in streams, writes a byte to stderr, and waits. */
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0 || !setlocale(LC_ALL, "C.UTF-8"))
        return 2;
    FILE *made = fopen("input", "w");
    fputs("first line\nsecond l\xc3\xadne\nthird", made);
    fclose(made);
    FILE *in = fopen("input", "r"), *out = fopen("output", "w");
    wchar_t line[100];
    if (!fgetws(line, 100, in))
        return 3;
    for (int i = 0; i < 200; i++)
        fputws(L"gr\u00fc\u00dfe ", out);
    if (write(2, ".", 1) != 1)
        return 4;
    for (;;)
        pause();
}
