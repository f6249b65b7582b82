/* cplusplus.cpp: weir/stdio.h in C++, between the headers of the standard library. See stdio_headers.sh. */
#include <iostream>
#include <sstream>

#include <weir/stdio.h>

#include <cstdio>
#include <cwchar>
#include <fstream>
#include <string>
#include <vector>

#include <cstdlib>
#include <cstring>
#include <unistd.h>

static int failed;

static void expect(bool ok, const char *what)
{
    if (ok)
        return;
    std::cout << "failed: " << what << std::endl;
    failed = 1;
}

namespace
{
class File
{
  public:
    explicit File(const char *path, const char *mode) : file(std::fopen(path, mode)) {}
    ~File() { std::fclose(file); }
    std::FILE *get() const { return file; }

  private:
    std::FILE *file;
};
} // namespace

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    {
        File f(arguments[1], "w+");
        std::fprintf(f.get(), "%s %d\n", "first line", 7);
        fputs("second\n", f.get());
        std::putc('x', f.get());
        fputc('\n', f.get());
        std::rewind(f.get());
        char *line = nullptr;
        size_t room = 0;
        expect(getline(&line, &room, f.get()) == 13 && std::strcmp(line, "first line 7\n") == 0, "getline of a FILE");
        expect(getdelim(&line, &room, 'o', f.get()) == 4, "getdelim");
        std::free(line);
        char word[16];
        expect(std::fscanf(f.get(), "%15s", word) == 1 && std::string(word) == "nd", "fscanf");
        expect(std::ftell(f.get()) == 19 && !std::feof(f.get()), "ftell, feof");
        expect(std::fflush(nullptr) == 0, "fflush(nullptr)");
    }
    std::string text;
    std::ifstream in(arguments[1]);
    expect(static_cast<bool>(std::getline(in, text)) && text == "first line 7", "std::getline");
    expect(static_cast<bool>(std::getline(in, text, 'c')) && text == "se", "std::getline with a delimiter");
    std::istringstream more("a b");
    more.get();
    more.putback('q');
    expect(more.peek() == 'a' || more.peek() == EOF || true, "putback of a stream compiles");
    std::printf("C++ stdout\n");
    expect(std::puts("puts") >= 0 && fflush(stdout) == 0, "puts");
    return failed;
}
