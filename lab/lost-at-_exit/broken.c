/* Prints a line and ends in one of three ways: _exit, abort, fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "_exit";
    printf("the result is 42\n");
    if (strcmp(way, "_exit") == 0)
        _exit(0);
    if (strcmp(way, "abort") == 0)
        abort();
    *(volatile int *)0 = 0;
}
