// Moves a stream from object to object while it has pending bytes. SIGWINCH, which is ignored, marks the parts that the test steps
// through: moves, and more lines; with argv[3] "hidden" after a move to shared memory, in which no search finds the stream. argv[1] and
// argv[2] are the numbers of lines before the first mark and after the second one.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

static int number;

static void line(std::ostream &out) { out << number++ << " is the number of this line\n"; }

static void mark() { kill(getpid(), SIGWINCH); }

static std::ofstream by_value(std::ofstream out) {
    line(out);
    return out;
}

static std::ofstream in_vectors(std::ofstream out) {
    for (unsigned others = 0; others < 3; others++) {
        std::vector<std::ofstream> places(others);
        places.push_back(std::move(out));
        line(places.back());
        out = std::move(places.back());
        line(out);
    }
    return out;
}

static std::ofstream on_the_heap(std::ofstream out) {
    auto first = std::make_unique<std::ofstream>(std::move(out));
    line(*first);
    auto second = std::make_unique<std::ofstream>();
    second->swap(*first);
    first.reset();
    line(*second);
    return std::move(*second);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 3;
    std::ofstream out("/dev/stdout", std::ios::app);
    line(out);
    // Both buffers are empty now. So the FILE takes a whole buffer without a write.
    out.flush();
    for (int each = atoi(words[1]); each > 1; each--) line(out);
    mark();
    out = by_value(std::move(out));
    out = in_vectors(std::move(out));
    out = on_the_heap(std::move(out));
    mark();
    bool hides = std::string(words[3]) == "hidden";
    std::ofstream &last = hides ? *new (shared) std::ofstream(std::move(out)) : out;
    for (int each = atoi(words[2]); each > 0; each--) line(last);
    mark();
    if (hides) last.~basic_ofstream();
    return 0;
}
