/* Reads the first line of a file and replaces the second with TWO. */
#include <stdio.h>

int main(void)
{
    char line[64];
    FILE *file = fopen("lines", "r+");
    if (!file || !fgets(line, sizeof line, file))
        return 1;
    fputs("TWO\n", file);
    return fclose(file) != 0;
}
