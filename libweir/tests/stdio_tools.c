/* stdio_tools.c: small programs with the C library's stdio and with weir/stdio.h have the same output, files and exit
 * status. */
#include "stdio/random.h"

#define SIDE(name) libc_##name
#include "stdio/tools.h"
#undef SIDE

#include <weir/stdio.h>

#define SIDE(name) weir_side_##name
#include "stdio/tools.h"

#include "stdio/check.h"

static void redirect(int fd, const char *path, int flags)
{
    int file = open(path, flags, 0600);
    dup2(file, fd);
    close(file);
}

struct outcome {
    int status;
    char out[1 << 20], messages[1 << 20], file[1 << 20];
};

/* Runs the program in a child with `in` as standard input. */
static void run(int (*program)(int count, char **arguments), const char *in, struct outcome *outcome)
{
    const char *out = in_directory("out"), *messages = in_directory("messages"), *file = in_directory("file");
    char *arguments[] = {(char *)(uintptr_t)file, NULL}, *stdin_too[] = {(char *)(uintptr_t) "-", NULL};
    unlink(file);
    int pid = fork();
    if (pid == 0) {
        redirect(0, in, O_RDONLY);
        redirect(1, out, O_WRONLY | O_CREAT | O_TRUNC);
        redirect(2, messages, O_WRONLY | O_CREAT | O_TRUNC);
        exit(program(1, program == weir_side_cat || program == libc_cat ? stdin_too : arguments));
    }
    waitpid(pid, &outcome->status, 0);
    strcpy(outcome->out, file_text(out));
    strcpy(outcome->messages, file_text(messages));
    strcpy(outcome->file, file_text(file));
}

/* Makes lines with words and numbers; some equal the line before, some inputs are empty, some end without a newline. */
static void make_input(char *to, size_t limit, uint64_t number)
{
    size_t length = 0;
    seed(number);
    limit = number == 0 ? 0 : 1 + below((unsigned)limit);
    while (length + 100 < limit) {
        unsigned kind = below(8);
        int bytes = kind == 0   ? sprintf(to + length, "same line\n")
                    : kind == 1 ? sprintf(to + length, "\n")
                    : kind < 5  ? sprintf(to + length, "word%u %u.%u text\n", below(100), below(5000), below(100))
                                : sprintf(to + length, "%u,%u;%x\t%s\n", below(9), below(1u << 30), below(65536),
                                          &"the same again\nthe same again"[15 * below(2)]);
        length += (size_t)bytes;
    }
    if (length && number % 3 == 0)
        length--;
    to[length] = '\0';
}

int main(void)
{
    static char input[150000];
    static struct outcome libc, weir;
    make_directory();
    for (size_t i = 0; i < sizeof weir_side_tools / sizeof *weir_side_tools; i++) {
        begin(weir_side_tools[i].name);
        for (uint64_t number = 0; number < 12; number++) {
            make_input(input, number < 6 ? 3000 : sizeof input, number);
            const char *in = in_directory("in");
            put_file(in, input);
            run(libc_tools[i].main, in, &libc);
            run(weir_side_tools[i].main, in, &weir);
            expect_equal(weir.status, libc.status);
            expect_text(weir.out, libc.out);
            expect_text(weir.messages, libc.messages);
            expect_text(weir.file, libc.file);
        }
    }
    remove_directory();
    return finish("stdio_tools");
}
