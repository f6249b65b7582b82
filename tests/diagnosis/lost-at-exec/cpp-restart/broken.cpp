// A service that reads its options and then executes itself again.
#include <fstream>
#include <unistd.h>

int main(int argc, char **argv)
{
    std::ofstream log("service.log", std::ios::app);

    if (argc > 1) {
        log << "second life begins\n";
        return 0;
    }
    for (int i = 0; i < 20; i++)
        log << "option " << i << " read\n";
    log << "restarting\n";
    char *again[] = {argv[0], const_cast<char *>("restarted"), nullptr};
    execv("/proc/self/exe", again);
    return 127;
}
