/* Replaces a GPIO chip where the kernel has none: preloaded, it answers for /dev/gpiochip9. The line's descriptor is the
 * FIFO $STANDIN_EDGES, to which the test writes struct gpio_v2_line_event; its value is the first byte of $STANDIN_VALUE. The
 * flags of the request go to $STANDIN_FLAGS. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char chip[] = "/dev/gpiochip9";

char *realpath(const char *path, char *resolved) {
    char *(*real)(const char *, char *) = dlsym(RTLD_NEXT, "realpath");
    if (strcmp(path, chip) != 0)
        return real(path, resolved);
    return resolved ? strcpy(resolved, path) : strdup(path);
}

int open64(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return real(strcmp(path, chip) == 0 ? "/dev/null" : path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...) {
    int (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (request == GPIO_V2_GET_LINE_IOCTL) {
        struct gpio_v2_line_request *line = argument;
        FILE *flags = fopen(getenv("STANDIN_FLAGS"), "w");
        fprintf(flags, "%u %u %#llx %s\n", line->num_lines, line->offsets[0], (unsigned long long)line->config.flags,
                line->consumer);
        fclose(flags);
        line->fd = open(getenv("STANDIN_EDGES"), O_RDWR | O_CLOEXEC);
        return line->fd < 0 ? -1 : 0;
    }
    if (request == GPIO_V2_LINE_GET_VALUES_IOCTL) {
        struct gpio_v2_line_values *values = argument;
        FILE *value = fopen(getenv("STANDIN_VALUE"), "r");
        values->bits = fgetc(value) == '1';
        fclose(value);
        return 0;
    }
    return real(fd, request, argument);
}
