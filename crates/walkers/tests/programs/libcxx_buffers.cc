// Leaves bytes in file buffers of libc++, writes a byte to standard error, and waits.
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <locale>
#include <string>
#include <utility>

static std::ofstream data("data");

// A facet that changes characters.
struct Shout : std::codecvt<char, char, std::mbstate_t> {
    bool do_always_noconv() const noexcept override { return false; }
    result do_out(std::mbstate_t &, const char *from, const char *from_end, const char *&from_next, char *to,
                  char *to_end, char *&to_next) const override {
        for (; from != from_end && to != to_end; from++, to++) *to = static_cast<char>(*from & ~32);
        from_next = from;
        to_next = to;
        return from == from_end ? ok : partial;
    }
};

// A file buffer that has a function of its own.
struct Counting : std::filebuf {
    int flushes = 0;
    int sync() override { return flushes++, std::filebuf::sync(); }
};

int main() {
    data << "in data";
    std::ofstream stack("stack");
    stack << "on the stack";
    auto *heap = new std::fstream("heap", std::ios::out | std::ios::trunc);
    *heap << "in the heap" << 12;
    static char buffer[100];
    std::ofstream own;
    own.rdbuf()->pubsetbuf(buffer, sizeof buffer);
    own.open("own");
    own << "in an own buffer";
    std::ofstream none;
    none.rdbuf()->pubsetbuf(nullptr, 0);
    none.open("none");
    none << "byte by byte";
    std::ofstream converted;
    converted.imbue(std::locale(std::locale::classic(), new Shout));
    converted.open("converted");
    converted << "converted bytes";
    std::ofstream closed("closed");
    closed << "gone";
    closed.close();
    std::ofstream source("moved");
    source << "moved";
    std::ofstream target(std::move(source));
    target << ", and more";
    Counting counting;
    counting.open("counting", std::ios::out);
    std::ostream(&counting) << "of a derived type";
    std::ifstream input("input");
    std::string line;
    std::getline(input, line);
    std::cout << "in cout";
    if (write(2, ".", 1) != 1) return 1;
    for (;;) pause();
}
