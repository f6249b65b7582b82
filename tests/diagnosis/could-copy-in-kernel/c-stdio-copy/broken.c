#include <stdio.h>

int main(void)
{
    char block[1024];
    size_t got;
    FILE *in = fopen("source", "r"), *out = fopen("target", "w");

    if (!in || !out)
        return 1;
    while ((got = fread(block, 1, sizeof block, in)) > 0)
        if (fwrite(block, 1, got, out) != got)
            return 1;
    return ferror(in) || fclose(out) != 0;
}
