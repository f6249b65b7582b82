// Reports its progress on std::cout, which has a buffer of its own here.
#include <iostream>
#include <unistd.h>

int main()
{
    std::ios::sync_with_stdio(false);
    for (int step = 1; step <= 3; step++) {
        std::cout << "step " << step << " of 3 begins" << "\n" << std::flush;
        usleep(700000);
    }
    std::cout << "all steps are done\n";
}
