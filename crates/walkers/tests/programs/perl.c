/* Loads the interpreter of Perl from the library in its first argument; the other arguments are Perl's. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char **argv, char **environment)
{
    library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    argv[1] = argv[0];
    argc--;
    argv++;
    void (*prepare)(int *, char ***, char ***) = (void (*)(int *, char ***, char ***))function("Perl_sys_init3");
    void *(*allocate)(void) = (void *(*)(void))function("perl_alloc");
    void (*construct)(void *) = (void (*)(void *))function("perl_construct");
    int (*parse)(void *, void *, int, char **, char **) =
        (int (*)(void *, void *, int, char **, char **))function("perl_parse");
    int (*run)(void *) = (int (*)(void *))function("perl_run");
    prepare(&argc, &argv, &environment);
    void *interpreter = allocate();
    construct(interpreter);
    return parse(interpreter, NULL, argc, argv, environment) != 0 || run(interpreter) != 0;
}
