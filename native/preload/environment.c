/* environment.c: puts LD_PRELOAD and WEIR_RUN back into a child's environment, or removes them for a 32-bit
   program. */
#include "functions.h"

#include "config.h"
#include "libc.h"

static const char preload[] = "LD_PRELOAD=", configuration[] = "WEIR_RUN=";

size_t environment_room(char *const *environment) {
    size_t n = 0, longest = 0;
    for (; environment && environment[n]; n++)
        if (text_begins(environment[n], preload)) longest = text_length(environment[n]);
    return (n + 4) * sizeof(char *) + longest + sizeof preload + sizeof config.lib + sizeof configuration +
           CONFIG_BYTES;
}

/* Returns the length of the list entry at `at`, up to a blank or colon. */
static size_t entry_length(const char *at) {
    size_t n = 0;
    while (at[n] && at[n] != ':' && at[n] != ' ') n++;
    return n;
}

static int has_library(const char *list) {
    for (; *list; list += entry_length(list) + (list[entry_length(list)] != 0))
        if (span_is((struct span){list, entry_length(list)}, config.lib)) return 1;
    return 0;
}

/* Builds LD_PRELOAD in *room: this library if `loads`, then the other entries of `list`. Returns null if there are no
   entries. */
static char *preload_text(const char *list, int loads, char **room) {
    char *text = *room, *end = text_put(text, preload, sizeof preload - 1);
    size_t empty = (size_t)(end - text);
    if (loads) end = text_put(end, config.lib, text_length(config.lib));
    while (*list) {
        size_t n = entry_length(list);
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

static char *configuration_text(char *room) {
    *text_put(text_put(room, configuration, sizeof configuration - 1), config.text, text_length(config.text)) = 0;
    return room;
}

/* Returns true if the environment needs no change. */
static int is_complete(const char *list, const char *run, int loads) {
    if (!loads) return !run && !(list && has_library(list));
    return run && list && has_library(list) && span_is(span_of(run), config.text);
}

char *const *environment_child(char *const *environment, int loads, char *room) {
    size_t n = 0, copied = 0;
    const char *list = NULL, *run = NULL;
    for (; environment && environment[n]; n++) {
        if (text_begins(environment[n], preload)) list = environment[n] + sizeof preload - 1;
        if (text_begins(environment[n], configuration)) run = environment[n] + sizeof configuration - 1;
    }
    if (!config.loaded || is_complete(list, run, loads)) return environment;
    char **out = (char **)room, *texts = room + (n + 4) * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        if (!text_begins(environment[i], preload) && !text_begins(environment[i], configuration))
            out[copied++] = environment[i];
    if ((out[copied] = preload_text(list ? list : "", loads, &texts))) copied++;
    if (loads) out[copied++] = configuration_text(texts);
    out[copied] = NULL;
    return out;
}

/* Reads the first bytes of a file. Returns their number, 0 on failure. */
static size_t read_head(int dirfd, const char *path, char *to, size_t room) {
    long fd = sys4(__NR_openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return 0;
    long got = sys_read((int)fd, to, room - 1);
    sys_close((int)fd);
    to[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

int environment_loads(int dirfd, const char *path) {
    char head[256];
    size_t n = path && config.loaded ? read_head(dirfd, path, head, sizeof head) : 0;
    if (n > 2 && head[0] == '#' && head[1] == '!') { /* a script: check its interpreter */
        char *at = head + 2;
        while (*at == ' ' || *at == '\t') at++;
        size_t end = 0;
        while (at[end] && at[end] != ' ' && at[end] != '\t' && at[end] != '\n') end++;
        at[end] = 0;
        char inner[8];
        n = read_head(AT_FDCWD, at, inner, sizeof inner);
        return !(n > 4 && inner[0] == 0x7f && inner[1] == 'E' && inner[4] == 1);
    }
    return !(n > 4 && head[0] == 0x7f && head[1] == 'E' && head[4] == 1);
}

/* Joins the first directory of a PATH list and `name` in `to`; returns the length of that directory. `to` is empty if
   there is no room. */
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

const char *environment_find(const char *name, char *file, size_t room) {
    const char *path = "/bin:/usr/bin";
    for (const char *at = name; name && *at; at++)
        if (*at == '/') return name;
    for (char **e = &__environ ? __environ : NULL; e && *e; e++)
        if (text_begins(*e, "PATH=")) path = *e + 5;
    while (name) {
        size_t n = join(path, name, file, room);
        if (file[0] && sys4(__NR_faccessat, AT_FDCWD, file, 1, 0) == 0) return file;
        if (!path[n]) break;
        path += n + 1;
    }
    return NULL;
}

int environment_loads_in_path(const char *name) {
    char room[FOUND_BYTES];
    const char *file = config.loaded ? environment_find(name, room, sizeof room) : NULL;
    return !file || environment_loads(AT_FDCWD, file);
}
