// Forks with a pending line of a stream, makes another stream at once and forks with a pending line of that. Each child
// writes a line of its own. The memory is so large that a search of it is not repeated soon.
#include <fstream>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static void fork_with(std::ofstream &out, const std::string &line) {
    out << line << '\n';
    if (fork() == 0) {
        out << "child of " << line << std::endl;
        _exit(0);
    }
    wait(nullptr);
}

int main() {
    std::vector<char> large(48 << 20, 1);
    auto first = std::make_unique<std::ofstream>("/dev/stdout", std::ios::app);
    fork_with(*first, "1");
    auto second = std::make_unique<std::ofstream>("/dev/stdout", std::ios::app);
    fork_with(*second, "2");
    return large[1 << 20] - 1;
}
