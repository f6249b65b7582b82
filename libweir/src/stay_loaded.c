/* stay_loaded.c: threads that may still execute this library's code when dlclose(3) unloads the shared object with it. */
#include "private.h"

#include <dlfcn.h>

#ifdef __GLIBC__
#include <link.h>

/* Weak: a static program has none of them, unless it uses them itself. Before glibc 2.34 they are in libdl, which a program
 * that calls dlclose(3) has loaded. dlopen itself would make the linker warn of each static program. */
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dladdr1) dladdr1 __attribute__((weak));

void weir__stay_loaded(void)
{
    static atomic_bool stays;
    const void *here = &stays;
    Dl_info info;
    struct link_map *object;
    void *(*open)(const char *, int);
    if (atomic_load(&stays) || !dlsym || !dladdr1 || !dladdr1(here, &info, (void **)&object, RTLD_DL_LINKMAP))
        return;
    /* The program itself has no name, and is never unloaded. */
    if (object->l_name[0] && (*(void **)&open = dlsym(RTLD_DEFAULT, "dlopen")) != NULL)
        open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    atomic_store(&stays, true);
}
#else
void weir__stay_loaded(void) {} /* musl never unloads a shared object */
#endif
