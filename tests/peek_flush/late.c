/* Writes to a file as another user: late FILE USER. The first line of input makes it put "first " into its stream, the second
 * one "second"; then it ends with status 7. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_line(void)
{
    char byte = 0;
    while (byte != '\n')
        if (read(0, &byte, 1) != 1)
            exit(1);
}

static void say(const char *text)
{
    dprintf(1, "%s\n", text);
}

int main(int count, char **words)
{
    FILE *file = count > 2 ? fopen(words[1], "w") : 0;
    uid_t user = count > 2 ? (uid_t)atoi(words[2]) : 0;
    if (!file || setgid(user) || setuid(user))
        return 1;
    say("ready");
    wait_for_line();
    fputs("first ", file);
    say("pending");
    wait_for_line();
    fputs("second", file);
    return fclose(file) ? 1 : 7;
}
