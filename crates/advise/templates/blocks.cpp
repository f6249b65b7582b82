// Appends the lines of standard input to a file: @NAME@.
%if io_uring
// Build: c++ -std=c++17 -O2 -o log log.cpp -luring      Use: ./log FILE < records
%else
// Build: c++ -std=c++17 -O2 -o log log.cpp      Use: ./log FILE < records
%end
// In a program of your own, use RecordLog with each record and its newline. Only one thread of one process may write the
// file.
%if mmap
// A kill leaves NULs at the end of the file: cut them off before the next use.
%else
// A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end
#include <algorithm>
%if io_uring
#include <array>
%end
#include <cerrno>
%if direct
#include <cstdlib>
%end
#include <cstring>
#include <iostream>
%if direct
#include <memory>
%end
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
%if io_uring
#include <liburing.h>
%end
%if mmap
#include <sys/mman.h>
%end
#include <unistd.h>

static void check(long result, const char *call)
{
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), call);
}

class RecordLog {
public:
%if mmap
    explicit RecordLog(const std::string &path)
    {
        fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        check(fd, "open");
        end = lseek(fd, 0, SEEK_END);
        check(end, "lseek");
        map_window();
    }

    // Other processes see a record at once; the kernel writes it back like a write(2).
    void record(std::string_view bytes)
    {
        while (!bytes.empty()) {
            size_t left = static_cast<size_t>(start + window_bytes - end);
            if (left == 0 || !window) { // no window: the last call found no room
                map_window();
                continue;
            }
            size_t part = std::min(bytes.size(), left);
            std::memcpy(window + (end - start), bytes.data(), part);
            end += static_cast<off_t>(part);
            bytes.remove_prefix(part);
        }
    }

    // Call it, also after an error: it cuts off what was reserved.
    void close()
    {
        if (window)
            check(munmap(window, window_bytes), "munmap");
        window = nullptr;
        check(ftruncate(fd, end), "ftruncate");
        check(::close(fd), "close");
    }

private:
    // Moves the window to the end of the records.
    void map_window()
    {
        if (window)
            check(munmap(window, window_bytes), "munmap");
        window = nullptr;
        start = end - end % sysconf(_SC_PAGESIZE);
        // With reserved blocks a full disk is an error here. Otherwise it is SIGBUS at a later store.
        errno = posix_fallocate(fd, start, window_bytes);
        check(errno == 0 ? 0 : -1, "posix_fallocate");
        void *mapped = mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);
        check(mapped == MAP_FAILED ? -1 : 0, "mmap");
        window = static_cast<char *>(mapped);
    }

    static constexpr off_t window_bytes = 4 << 20; // the file grows by so many bytes; a multiple of the page size
    int fd = -1;
    char *window = nullptr;
    off_t start = 0, end = 0; // of the window, and of the records
%end
%if direct
    explicit RecordLog(const std::string &path)
    {
        fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        check(fd, "open");
        block.reset(static_cast<char *>(std::aligned_alloc(align, block_bytes)));
        if (!block)
            throw std::bad_alloc();
        off_t end = lseek(fd, 0, SEEK_END);
        check(end, "lseek");
        // The first block begins with the bytes after the last aligned offset.
        used = static_cast<size_t>(end) % align;
        start = end - static_cast<off_t>(used);
        ssize_t tail = pread(fd, block.get(), used, start);
        if (tail >= 0 && tail != static_cast<ssize_t>(used))
            errno = EIO;
        check(tail == static_cast<ssize_t>(used) ? 0 : -1, "pread");
        check(fcntl(fd, F_SETFL, O_DIRECT), "O_DIRECT"); // EINVAL: this file system does not have it
    }

    // A record is in the file when its block is full.
    void record(std::string_view bytes)
    {
        while (!bytes.empty()) {
            size_t part = std::min(bytes.size(), block_bytes - used);
            std::memcpy(block.get() + used, bytes.data(), part);
            used += part;
            bytes.remove_prefix(part);
            if (used == block_bytes) {
                write_block(block_bytes);
                start += static_cast<off_t>(block_bytes);
                used = 0;
            }
        }
    }

    // Call it: a destructor could not report an error.
    void close()
    {
        if (used > 0) { // the last block is padded, and the padding cut off
            size_t padded = (used + align - 1) / align * align;
            std::memset(block.get() + used, 0, padded - used);
            write_block(padded);
            check(ftruncate(fd, start + static_cast<off_t>(used)), "ftruncate");
        }
        check(::close(fd), "close");
    }

