/* Appends the lines of standard input to a file, in a way that was chosen without a question: `each` makes a write(2) for each
 * line, `stdio` uses the stream's default buffer. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    if (argc != 3)
        return 2;
    int fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "a");
    if (!file)
        return 1;
    if (strcmp(argv[1], "each") == 0)
        setvbuf(file, NULL, _IONBF, 0);
    while ((bytes = getline(&line, &room, stdin)) > 0)
        if (fwrite(line, 1, (size_t)bytes, file) != (size_t)bytes)
            return 1;
    free(line);
    return fclose(file) != 0;
}
