// Appends standard input to a file: @NAME@.
// Build: c++ -std=c++17 -O2 -o log log.cpp      Use: ./log FILE < SOURCE
// In a program of your own, call append_all with two descriptors. The target must not be open with O_APPEND, and only one
// process may write it.
#include <array>
#include <cerrno>
#include <iostream>
#include <system_error>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

using Method = ssize_t (*)(int from, int to);
constexpr size_t chunk_bytes = 1 << 30;

static ssize_t read_and_write(int from, int to)
{
    static std::array<char, 65536> block;
    ssize_t bytes = read(from, block.data(), block.size());
    for (ssize_t done = 0; done < bytes;) {
        ssize_t written = write(to, block.data() + done, static_cast<size_t>(bytes - done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        done += written;
    }
    return bytes;
}

static constexpr std::array<Method, 4> methods = {
    [](int from, int to) { return copy_file_range(from, nullptr, to, nullptr, chunk_bytes, 0); },
    [](int from, int to) { return splice(from, nullptr, to, nullptr, chunk_bytes, SPLICE_F_MOVE); },
    [](int from, int to) { return sendfile(to, from, nullptr, chunk_bytes); },
    read_and_write,
};

// Returns whether the kernel cannot do the call with these files, so that another must do it.
static bool is_unsupported(int error)
{
    return error == EINVAL || error == EXDEV || error == ENOSYS || error == EOPNOTSUPP || error == EBADF || error == EPERM;
}

// Copies all bytes. The files keep their positions, so each method goes on where the one before it stopped. Some files say
// that they end and do not (those of /proc), so only the end that read(2) sees is the end.
static void append_all(int from, int to)
{
    const size_t last = methods.size() - 1;
    for (size_t method = 0; method <= last;) {
        ssize_t bytes = methods[method](from, to);
        if (bytes == 0)
            method = method == last ? last + 1 : last;
        else if (bytes < 0 && errno != EINTR) {
            if (method == last || !is_unsupported(errno))
                throw std::system_error(errno, std::generic_category(), "copy");
            method++;
        }
    }
}

static int check(long result, const char *call)
{
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), call);
    return static_cast<int>(result);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: log FILE\n";
        return 2;
    }
    try {
        int to = check(open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0666), "open");
        check(lseek(to, 0, SEEK_END), "lseek");
        append_all(STDIN_FILENO, to);
        check(close(to), "close");
    } catch (const std::system_error &error) {
        std::cerr << argv[1] << ": " << error.what() << '\n';
        return 1;
    }
    return 0;
}
