/* weir/compat/mntent.h: refuses the functions that take or return a FILE of the C library. */
#include "libc_names.h"
#include_next <mntent.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_MNTENT_H)
#define WEIR_COMPAT_MNTENT_H
#define WEIR_COMPAT_MNTENT WEIR_COMPAT_REFUSED("mntent.h uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
extern struct _IO_FILE *setmntent(const char *, const char *) WEIR_COMPAT_MNTENT;
extern struct mntent *getmntent(struct _IO_FILE *) WEIR_COMPAT_MNTENT;
extern int addmntent(struct _IO_FILE *, const struct mntent *) WEIR_COMPAT_MNTENT;
extern int endmntent(struct _IO_FILE *) WEIR_COMPAT_MNTENT;
#if defined(__GLIBC__) && defined(__USE_MISC)
extern struct mntent *getmntent_r(struct _IO_FILE *, struct mntent *, char *, int) WEIR_COMPAT_MNTENT;
#endif
#endif
