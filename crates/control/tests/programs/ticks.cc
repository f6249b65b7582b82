// As ticks.c, through a file buffer of C++: prints the time ten times a second. Between the lines it sleeps or computes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

static double now() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    std::ofstream out("/dev/stdout", std::ios::app);
    for (long number = atol(words[1]); number > 0; number--) {
        char line[64];
        snprintf(line, sizeof line, "at %.6f\n", now());
        out << line;
        if (words[2][0] == 'c') {
            for (double end = now() + 0.1; now() < end;) continue;
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    }
}
