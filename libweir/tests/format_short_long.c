/* format_short_long.c: format_short.c with the code for compilers that have no 128-bit integers. */
#undef __SIZEOF_INT128__
#include "../src/format_shortest.c" /* replaces the library's object file */

#define NAME "format_short_long"
#include "format_short.c"
