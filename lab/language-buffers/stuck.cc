// std::cout has a buffer of its own after sync_with_stdio(false), as a std::ofstream has.
#include <iostream>
#include <unistd.h>

int main() {
    std::ios::sync_with_stdio(false);
    std::cout << "line\n";
    sleep(60);
}
