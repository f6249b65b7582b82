/* env.c: LD_PRELOAD and WEIR_RUN are put back into a child's environment, or left out for a 32-bit target. */
#include "env.h"

#include "config.h"
#include "libc.h"

static const char preload[] = "LD_PRELOAD=", wanted[] = "WEIR_RUN=";

size_t env_room(char *const *environment) {
    size_t n = 0, longest = 0;
    for (; environment && environment[n]; n++)
        if (text_begins(environment[n], preload)) longest = text_length(environment[n]);
    return (n + 4) * sizeof(char *) + longest + sizeof preload + sizeof config.lib + sizeof wanted + CONFIG_BYTES;
}

/* The length of the entry at `at`, up to a blank or colon. */
static size_t entry(const char *at) {
    size_t n = 0;
    while (at[n] && at[n] != ':' && at[n] != ' ') n++;
    return n;
}

static int has_library(const char *list) {
    for (; *list; list += entry(list) + (list[entry(list)] != 0))
        if (span_is((struct span){list, entry(list)}, config.lib)) return 1;
    return 0;
}

/* "LD_PRELOAD=" with the entries of `list` but this library, which comes first if `loads`; null if nothing is left. */
static char *preload_text(const char *list, int loads, char **room) {
    char *text = *room, *end = text_put(text, preload, sizeof preload - 1);
    size_t empty = (size_t)(end - text);
    if (loads) end = text_put(end, config.lib, text_length(config.lib));
    while (*list) {
        size_t n = entry(list);
        if (n && !span_is((struct span){list, n}, config.lib)) {
            if ((size_t)(end - text) > empty) *end++ = ':';
            end = text_put(end, list, n);
        }
        list += n + (list[n] != 0);
    }
    *end++ = 0;
    *room = end;
    return (size_t)(end - text) > empty + 1 ? text : NULL;
}

static char *wanted_text(char *room) {
    *text_put(text_put(room, wanted, sizeof wanted - 1), config.text, text_length(config.text)) = 0;
    return room;
}

/* True if the environment is already as it should be. */
static int is_kept(const char *list, const char *run, int loads) {
    if (!loads) return !run && !(list && has_library(list));
    return run && list && has_library(list) && span_is(span_of(run), config.text);
}

char *const *env_kept(char *const *environment, int loads, char *room) {
    size_t n = 0, kept = 0;
    const char *list = NULL, *run = NULL;
    for (; environment && environment[n]; n++) {
        if (text_begins(environment[n], preload)) list = environment[n] + sizeof preload - 1;
        if (text_begins(environment[n], wanted)) run = environment[n] + sizeof wanted - 1;
    }
    if (!config.loaded || is_kept(list, run, loads)) return environment;
    char **out = (char **)room, *texts = room + (n + 4) * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        if (!text_begins(environment[i], preload) && !text_begins(environment[i], wanted)) out[kept++] = environment[i];
    if ((out[kept] = preload_text(list ? list : "", loads, &texts))) kept++;
    if (loads) out[kept++] = wanted_text(texts);
    out[kept] = NULL;
    return out;
}

static size_t head_of(int dirfd, const char *path, char *to, size_t room) {
    long fd = sys4(__NR_openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return 0;
    long got = sys_read((int)fd, to, room - 1);
    sys_close((int)fd);
    to[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

int env_loads(int dirfd, const char *path) {
    char head[256];
    size_t n = path && config.loaded ? head_of(dirfd, path, head, sizeof head) : 0;
    if (n > 2 && head[0] == '#' && head[1] == '!') { /* a script: its interpreter counts */
        char *at = head + 2;
        while (*at == ' ' || *at == '\t') at++;
        size_t end = 0;
        while (at[end] && at[end] != ' ' && at[end] != '\t' && at[end] != '\n') end++;
        at[end] = 0;
        char inner[8];
        n = head_of(AT_FDCWD, at, inner, sizeof inner);
        return !(n > 4 && inner[0] == 0x7f && inner[1] == 'E' && inner[4] == 1);
    }
    return !(n > 4 && head[0] == 0x7f && head[1] == 'E' && head[4] == 1);
}

/* `name` in the directory at `list`, up to a colon; the length of that entry. */
static size_t join(const char *list, const char *name, char *to, size_t room) {
    size_t n = 0, m = text_length(name);
    while (list[n] && list[n] != ':') n++;
    to[0] = 0;
    if (n + m + 2 > room) return n;
    char *end = n ? text_put(to, list, n) : text_put(to, ".", 1);
    *end++ = '/';
    *text_put(end, name, m) = 0;
    return n;
}

int env_loads_searched(const char *name) {
    const char *path = "/bin:/usr/bin";
    char file[4096];
    if (!config.loaded) return 1;
    for (const char *at = name; name && *at; at++)
        if (*at == '/') return env_loads(AT_FDCWD, name);
    for (char **e = &__environ ? __environ : NULL; e && *e; e++)
        if (text_begins(*e, "PATH=")) path = *e + 5;
    while (name) {
        size_t n = join(path, name, file, sizeof file);
        if (file[0] && sys4(__NR_faccessat, AT_FDCWD, file, 1, 0) == 0) return env_loads(AT_FDCWD, file);
        if (!path[n]) break;
        path += n + 1;
    }
    return 1;
}
