// As restless.c, through the file buffers of C++: writes output that only the seed determines, at a changing speed.
// argv[1] is the mode: p plain, w with write(2), f and u with forks, s seeks, 2 two streams, t threads, m moves the
// stream, e executes itself; argv[2] the seed, argv[3] the number of lines, argv[4] a file for mode s.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifndef _LIBCPP_VERSION
#include <ext/stdio_filebuf.h>
#endif

static unsigned long state;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return static_cast<unsigned>(state >> 33) % below;
}

static void compute(long microseconds) {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    while (std::chrono::steady_clock::now() < end) {}
}

static void idle(long pause) {
    // The kind of pause does not affect the output.
    static unsigned turn;
    switch (turn++ % 4) {
    case 0: usleep(static_cast<useconds_t>(pause)); break;
    case 1: compute(pause); break;
    case 2: compute(pause / 2), usleep(static_cast<useconds_t>(pause / 2)); break;
    default: break;
    }
}

static void line(std::ostream &to, long number) {
    unsigned length = draw(60);
    switch (draw(5)) {
    case 0: to << number << ' ' << std::string(length, '7') << '\n'; break;
    case 1:
        for (unsigned at = 0; at < length; at++) to.rdbuf()->sputc(static_cast<char>('a' + draw(26)));
        to.put('\n');
        break;
    case 2: to.write("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", length).put('\n'); break;
    case 3: to << std::string(draw(8) ? length : 1000 + 40 * length, 'w') << '\n'; break;
    default: to << "the quick brown fox\n"; break;
    }
}

// Forks a child that writes the bytes pending at the fork too, unless `clean` flushes them before.
static void fork_child(std::ostream &out, bool clean) {
    unsigned flush = draw(2);
    if (flush || clean) out.flush();
    pid_t child = fork();
    if (child == 0) {
        if (flush) out << "child\n";
        out.flush();
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

static void seek(std::ostream &out, const char *path, long lines) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::trunc);
    for (long number = 0; number < lines; number++) {
        line(file, number);
        if (draw(8) == 0) {
            char back[8];
            file.seekg(-static_cast<long>(draw(5)), std::ios::cur);
            if (file.read(back, static_cast<long>(draw(4))).gcount() > 0) file.unget();
            file.clear();
            file.seekp(0, draw(2) ? std::ios::end : std::ios::cur);
            if (draw(2)) out << "at " << file.tellp() << '\n';
        }
        if (draw(10) == 0) file << "position " << file.tellp() << '\n';
        if (draw(4) == 0) idle(draw(3000));
    }
    file.seekg(0);
    out << file.rdbuf();
}

static void two_streams(std::ostream &out, long lines) {
#ifdef _LIBCPP_VERSION
    std::ofstream second("/dev/stdout", std::ios::app);
#else
    __gnu_cxx::stdio_filebuf<char> buffer(dup(1), std::ios::out);
    std::ostream second(&buffer);
#endif
    for (long number = 0; number < lines; number++) {
        line(out, number);
        if (draw(5) == 0) {
            idle(draw(4000));
            out.flush();
            line(second, number);
            idle(draw(4000));
            second.flush();
        }
    }
}

static void threads(std::ostream &out, long lines) {
    std::mutex lock;
    auto print = [&] {
        for (long number = 0; number < lines; number++) {
            {
                std::lock_guard<std::mutex> held(lock);
                out << "thread\n";
            }
            if (number % 16 == 0) usleep(500);
        }
    };
    std::thread other(print);
    print();
    other.join();
}

static void plain(std::ostream &out, long lines, int kind) {
    for (long number = 0; number < lines; number++) {
        line(out, number);
        if (draw(12) == 0) idle(draw(6000));
        if (draw(40) == 0) out.flush();
        if (kind == 'w' && draw(30) == 0) {
            out.flush();
            if (write(1, "by write(2)\n", 12) != 12) _exit(8);
        }
        if ((kind == 'f' || kind == 'u') && draw(60) == 0) fork_child(out, kind == 'f');
    }
}

static void moved(std::ofstream out, long lines) {
    std::vector<std::ofstream> places;
    for (long number = 0; number < lines; number++) {
        line(out, number);
        if (draw(3) == 0) idle(draw(3000));
        if (draw(5) == 0) {
            std::vector<std::ofstream> others(draw(4));
            others.push_back(std::move(out));
            if (draw(2)) idle(draw(9000));
            out = std::move(others.back());
        }
    }
}

int main(int count, char **words) {
    if (count < 4) return 2;
    long lines = atol(words[3]);
    state = strtoul(words[2], nullptr, 10);
#ifdef _LIBCPP_VERSION
    // std::cout of libc++ writes through stdio always.
    std::ofstream to("/dev/stdout", std::ios::app);
#else
    std::ostream &to = std::cout;
#endif
    std::ios::sync_with_stdio(false);
    // The buffer of a stream that outlives main, as std::cout does.
    static char own[1 << 16];
    if (words[1][0] == 'm') {
        std::ofstream out;
        if (draw(2)) out.rdbuf()->pubsetbuf(own, static_cast<long>(16u << draw(13)));
        out.open("/dev/stdout", std::ios::app);
        moved(std::move(out), lines);
        return 0;
    }
    switch (words[1][0]) {
    case 's': seek(to, words[4], lines); break;
    case '2': two_streams(to, lines); break;
    case 't': threads(to, lines); break;
    case 'e':
        plain(to, lines, 'p');
        to.flush();
        execl("/proc/self/exe", words[0], "p", words[2], words[3], static_cast<char *>(nullptr));
        return 7;
    default: plain(to, lines, words[1][0]);
    }
    return 0;
}
