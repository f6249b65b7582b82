/* weir/compat/shadow.h: refuses the functions that take a FILE of the C library. */
#include "libc_names.h"
#include_next <shadow.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_SHADOW_H)
#define WEIR_COMPAT_SHADOW_H
#define WEIR_COMPAT_SHADOW WEIR_COMPAT_REFUSED("shadow.h uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
#ifdef __GLIBC__
extern struct spwd *fgetspent(struct _IO_FILE *) WEIR_COMPAT_SHADOW;
extern int putspent(const struct spwd *, struct _IO_FILE *) WEIR_COMPAT_SHADOW;
extern int fgetspent_r(struct _IO_FILE *, struct spwd *, char *, size_t, struct spwd **) WEIR_COMPAT_SHADOW;
#endif
#endif
