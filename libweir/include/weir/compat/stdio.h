/* weir/compat/stdio.h: found instead of the system's <stdio.h> by a compiler with the option
 * `-isystem PREFIX/include/weir/compat`, so that a program is rebuilt over libweir without a change: see
 * weir-stdio(7). */
#if defined(WEIR_STDIO_H) || defined(__need_FILE) || defined(__need___FILE)
#include_next <stdio.h> /* for weir/stdio.h, and for headers of the C library that need only a type */
#else
#include "../stdio.h"
#endif
