// Checks its results, and an exception that nobody catches ends it.
#include <iostream>
#include <stdexcept>

static int checked(int value)
{
    if (value == 150)
        throw std::runtime_error("150 cannot be right");
    return value * value;
}

int main()
{
    std::ios::sync_with_stdio(false);
    for (int value = 0; value < 200; value++)
        std::cout << value << " gives " << checked(value) << "\n";
}
