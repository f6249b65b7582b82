// The same in C++: a hundred records in an ofstream, then SIGKILL. With the argument "fixed" it flushes before.
#include <csignal>
#include <fstream>
#include <string>
#include <unistd.h>

int main(int argc, char **argv) {
    std::ofstream out("records");
    for (int record = 0; record < 100; record++)
        out << "record " << record << "\n";
    if (argc > 1 && argv[1] == std::string("fixed")) out.flush();
    kill(getpid(), SIGKILL);
    pause();
}