private:
    void write_block(size_t bytes)
    {
        for (size_t done = 0; done < bytes;) {
            ssize_t count = pwrite(fd, block.get() + done, bytes - done, start + static_cast<off_t>(done));
            if (count < 0 && errno == EINTR)
                continue;
            check(count, "pwrite");
            done += static_cast<size_t>(count);
        }
    }

    struct Free {
        void operator()(char *memory) const { std::free(memory); }
    };
    static constexpr size_t align = 4096, block_bytes = @BUFFER@; // no device has larger sectors than 4096
    int fd = -1;
    std::unique_ptr<char, Free> block;
    size_t used = 0;
    off_t start = 0; // of the block; a multiple of align
%end
%if io_uring
    explicit RecordLog(const std::string &path)
    {
        fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        check(fd, "open");
        // EPERM or ENOSYS: the kernel or a seccomp filter forbids io_uring; use write(2).
        check_ring(io_uring_queue_init(2, &ring, 0));
    }

    // The kernel gets a record when its block is full.
    void record(std::string_view bytes)
    {
        while (!bytes.empty()) {
            size_t part = std::min(bytes.size(), block_bytes - used);
            std::memcpy(blocks[current].data() + used, bytes.data(), part);
            used += part;
            bytes.remove_prefix(part);
            if (used == block_bytes)
                start_block();
        }
    }

    // Call it: a destructor could not report an error.
    void close()
    {
        start_block();
        complete();
        io_uring_queue_exit(&ring);
        check(::close(fd), "close");
    }

private:
    // liburing returns a negative errno.
    static void check_ring(int result)
    {
        if (result < 0)
            throw std::system_error(-result, std::generic_category(), "io_uring");
    }

    void submit()
    {
        io_uring_sqe *entry = io_uring_get_sqe(&ring);
        check_ring(entry ? 0 : -EBUSY);
        io_uring_prep_write(entry, fd, at, static_cast<unsigned>(left), 0); // O_APPEND: at the end
        check_ring(io_uring_submit(&ring));
    }

    // Waits until the kernel has written the block.
    void complete()
    {
        while (left > 0) {
            io_uring_cqe *completion;
            int result = io_uring_wait_cqe(&ring, &completion);
            if (result == -EINTR)
                continue;
            check_ring(result);
            result = completion->res;
            io_uring_cqe_seen(&ring, completion);
            if (result < 0 && result != -EINTR && result != -EAGAIN) {
                left = 0;
                check_ring(result);
            }
            if (result > 0) {
                at += result;
                left -= static_cast<size_t>(result);
            }
            if (left > 0)
                submit(); // a nearly full disk can make a write short
        }
    }

    // Begins to write the current block. The error of a write is thrown by the next call.
    void start_block()
    {
        complete();
        at = blocks[current].data();
        left = used;
        current = 1 - current;
        used = 0;
        if (left > 0)
            submit();
    }

    static constexpr size_t block_bytes = @BUFFER@;
    int fd = -1;
    io_uring ring;
    std::array<std::array<char, block_bytes>, 2> blocks; // one is filled while the kernel writes the other
    size_t current = 0, used = 0;
    const char *at = nullptr; // bytes that the kernel writes
    size_t left = 0;
%end
};

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: log FILE\n";
        return 2;
    }
    std::ios::sync_with_stdio(false);
    try {
        RecordLog log(argv[1]);
%if mmap
        try {
            for (std::string line; std::getline(std::cin, line);)
                log.record(std::cin.eof() ? line : line + '\n');
        } catch (...) {
            log.close();
            throw;
        }
%else
        for (std::string line; std::getline(std::cin, line);)
            log.record(std::cin.eof() ? line : line + '\n');
%end
        log.close();
    } catch (const std::system_error &error) {
        std::cerr << argv[1] << ": " << error.what() << '\n';
        return 1;
    }
    return 0;
}
