/* weir/compat/printf.h: refuses conversions of the program's own: their functions would get a FILE of the C library. */
#include "libc_names.h"
#include_next <printf.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_PRINTF_H)
#define WEIR_COMPAT_PRINTF_H
#define WEIR_COMPAT_PRINTF \
    WEIR_COMPAT_REFUSED("a conversion of printf.h writes to the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
extern int register_printf_specifier(int, printf_function, printf_arginfo_size_function) WEIR_COMPAT_PRINTF;
extern int register_printf_function(int, printf_function, printf_arginfo_function) WEIR_COMPAT_PRINTF;
extern int printf_size(struct _IO_FILE *, const struct printf_info *, const void *const *) WEIR_COMPAT_PRINTF;
#endif
