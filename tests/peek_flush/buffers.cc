// buffers.cc: writes to standard output through a file buffer of C++. `lines N` prints N numbered lines, and sleeps now
// and then. `read` leaves bytes in the buffer, writes a byte to stderr, waits until stdin ends, and prints the rest; with
// a second argument it leaves that many bytes, in a buffer of 64 KiB.
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

int main(int argc, char **argv)
{
    static char buffer[65536];
    std::string how = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? std::atol(argv[2]) : 0;
    std::ofstream out;
    if (how == "read" && number > 0)
        out.rdbuf()->pubsetbuf(buffer, sizeof buffer);
    out.open("/dev/stdout", std::ios::app);
    if (how == "lines") {
        for (long i = 0; i < number; i++) {
            out << "line " << i << "\n";
            timespec time = {0, 200000};
            if (i % 40 == 0)
                nanosleep(&time, nullptr);
        }
        return out.flush() ? 0 : 1;
    }
    for (long i = 0; i < number; i++)
        out.put(static_cast<char>('a' + i % 26));
    if (number == 0)
        out << "one\ntwo\nthree";
    char byte;
    if (write(2, ".", 1) != 1 || read(0, &byte, 1) != 0)
        return 2;
    out << " end\n";
    return out.flush() ? 0 : 1;
}
