#include <stdio.h>

int main(void)
{
    unsigned state = 1;
    FILE *dump = fopen("dump.txt", "w");

    if (!dump)
        return 1;
    setbuf(dump, NULL); /* "so that nothing is lost" */
    for (int i = 0; i < 450000; i++) {
        state = state * 1103515245u + 12345u;
        fprintf(dump, "%02x ", (state >> 16) & 255);
    }
    return fclose(dump) != 0;
}
