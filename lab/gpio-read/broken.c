/* Shows line 3 of a GPIO chip, or the given line, for a second; reads it every 50 ms. */
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct gpio_v2_line_request request = {.num_lines = 1};
    struct gpio_v2_line_values values = {.mask = 1};
    int chip = open(argc > 1 ? argv[1] : "/dev/gpiochip0", O_RDONLY);
    request.offsets[0] = argc > 2 ? (unsigned)atoi(argv[2]) : 3;
    request.config.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN;
    strcpy(request.consumer, "weir-lab");
    if (chip < 0 || ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) != 0) {
        perror("gpiochip");
        return 1;
    }
    for (int poll = 0; poll < 20; poll++) {
        if (ioctl(request.fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) != 0)
            return 1;
        printf("\rGPIO value: %d", (int)values.bits);
        usleep(50000);
    }
    putchar('\n');
    return 0;
}
