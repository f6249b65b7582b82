/* weir/compat/malloc.h: refuses malloc_info, which writes to a FILE of the C library. */
#include "stdio.h" /* malloc.h includes it */
#include "libc_names.h"
#include_next <malloc.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_MALLOC_H)
#define WEIR_COMPAT_MALLOC_H
#ifdef __GLIBC__
extern int malloc_info(int, struct _IO_FILE *)
    WEIR_COMPAT_REFUSED("malloc_info uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)");
#endif
#endif
