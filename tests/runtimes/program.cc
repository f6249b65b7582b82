// As program.py.
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <unistd.h>

int main(int count, char **) {
    std::ios::sync_with_stdio(false);
    std::ofstream log("log");
    for (int i = 0; i < 2; i++) {
        std::cout << "out " << i << "\n";
        log << "log " << i << "\n";
    }
    close(creat("ready", 0666));
    if (count > 1) raise(SIGKILL);
    sleep(60);
    return 0;
}
