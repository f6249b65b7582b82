/* memory.c: the functions that compilers call on their own, also in freestanding code. */
#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("hidden"))) void *memcpy(void *restrict to, const void *restrict from, size_t n);
__attribute__((visibility("hidden"))) void *memset(void *to, int byte, size_t n);

struct word {
    uint64_t value;
} __attribute__((packed, may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    char *out = to;
    const char *in = from;
    for (; n >= 8; n -= 8, out += 8, in += 8) {
        *(struct word *)out = *(const struct word *)in;
        __asm__ volatile("" ::: "memory"); /* keeps the compiler from turning the loop into a call of memcpy */
    }
    for (; n; n--) {
        *out++ = *in++;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

void *memset(void *to, int byte, size_t n) {
    for (char *out = to; n; n--) {
        *out++ = (char)byte;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}
