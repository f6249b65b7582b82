/* Writes two lines by stdio, then one by write(2). With an argument: a word by stdio, then one by write(2). */
#include <stdio.h>
#include <unistd.h>

static void write_text(const char *text, size_t bytes)
{
    fflush(stdout); /* writes stdio's pending bytes first */
    if (write(STDOUT_FILENO, text, bytes) < 0)
        perror("write");
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        printf("one ");
        write_text("two ", 4);
        return 0;
    }
    puts("first");
    puts("second");
    write_text("third\n", 6);
    return 0;
}
