/* tools.h: typical small programs, each a main(). Included twice, for the C library's <stdio.h> and for weir/stdio.h;
 * SIDE(x) gives the functions different names. */

static int SIDE(cat)(int count, char **arguments)
{
    int c, line = 1, at_start = 1;
    for (int i = 0; i < count; i++) {
        FILE *f = strcmp(arguments[i], "-") == 0 ? stdin : fopen(arguments[i], "r");
        if (!f) {
            fprintf(stderr, "cat: ");
            perror(arguments[i]);
            return 1;
        }
        while ((c = getc(f)) != EOF) {
            if (at_start)
                printf("%6d\t", line++);
            at_start = c == '\n';
            putchar(c);
        }
        if (ferror(f) || (f != stdin && fclose(f) != 0))
            return 2;
    }
    return fflush(stdout) != 0;
}

static int SIDE(wc)(int count, char **arguments)
{
    long lines = 0, words = 0, bytes = 0;
    int c, in_word = 0;
    (void)count, (void)arguments;
    while ((c = getchar()) != EOF) {
        bytes++;
        lines += c == '\n';
        int space = c == ' ' || c == '\n' || c == '\t';
        words += !space && !in_word;
        in_word = !space;
    }
    printf("%7ld %7ld %7ld\n", lines, words, bytes);
    return 0;
}

static int SIDE(compare)(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int SIDE(sort)(int count, char **arguments)
{
    char **lines = NULL, *line = NULL;
    size_t used = 0, room = 0, bytes = 0;
    ssize_t length;
    (void)count, (void)arguments;
    while ((length = getline(&line, &bytes, stdin)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (used == room)
            lines = realloc(lines, (room = room ? room * 2 : 64) * sizeof *lines);
        lines[used++] = strdup(line);
    }
    if (used)
        qsort(lines, used, sizeof *lines, SIDE(compare));
    for (size_t i = 0; i < used; i++) {
        puts(lines[i]);
        free(lines[i]);
    }
    free(lines);
    free(line);
    return ferror(stdin);
}

/* Counts adjacent equal lines, which it reads with fgets. */
static int SIDE(uniq)(int count, char **arguments)
{
    char before[512] = "", line[512];
    int times = 0;
    (void)count, (void)arguments;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (times && strcmp(line, before) == 0) {
            times++;
            continue;
        }
        if (times)
            fprintf(stdout, "%7d %s\n", times, before);
        strcpy(before, line);
        times = 1;
    }
    if (times)
        fprintf(stdout, "%7d %s\n", times, before);
    return 0;
}

static int SIDE(is_digit)(int c) { return c >= '0' && c <= '9'; }

/* Adds up the numbers in the input: reads a byte and pushes it back for scanf if it is a digit. */
static int SIDE(sum)(int count, char **arguments)
{
    double sum = 0, value;
    long numbers = 0, others = 0;
    int c;
    (void)count, (void)arguments;
    while ((c = getchar()) != EOF) {
        if (SIDE(is_digit)(c)) {
            ungetc(c, stdin);
            if (scanf("%lf", &value) == 1)
                numbers++, sum += value;
        } else {
            others++;
        }
    }
    printf("%ld numbers, %ld others: %.6g\n", numbers, others, sum);
    return 0;
}

/* Prints fields of lines as a table, with sscanf and widths. */
static int SIDE(table)(int count, char **arguments)
{
    char line[512], a[64], b[64];
    int rows = 0;
    (void)count, (void)arguments;
    setvbuf(stdout, NULL, _IOLBF, 256);
    while (fgets(line, sizeof line, stdin)) {
        int fields = sscanf(line, "%63s %63s", a, b);
        if (fields == 2)
            printf("|%-10.10s|%10.10s|%04d|\n", a, b, rows);
        else
            fputs("|---\n", stdout);
        rows++;
    }
    return printf("%d rows%c", rows, '\n') < 0;
}

struct SIDE(record) {
    int key;
    char text[28];
};

/* Changes a file of records in place. */
static int SIDE(database)(int count, char **arguments)
{
    struct SIDE(record) record;
    char line[128];
    (void)count;
    FILE *f = fopen(arguments[0], "w+");
    for (int key = 0; fgets(line, sizeof line, stdin) && key < 500; key++) {
        memset(&record, 0, sizeof record);
        record.key = key;
        snprintf(record.text, sizeof record.text, "%.20s", line);
        fwrite(&record, sizeof record, 1, f);
    }
    long end = ftell(f), records = end / (long)sizeof record;
    for (long i = 0; i < records * 3 && records; i++) {
        long at = i * 7919 % records * (long)sizeof record;
        fseek(f, at, SEEK_SET);
        if (fread(&record, sizeof record, 1, f) != 1)
            return 3;
        record.key += 1000;
        fseek(f, -(long)sizeof record, SEEK_CUR);
        if (fwrite(&record, sizeof record, 1, f) != 1)
            return 4;
        fflush(f);
    }
    rewind(f);
    while (fread(&record, sizeof record, 1, f) == 1)
        printf("%d %s\n", record.key, record.text);
    printf("%ld records, end %d\n", records, feof(f) != 0);
    return fclose(f);
}

/* Writes to a command and reads from another one. */
static int SIDE(filter)(int count, char **arguments)
{
    char command[300], line[512];
    (void)count;
    snprintf(command, sizeof command, "sort -r > %s", arguments[0]);
    FILE *to = popen(command, "w");
    while (fgets(line, sizeof line, stdin))
        fputs(line, to);
    printf("status %d\n", pclose(to));
    snprintf(command, sizeof command, "head -n 5 %s; exit 4", arguments[0]);
    FILE *from = popen(command, "r");
    while (fgets(line, sizeof line, from))
        printf("> %s", line);
    printf("status %d\n", pclose(from));
    return 0;
}

/* Prints the middle lines backwards, with a temporary file and fsetpos. */
static int SIDE(middle)(int count, char **arguments)
{
    static fpos_t starts[4096];
    char line[600];
    int lines = 0, c;
    (void)count, (void)arguments;
    FILE *f = tmpfile();
    while ((c = getc(stdin)) != EOF)
        fputc(c, f);
    rewind(f);
    do {
        fgetpos(f, &starts[lines]);
    } while (fgets(line, sizeof line, f) && ++lines < 4095);
    for (int i = lines * 2 / 3; i > lines / 3; i--) {
        fsetpos(f, &starts[i - 1]);
        if (fgets(line, sizeof line, f))
            fputs(line, stdout);
    }
    return fclose(f);
}

/* Writes messages to stderr, and reopens stdout in the middle of its output. */
static int SIDE(log)(int count, char **arguments)
{
    char line[512];
    long lines = 0;
    (void)count;
    fprintf(stderr, "reading\n");
    while (fgets(line, sizeof line, stdin)) {
        if (lines++ == 3 && !freopen(arguments[0], "a", stdout))
            return 5;
        fprintf(lines % 5 ? stdout : stderr, "%ld: %s", lines, line);
    }
    fputs("done\n", stderr);
    return 0;
}

static const struct SIDE(tool) {
    const char *name;
    int (*main)(int count, char **arguments);
} SIDE(tools)[] = {
    {"cat", SIDE(cat)},       {"wc", SIDE(wc)},         {"sort", SIDE(sort)},     {"uniq", SIDE(uniq)},
    {"sum", SIDE(sum)},       {"table", SIDE(table)},   {"filter", SIDE(filter)}, {"database", SIDE(database)},
    {"middle", SIDE(middle)}, {"log", SIDE(log)},
};
