/* random.h: seeded random numbers, and helpers of the tests of random sequences. */
#ifndef WEIR_TEST_RANDOM_H
#define WEIR_TEST_RANDOM_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64* */
static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}
static unsigned below(unsigned limit) { return (unsigned)((random_bits() >> 32) % limit); }
static inline bool one_in(unsigned n) { return below(n) == 0; }

static void seed(uint64_t number)
{
    random_state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 4; i++)
        random_bits();
}

static inline bool can_read(const char *mode) { return mode[0] == 'r' || strchr(mode, '+'); }
static inline bool can_write(const char *mode) { return mode[0] != 'r' || strchr(mode, '+'); }

static inline uint64_t hash(const void *from, size_t bytes)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)from)[i]) * UINT64_C(1099511628211);
    return h;
}

#endif
