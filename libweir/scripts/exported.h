/* exported.h: included first in every file of the library, which is compiled with -fvisibility=hidden. What
 * is declared here may be exported (weir.map says what is): the public calls, and those of the C library
 * that the library puts itself before, such as execve(3). */
#pragma GCC visibility push(default)
#include <spawn.h>
#include <unistd.h>
#include <weir.h>
#pragma GCC visibility pop
