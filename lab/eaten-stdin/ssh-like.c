/* Does the part of ssh that matters here: reads its standard input to the end, to send it to the other side. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char block[16384];
    while (read(STDIN_FILENO, block, sizeof block) > 0)
        ;
    printf("visited %s\n", argc > 1 ? argv[1] : "?");
    return 0;
}
