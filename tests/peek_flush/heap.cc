// heap.cc: leaves three bytes in a file buffer of C++ behind a large heap, writes a byte to stderr, and waits until stdin ends.
// `large N`: behind N MiB of other objects. `tables N`: behind N MiB in which each word looks like the beginning of a file buffer; the
// stream is then far away from its FILE, from all variables and from the stack, where it is searched last.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

static std::ofstream *far_away()
{
    size_t bytes = 64 << 20;
    void *all = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return new (static_cast<char *>(all) + bytes / 2) std::ofstream("/dev/stdout", std::ios::app);
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? static_cast<size_t>(std::atol(argv[2])) << 20 : 0;
    bool is_hostile = argc > 1 && std::strcmp(argv[1], "tables") == 0;
    std::ofstream on_stack; // behind the heap
    if (!is_hostile)
        on_stack.open("/dev/stdout", std::ios::app);
    std::ofstream &out = is_hostile ? *far_away() : on_stack;
    void *table;
    std::memcpy(&table, static_cast<void *>(out.rdbuf()), sizeof table);
    void *last = nullptr;
    for (size_t at = 0; at < bytes; at += 65536) {
        void **block = static_cast<void **>(std::malloc(65536 - 16)); // below the size at which malloc maps memory apart
        for (size_t word = 0; word < 65536 / sizeof *block - 2; word++)
            block[word] = is_hostile ? table : last;
        last = block;
    }
    out << "abc";
    char byte = 0;
    if (write(2, ".", 1) != 1 || read(0, &byte, 1) != 0)
        return 1;
    out << (last == &byte ? "" : "def");
    return 0;
}
