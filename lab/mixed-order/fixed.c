/* Writes two lines by stdio and one by the system call; given an argument, without newlines. */
#include <stdio.h>
#include <unistd.h>

static void say(const char *text, size_t bytes)
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
        say("two ", 4);
        return 0;
    }
    puts("first");
    puts("second");
    say("third\n", 6);
    return 0;
}
