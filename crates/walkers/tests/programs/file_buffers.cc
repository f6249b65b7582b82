// Leaves known bytes in file buffers of every kind, and waits. With an argument it then moves one and opens another one.
#include <unistd.h>
#include <fcntl.h>
#include <string.h>

#include <ext/stdio_filebuf.h>
#include <fstream>
#include <iostream>
#include <locale>
#include <memory>
#include <string>
#include <vector>

/// A facet that changes what a file buffer writes.
struct Upper : std::codecvt<char, char, std::mbstate_t> {
    bool do_always_noconv() const noexcept override { return false; }
};

/// A file buffer that writes as its base does.
struct Named : std::filebuf {
    std::string name = "named";
};

/// A file buffer that has a function of its own.
struct Counting : std::filebuf {
    int flushes = 0;
    int sync() override { return flushes++, std::filebuf::sync(); }
};

/// A type that is derived from one with a function of its own.
struct Recounting : Counting {
    int total = 0;
};

struct First {
    virtual ~First() = default;
    long first[5] = {};
};

/// A file buffer that is not at the beginning of its object.
struct Second : First, private std::filebuf {
    bool write(const char *path, const char *text) {
        open(path, std::ios::out);
        return sputn(text, strlen(text)) > 0;
    }
};

static std::ofstream in_data;

static void wait_for_go() {
    write(2, ".", 1);
    while (access("go", F_OK) != 0) usleep(1000);
}

int main() {
    std::ios::sync_with_stdio(false);
    std::cout << "in cout";
    std::clog << "in clog";
    std::ofstream on_stack("stack");
    on_stack << "flushed" << std::flush << "on the stack";
    auto in_heap = std::make_unique<std::fstream>("heap", std::ios::out | std::ios::trunc);
    *in_heap << "in the heap" << 12;
    in_data.open("data", std::ios::app);
    in_data << "in data";
    std::ofstream empty("empty"), closed("closed");
    closed << "closed";
    closed.close();
    char own[100];
    std::ofstream with_own;
    with_own.rdbuf()->pubsetbuf(own, sizeof own);
    with_own.open("own");
    with_own << "in an own buffer";
    std::ofstream unbuffered;
    unbuffered.rdbuf()->pubsetbuf(nullptr, 0);
    unbuffered.open("none");
    unbuffered << "written";
    __gnu_cxx::stdio_filebuf<char> of_descriptor(open("descriptor", O_WRONLY | O_CREAT, 0666), std::ios::out);
    of_descriptor.sputn("of a descriptor", 15);
    Named named;
    named.open("named", std::ios::out);
    named.sputn("of a derived type", 17);
    Counting counting;
    counting.open("counting", std::ios::out);
    counting.sputn("of another type", 15);
    Recounting recounting;
    recounting.open("recounting", std::ios::out);
    recounting.sputn("of a type of that", 17);
    Second second;
    second.write("second", "of a second base");
    std::ofstream converted;
    converted.imbue(std::locale(std::locale::classic(), new Upper));
    converted.open("converted");
    converted << "to be converted";
    std::ifstream input("input");
    std::string line;
    std::getline(input, line);
    wait_for_go();

    auto moved = std::make_unique<std::vector<std::ofstream>>();
    moved->push_back(std::move(on_stack));
    moved->at(0) << ", moved";
    std::ofstream late("late");
    late << "later";
    write(2, ".", 1);
    pause();
}
