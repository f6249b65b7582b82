/* format_int.c: formats integers as decimal text. */
#include "format.h"

#define TEN(tens) tens "0" tens "1" tens "2" tens "3" tens "4" tens "5" tens "6" tens "7" tens "8" tens "9"
#define ALL_PAIRS TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9")

const char weir__digit_pairs[200] = ALL_PAIRS; /* the array has no room for the terminating NUL */

#define THREE(n) (n), 10 * (n), 100 * (n)

const uint64_t weir__powers_of_10[20] = {
    THREE(UINT64_C(1)),
    THREE(UINT64_C(1000)),
    THREE(UINT64_C(1000000)),
    THREE(UINT64_C(1000000000)),
    THREE(UINT64_C(1000000000000)),
    THREE(UINT64_C(1000000000000000)),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

size_t weir__format_u64(char *to, uint64_t value)
{
    unsigned digits = weir__count_digits(value);
    weir__put_digits(to, value, digits);
    return digits;
}

size_t weir__format_i64(char *to, int64_t value)
{
    if (value >= 0)
        return weir__format_u64(to, (uint64_t)value);
    *to = '-';
    return 1 + weir__format_u64(to + 1, 0 - (uint64_t)value);
}
