// Prints lines by each operation of a file buffer that can flush. The shared file argv[1] holds the number of complete
// lines. SIGWINCH, which is ignored, marks the beginning and end of the part that the test steps through.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

static volatile long *complete;
static bool same;

static void lines(std::ostream &out, int count, int longer) {
    for (int each = 0; each < count; each++) {
        long number = *complete;
        std::string line = same ? "a line\n" : std::to_string(number) + " " + std::string(longer, 'x') + "\n";
        switch (number % 4) {
        case 0: out << line; break;
        case 1:
            for (char one : line) out.rdbuf()->sputc(one);
            break;
        case 2: out.write(line.data(), static_cast<long>(line.size())); break;
        default:
            for (char one : line) out.put(one);
        }
        *complete = number + 1;
    }
}

int main(int count, char **words) {
    if (count < 4) return 2;
    int file = open(words[1], O_RDWR);
    void *shared = mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED) return 3;
    complete = static_cast<volatile long *>(shared);
    close(file);
    same = std::string(words[2]) == "same";
    int buffered = atoi(words[3]);
    std::string buffer(static_cast<size_t>(buffered), 0);
    std::ofstream out;
    out.rdbuf()->pubsetbuf(buffer.data(), buffered);
    // Opens the description of standard output again, so that the descriptor is another one.
    dup2(1, 9), close(1);
    out.open("/proc/self/fd/9", std::ios::app);
    if (!out) return 4;
    close(9);
    lines(out, 50, 0);
    kill(getpid(), SIGWINCH);
    lines(out, 60, 0);
    out.flush();
    lines(out, 4, 0);
    for (int each = 0; each < 8; each++) lines(out, 1, 3 * buffered + each);
    lines(out, 2, 0);
    out.flush();
    out.flush();
    kill(getpid(), SIGWINCH);
    return 0;
}
