#include <stdio.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
};

int main(void)
{
    FILE *trace = fopen("trace.txt", "w");
    struct node *list = NULL;

    if (!trace)
        return 1;
    setvbuf(trace, NULL, _IOLBF, 0);
    for (int i = 0; i < 50; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){i, list};
        list = node;
        fprintf(trace, "node %d added\n", i);
    }
    for (struct node *node = list;; node = node->next) /* no end: the last next is NULL */
        fprintf(trace, "value %d\n", node->value);
}
