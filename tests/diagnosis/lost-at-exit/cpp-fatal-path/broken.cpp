// Squares the numbers of its input.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>

static std::ofstream report;

static void fatal(const std::string &what)
{
    std::cerr << "fatal: " << what << "\n";
    _exit(2);
}

int main()
{
    report.open("report.txt");
    for (std::string line; std::getline(std::cin, line);) {
        long value = std::atol(line.c_str());
        if (value == 0)
            fatal(line);
        report << value << " squared is " << value * value << "\n";
    }
    return report.flush() ? 0 : 1;
}
