/* config.c: parses WEIR_RUN. It makes no system calls, so that tests/core.c can run it under sanitizers. */
#include "config.h"

struct config config;

static int parse_mode(struct span text, struct mode *into) {
    if (span_is(text, "none")) *into = (struct mode){MODE_NONE, 0};
    else if (span_is(text, "line")) *into = (struct mode){MODE_LINE, 0};
    else if (span_is(text, "full")) *into = (struct mode){MODE_FULL, DEFAULT_FULL_BYTES};
    else {
        if (text.n < 6 || !text_begins(text.at, "full:")) return 0;
        int64_t bytes = span_number((struct span){text.at + 5, text.n - 5});
        if (bytes < 1 || bytes > INT64_C(1) << 60) return 0;
        *into = (struct mode){MODE_FULL, (size_t)bytes};
    }
    return 1;
}

static void parse_file(struct config *c, struct span value) {
    size_t mode_at = value.n; /* a glob may contain further '=' */
    while (mode_at && value.at[mode_at - 1] != '=') mode_at--;
    if (!mode_at || c->files_count == MAX_FILES) return;
    struct span mode = {value.at + mode_at, value.n - mode_at};
    if (!parse_mode(mode, &c->files[c->files_count].mode)) return;
    c->files[c->files_count++].glob = (struct span){value.at, mode_at - 1};
}

static void parse_private(struct config *c, struct span value) {
    size_t colon = 0;
    while (colon < value.n && value.at[colon] != ':') colon++;
    if (colon == value.n) return;
    c->private_stdin = span_unsigned((struct span){value.at, colon}, &c->private_dev) &&
        span_unsigned((struct span){value.at + colon + 1, value.n - colon - 1}, &c->private_ino);
}

static void parse_path(char *to, size_t room, struct span value) {
    if (value.n < room) *text_put(to, value.at, value.n) = 0;
}

static void parse_line(struct config *c, struct span key, struct span value) {
    if (span_is(key, "lib")) parse_path(c->lib, sizeof c->lib, value);
    else if (span_is(key, "arena")) parse_path(c->arena, sizeof c->arena, value);
    else if (span_is(key, "stdin")) parse_mode(value, &c->standard[0]);
    else if (span_is(key, "stdout")) parse_mode(value, &c->standard[1]);
    else if (span_is(key, "stderr")) parse_mode(value, &c->standard[2]);
    else if (span_is(key, "file")) parse_file(c, value);
    else if (span_is(key, "force")) c->force = span_is(value, "1");
    else if (span_is(key, "order")) c->order = span_is(value, "1");
    else if (span_is(key, "exec-flush")) c->exec_flush = span_is(value, "1");
    else if (span_is(key, "stdin-private")) parse_private(c, value);
    else if (span_is(key, "first")) c->first_pid = span_number(value);
    else if (span_is(key, "coalesce"))
        c->coalesce = span_is(value, "all") ? COALESCE_ALL : span_is(value, "files") ? COALESCE_FILES : COALESCE_OFF;
}

int config_parse(struct config *into, const char *value) {
    size_t n = text_length(value);
    if (n >= sizeof into->text) return 0;
    *text_put(into->text, value, n) = 0;
    for (int i = 0; i < 3; i++) into->standard[i].kind = MODE_KEEP;
    for (const char *at = into->text; *at;) {
        size_t line = 0, equals = 0;
        while (at[line] && at[line] != '\n') line++;
        while (equals < line && at[equals] != '=') equals++;
        if (equals < line) parse_line(into, (struct span){at, equals}, (struct span){at + equals + 1, line - equals - 1});
        at += line + (at[line] == '\n');
    }
    into->loaded = into->lib[0] == '/';
    return into->loaded;
}
