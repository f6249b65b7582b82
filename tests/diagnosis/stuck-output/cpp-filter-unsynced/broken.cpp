// A filter whose std::cout has a buffer of its own since sync_with_stdio(false).
#include <iostream>
#include <string>

int main()
{
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    for (std::string line; std::getline(std::cin, line);)
        std::cout << "seen " << line << '\n';
    return std::cout.good() ? 0 : 1;
}
