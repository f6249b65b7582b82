// Uses much memory, waits for a file `go`, and then leaves bytes in file buffers on the stack, in the heap and in a variable.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

static std::ofstream in_data;

int main() {
    std::vector<std::string> strings;
    for (int each = 0; each < 64 << 10; each++) strings.push_back(std::string(1000, 'x'));
    write(2, ".", 1);
    while (access("go", F_OK) != 0) usleep(1000);

    std::ofstream on_stack("stack");
    on_stack << "on the stack";
    auto in_heap = std::make_unique<std::ofstream>("heap");
    *in_heap << "in the heap";
    in_data.open("data");
    in_data << "in data";
    write(2, ".", 1);
    pause();
}
