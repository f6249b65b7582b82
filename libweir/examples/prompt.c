/* prompt.c: a question without a newline, and its answer. The tie brings the question out first. */
#include "example.h"

#define USAGE "[-u] [QUESTION]\n  -u: untied; the question may then come after the answer"
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
        give_up(STDIN_NAME, ENOMEM);
    /* On a terminal they are tied anyway; this holds for pipes as well, as under expect(1). */
    check(weir_tie(in, tied ? out : NULL), STDOUT_NAME);

    check(weir_put_str(out, question), STDOUT_NAME);
    char *answer = "";
    ssize_t bytes = check(weir_getrec(in, &answer), STDIN_NAME);
    if (bytes > 0 && answer[bytes - 1] == '\n')
        bytes--;
    check(weir_put_str(out, bytes > 0 ? "Hello, " : "\nNobody"), STDOUT_NAME);
    put(out, answer, (size_t)bytes, STDOUT_NAME); /* it stays in the buffer of `in` until that is read again */
    check(weir_put_str(out, ".\n"), STDOUT_NAME);
    close_stdout();
    return 0;
}
