/* weir/compat/argp.h: refuses the functions and members that have a FILE of the C library. argp_parse(3) works; its
 * own messages go to the C library's streams. */
#include "stdio.h" /* argp.h includes it */
#include "libc_names.h"
#define out_stream out_stream_is_the_C_librarys
#define err_stream err_stream_is_the_C_librarys
#include_next <argp.h>
#undef out_stream
#undef err_stream
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_ARGP_H)
#define WEIR_COMPAT_ARGP_H
#define WEIR_COMPAT_ARGP WEIR_COMPAT_REFUSED("argp.h uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
extern void argp_help(const struct argp *, struct _IO_FILE *, unsigned, char *) WEIR_COMPAT_ARGP;
extern void argp_state_help(const struct argp_state *, struct _IO_FILE *, unsigned) WEIR_COMPAT_ARGP;
#endif
