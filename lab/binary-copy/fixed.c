/* Copies a file in blocks of 8,192 bytes. */
#include <stdio.h>

int main(int argc, char **argv)
{
    static char block[8192];
    if (argc < 3)
        return 2;
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    if (!in || !out)
        return 1;
    for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;)
        if (fwrite(block, 1, got, out) != got)
            return 1;
    return ferror(in) || fclose(out) != 0;
}
