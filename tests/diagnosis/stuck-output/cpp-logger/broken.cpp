// A logger that writes what it reads into an ofstream, whose buffer is written when it is full.
#include <fstream>
#include <iostream>
#include <string>

int main()
{
    std::ofstream log("log");
    for (std::string line; std::getline(std::cin, line);)
        log << "logged " << line << '\n';
    return log.good() ? 0 : 1;
}
