// heap.cc: leaves three bytes in a file buffer of C++ behind a large heap, writes a byte to stderr, and waits until stdin ends.
// `large N`: behind N MiB of other objects. `tables N`: behind N MiB in which each word looks like the beginning of a file buffer.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? static_cast<size_t>(std::atol(argv[2])) << 20 : 0;
    std::ofstream out("/dev/stdout", std::ios::app); // on the stack, behind the heap
    void *table;
    std::memcpy(&table, static_cast<void *>(out.rdbuf()), sizeof table);
    bool is_hostile = argc > 1 && std::strcmp(argv[1], "tables") == 0;
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
