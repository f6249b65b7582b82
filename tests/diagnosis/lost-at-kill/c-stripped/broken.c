#include <signal.h>
#include <stdio.h>

int main(void)
{
    FILE *orders = fopen("orders.csv", "w"), *errors = fopen("errors.log", "w"), *done = fopen("done.csv", "w");

    if (!orders || !errors || !done)
        return 1;
    for (int i = 0; i < 400; i++) {
        fprintf(orders, "order %d; amount %d\n", i, i * 13 % 70);
        if (i % 50 == 0)
            fprintf(errors, "order %d: no address\n", i);
    }
    fprintf(done, "400\n");
    fflush(done);
    return raise(SIGKILL);
}
