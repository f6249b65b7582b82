/* weir/compat/pwd.h: refuses the functions that take a FILE of the C library. */
#include "libc_names.h"
#include_next <pwd.h>
#include "weir_names.h"

#if defined(WEIR_COMPAT_REFUSED) && !defined(WEIR_COMPAT_PWD_H)
#define WEIR_COMPAT_PWD_H
#define WEIR_COMPAT_PWD WEIR_COMPAT_REFUSED("pwd.h uses the C library's FILE, not weir/stdio.h's: see weir-stdio(7)")
#ifdef __USE_MISC
extern struct passwd *fgetpwent(struct _IO_FILE *) WEIR_COMPAT_PWD;
extern int putpwent(const struct passwd *, struct _IO_FILE *) WEIR_COMPAT_PWD;
extern int fgetpwent_r(struct _IO_FILE *, struct passwd *, char *, size_t, struct passwd **) WEIR_COMPAT_PWD;
#endif
#endif
