/* Computes with a pending line in a stream that appends, and prints the position that ftell(3) gives. */
#include <stdio.h>
#include <time.h>

int main(void) {
    FILE *log = fopen("log", "a");
    if (!log) return 1;
    fputs("0123456789\n", log);
    while (clock() < CLOCKS_PER_SEC / 2) {}
    printf("%ld\n", ftell(log));
    return fclose(log) != 0;
}
