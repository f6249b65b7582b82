/* weir/compat/grp.h: refuses the functions that take a FILE of the C library. */
#include "libc_names.h"
#include_next <grp.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_GRP_H)
#define WEIR_COMPAT_GRP_H
#define WEIR_COMPAT_GRP WEIR_COMPAT_REFUSED("grp.h uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
#ifdef __USE_MISC
extern struct group *fgetgrent(struct _IO_FILE *) WEIR_COMPAT_GRP;
extern int putgrent(const struct group *, struct _IO_FILE *) WEIR_COMPAT_GRP;
extern int fgetgrent_r(struct _IO_FILE *, struct group *, char *, size_t, struct group **) WEIR_COMPAT_GRP;
#endif
#endif
