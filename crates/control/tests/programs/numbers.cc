// As numbers.c, through a file buffer of C++: prints numbered lines, with pauses if argv[2] is not 0, until it is
// killed. The shared file argv[1] holds the number of complete lines.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

int main(int count, char **words) {
    if (count < 3) return 2;
    int file = open(words[1], O_RDWR);
    void *shared = mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED) return 3;
    close(file);
    volatile long *complete = static_cast<volatile long *>(shared);
#ifdef _LIBCPP_VERSION
    // std::cout of libc++ writes through stdio always.
    std::ofstream out("/dev/stdout");
#else
    std::ios::sync_with_stdio(false);
    std::ostream &out = std::cout;
#endif
    long every = atol(words[2]);
    for (long number = 0;; number++) {
        if (number % 97 == 0) {
            out << std::to_string(number) + " " + std::string(1500, 'x') + "\n";
        } else if (number % 3) {
            out << number << " a line that ends here\n";
        } else {
            for (char one : std::to_string(number) + " by its characters\n") out.put(one);
        }
        *complete = number + 1;
        if (every && number % every == 0) usleep(200);
        if (every && number % (37 * every) == 0) out.flush();
    }
}
