/* exported.h: included first in every file of the library, which is compiled with -fvisibility=hidden. The
 * functions declared here have default visibility: those of weir.h, and those of the C library that libweir
 * replaces, such as execve(3). weir.map lists the symbols that are exported. */
#pragma GCC visibility push(default)
#include <spawn.h>
#include <unistd.h>
#include <weir.h>
#pragma GCC visibility pop
