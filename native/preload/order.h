/* order.h: stdio and write(2) on one descriptor in the program's order. */
#ifndef WEIR_ORDER_H
#define WEIR_ORDER_H
/* Before an own write to `fd`: its stdio streams are flushed, if order=1. */
void order_keep(int fd);
#endif
