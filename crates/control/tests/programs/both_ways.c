// Changes a file in place through a stream for reading and writing. argv[1] says how it moves before it writes; with argv[2]
// it kills itself while the last bytes are pending.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void move_to_place(FILE *file, char how) {
    char read[16] = "";
    if (how == 'n') return;
    fseek(file, 100, SEEK_SET);
    if (fread(read, 1, 11, file) != 11) _exit(3);
    switch (how) {
    case 'h': fseek(file, 0, SEEK_CUR); break;
    case 'b': fseek(file, -3, SEEK_CUR); break;
    case 'f': fseek(file, 130, SEEK_SET); break;
    case 'u': ungetc(read[10], file), fseek(file, 0, SEEK_CUR); break;
    case 'r': break; // ISO C wants a seek here; glibc and musl do not
    case 'z':
        while (getc(file) != EOF) {}
        clearerr(file), fseek(file, 0, SEEK_CUR);
        break;
    default: fseek(file, 0, SEEK_END);
    }
}

int main(int count, char **words) {
    if (count < 2) return 2;
    FILE *file = fopen("file", "w+");
    if (!file) return 4;
    for (int number = 0; number < 2000; number++) fprintf(file, "line %d of the first part\n", number);
    fflush(file);
    move_to_place(file, words[1][0]);
    for (int number = 0; number < 5; number++) fprintf(file, "NEW %d\n", number), usleep(5000);
    if (words[1][1] == '2') {
        rewind(file);
        if (getc(file) == EOF) return 5;
        fseek(file, 0, SEEK_END), fputs("at the end\n", file), usleep(20000);
    }
    if (count > 2) raise(SIGKILL);
    return fclose(file) != 0;
}
