// A logger that writes what it reads into an ofstream and flushes each line.
#include <fstream>
#include <iostream>
#include <string>

int main()
{
    std::ofstream log("log");
    log << std::unitbuf;
    for (std::string line; std::getline(std::cin, line);)
        log << "logged " << line << '\n';
    return log.good() ? 0 : 1;
}
