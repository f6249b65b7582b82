/* lookup.c: dlsym(RTLD_NEXT, …) for programs without dlsym. Up to glibc 2.33 it is in libdl, which few programs load.

   Goes through the objects behind this library in the order of their loading, as the loader does, and takes the default
   version of the symbol. */
#include "libc.h"

enum { DT_GNU_HASH_TAG = 0x6ffffef5, DT_VERSYM_TAG = 0x6ffffff0, HIDDEN_VERSION = 0x8000, TYPE_INDIRECT = 10 };

/* The tables of one object, as addresses in memory. */
struct tables {
    uintptr_t base;
    const Elf64_Sym *symbols;
    const char *names;
    const uint32_t *hash;
    const uint16_t *versions; /* null without versions */
};

struct search {
    const char *name;
    uint32_t hash;
    int is_behind; /* this library has been passed */
    void *found;
};

static uint32_t gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static int same(const char *one, const char *other) {
    while (*one && *one == *other) one++, other++;
    return *one == *other;
}

/* glibc has relocated the pointers of most dynamic sections; that of a read-only section is an offset. */
static uintptr_t address(const struct object *object, uint64_t pointer) {
    return pointer < object->base ? object->base + pointer : pointer;
}

static int read_tables(const struct object *object, struct tables *tables) {
    const Elf64_Dyn *entry = NULL;
    *tables = (struct tables){.base = object->base};
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *header = &object->headers[i];
        if (header->p_type == PT_DYNAMIC) entry = (const Elf64_Dyn *)(object->base + header->p_vaddr);
    }
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = address(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB) tables->symbols = (const Elf64_Sym *)at;
        if (entry->d_tag == DT_STRTAB) tables->names = (const char *)at;
        if (entry->d_tag == DT_GNU_HASH_TAG) tables->hash = (const uint32_t *)at;
        if (entry->d_tag == DT_VERSYM_TAG) tables->versions = (const uint16_t *)at;
    }
    return tables->symbols && tables->names && tables->hash;
}

/* Returns the function in an object, or null. The hash table: number of buckets, first symbol, words of the filter,
   a shift; filter; buckets; one hash for each symbol from the first on, whose lowest bit ends a chain. */
static void *function_in(const struct tables *tables, const struct search *search) {
    const uint32_t *hash = tables->hash, first = hash[1];
    const uint32_t *buckets = hash + 4 + 2 * hash[2], *chains = buckets + hash[0];
    uint32_t symbol = hash[0] ? buckets[search->hash % hash[0]] : 0;
    for (int is_last = symbol < first; !is_last; symbol++) {
        const Elf64_Sym *entry = &tables->symbols[symbol];
        is_last = chains[symbol - first] & 1;
        if ((chains[symbol - first] ^ search->hash) > 1 || !entry->st_value || entry->st_shndx == SHN_UNDEF) continue;
        if (tables->versions && tables->versions[symbol] & HIDDEN_VERSION) continue;
        if (!same(tables->names + entry->st_name, search->name)) continue;
        uintptr_t at = tables->base + entry->st_value;
        return (entry->st_info & 15) == TYPE_INDIRECT ? ((void *(*)(void))at)() : (void *)at;
    }
    return NULL;
}

static int contains(const struct object *object, uintptr_t address) {
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *header = &object->headers[i];
        uintptr_t start = object->base + header->p_vaddr;
        if (header->p_type == PT_LOAD && address >= start && address - start < header->p_memsz) return 1;
    }
    return 0;
}

static int visit(struct object *object, size_t size, void *with) {
    struct search *search = with;
    struct tables tables;
    (void)size;
    if (!search->is_behind) search->is_behind = contains(object, (uintptr_t)visit);
    else if (read_tables(object, &tables)) search->found = function_in(&tables, search);
    return search->found != NULL;
}

void *lookup_next(const char *name) {
    struct search search = {name, gnu_hash(name), 0, NULL};
    if (dl_iterate_phdr) dl_iterate_phdr(visit, &search);
    return search.found;
}
