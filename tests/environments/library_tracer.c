/* library_tracer WAY: as tracer.c, which is a library of this program. The program itself imports no ptrace(2). */
int tracer_main(int count, char **words);

int main(int count, char **words)
{
    return tracer_main(count, words);
}
