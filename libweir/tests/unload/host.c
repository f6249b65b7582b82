/* host.c OBJECT FUNCTION PATH HOW: loads the shared object, calls its function with the path in another thread, and unloads
 * it; then that thread ends. HOW is close, or fork: the process then also forks and executes a program. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t called, unloaded;
static int (*function)(const char *);
static int result = -1;

static void *call(void *path)
{
    result = function(path);
    sem_post(&called);
    sem_wait(&unloaded);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 5)
        return 2;
    void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!object || !(*(void **)&function = dlsym(object, argv[2]))) {
        puts(dlerror());
        return 3;
    }
    sem_init(&called, 0, 0);
    sem_init(&unloaded, 0, 0);
    if (pthread_create(&thread, NULL, call, argv[3]) != 0)
        return 4;
    sem_wait(&called);
    if (result != 0 || dlclose(object) != 0) {
        printf("the function returned %d\n", result);
        return 5;
    }
    sem_post(&unloaded);
    pthread_join(thread, NULL);
    usleep(30000); /* the timer's next checks */
    if (strcmp(argv[4], "fork") == 0) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            execlp("true", "true", (char *)NULL);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 6;
    }
    return 0;
}
