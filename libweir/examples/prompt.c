/* prompt.c: asks a question without a newline and reads the answer. The tie flushes the question first. */
#include "example.h"

#define USAGE "[-u] [QUESTION]\n  -u: not tied: the question may appear after the answer"
#define STDIN_NAME "standard input"

int main(int argc, char **argv)
{
    int tied = 1;
    for (int option; (option = getopt(argc, argv, "u")) != -1; tied = 0)
        if (option != 'u')
            usage(USAGE, NULL, NULL);
    if (argc - optind > 1)
        usage(USAGE, NULL, NULL);
    const char *question = optind < argc ? argv[optind] : "Who is there? ";

    weir_stream *in = weir_stdin(), *out = open_stdout();
    if (!in)
        fail(STDIN_NAME, ENOMEM);
    /* Terminals are tied by default; this also works with pipes, for instance under expect(1). */
    check(weir_tie(in, tied ? out : NULL), STDOUT_NAME);

    check(weir_put_str(out, question), STDOUT_NAME);
    char *answer = "";
    ssize_t bytes = check(weir_getrec(in, &answer), STDIN_NAME);
    if (bytes > 0 && answer[bytes - 1] == '\n')
        bytes--;
    check(weir_put_str(out, bytes > 0 ? "Hello, " : "\nNobody"), STDOUT_NAME);
    put(out, answer, (size_t)bytes, STDOUT_NAME); /* valid until the next read from `in` */
    check(weir_put_str(out, ".\n"), STDOUT_NAME);
    close_stdout();
    return 0;
}
