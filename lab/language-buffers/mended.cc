// std::flush writes the buffer; std::endl is a newline and std::flush.
#include <iostream>
#include <unistd.h>

int main() {
    std::ios::sync_with_stdio(false);
    std::cout << "line\n" << std::flush;
    sleep(60);
}
