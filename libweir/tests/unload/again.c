/* again.c OBJECT FUNCTION PATH TIMES: loads the shared object, calls its function with the path, and unloads the object, again
 * and again, with forks between. Fails if it stays loaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int use_once(char **argv)
{
    int (*function)(const char *);
    void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!object || !(*(void **)&function = dlsym(object, argv[2])))
        return fprintf(stderr, "%s\n", dlerror());
    int result = function(argv[3]);
    if (result != 0 || dlclose(object) != 0)
        return fprintf(stderr, "the function returned %d\n", result);
    return dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) ? fprintf(stderr, "it stays loaded\n") : 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    for (int left = atoi(argv[4]); left > 0; left--) {
        if (use_once(argv) != 0)
            return 3;
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            exit(0);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 4;
    }
    return 0;
}
