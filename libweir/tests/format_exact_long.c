/* format_exact_long.c: format_exact.c with the code for compilers that have no 128-bit integers. */
#undef __SIZEOF_INT128__
#include "../src/format_fixed.c" /* replaces the library's object file */

#define NAME "format_exact_long"
#include "format_exact.c"
