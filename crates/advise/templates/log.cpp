// Appends the lines of standard input to a file: @NAME@.
// Build: c++ -std=c++17 -O2 -pthread -o log log.cpp      Use: ./log FILE < records
// In a program of your own, use RecordLog with each record and its newline.
#include <cerrno>
%if timer
#include <chrono>
%end
%if timer|group
#include <condition_variable>
%end
#include <filesystem>
#include <iostream>
%if threads
#include <mutex>
%end
#include <string>
#include <string_view>
#include <system_error>
%if timer
#include <thread>
%end

#include <fcntl.h>
#include <unistd.h>

class RecordLog {
public:
    explicit RecordLog(const std::string &path)
    {
%if dsync
        fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_DSYNC, 0666);
%else
        fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
%end
        check(fd, "open");
%if synced
        check(fsync(fd), "fsync");
        // Without it, a power cut can lose the name of a new file.
        std::filesystem::path parent = std::filesystem::path(path).parent_path();
        int directory = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check(directory, "open");
        check(fsync(directory), "fsync");
        ::close(directory);
%end
%if gather|line
        pending.reserve(buffer_bytes);
%end
%if timer
        timer = std::thread([this] { run_timer(); });
%end
    }

%if group
    // Returns when the record is on the device. One thread syncs for all that have written meanwhile.
    void record(std::string_view bytes)
    {
        std::unique_lock<std::mutex> guard(lock);
        check(error ? (errno = error, -1) : 0, "fdatasync");
        write_all(bytes);
        unsigned long mine = ++written;
        while (durable < mine) {
            check(error ? (errno = error, -1) : 0, "fdatasync");
            if (syncing) {
                synced.wait(guard);
                continue;
            }
            unsigned long covered = written;
            syncing = true;
            guard.unlock();
            int failed = fdatasync(fd) == 0 ? 0 : errno;
            guard.lock();
            syncing = false;
            if (failed)
                error = failed;
            else
                durable = covered;
            synced.notify_all();
        }
    }
%else
    void record(std::string_view bytes)
    {
%if threads
        std::lock_guard<std::mutex> guard(lock);
%end
%if timer
        check(error ? (errno = error, -1) : 0, "write");
        dirty = true;
%end
%if each
        write_all(bytes);
%end
%if gather
        if (pending.size() + bytes.size() > buffer_bytes)
            flush(); // a write has whole records only
        pending.append(bytes);
%end
%if line
        pending.append(bytes);
        if (pending.back() == '\n' || pending.size() >= buffer_bytes)
            flush();
%end
%if sync_record
        check(fdatasync(fd), "fdatasync");
%end
    }
%end

%if timer
    // Writes what is pending, and with a sync forces it to the device.
    void tick()
    {
        bool was_dirty;
        {
            std::lock_guard<std::mutex> guard(lock);
            was_dirty = dirty;
            dirty = false;
%if gather
            flush();
%end
        }
%if period
        if (was_dirty)
            check(fdatasync(fd), "fdatasync"); // without the lock: records go on meanwhile
%else
        (void)was_dirty;
%end
    }

%end
    // Call it: a destructor could not report an error.
    void close()
    {
%if timer
        {
            std::lock_guard<std::mutex> guard(lock);
            stopped = true;
        }
        stop.notify_one();
        timer.join();
        check(error ? (errno = error, -1) : 0, "write");
        tick();
%end
%if gather|line
        flush();
%end
        check(::close(fd), "close");
    }

private:
    static void check(int result, const char *call)
    {
        if (result < 0)
            throw std::system_error(errno, std::generic_category(), call);
    }

    // Returns how many bytes were written: a signal or a nearly full disk can make a write short.
    size_t write_some(std::string_view bytes)
    {
        ssize_t count = write(fd, bytes.data(), bytes.size());
        bool interrupted = count < 0 && errno == EINTR;
        check(count < 0 && !interrupted ? -1 : 0, "write");
        return interrupted ? 0 : static_cast<size_t>(count);
    }

%if each|group
    void write_all(std::string_view bytes)
    {
        while (!bytes.empty())
            bytes.remove_prefix(write_some(bytes));
    }

%end
%if gather|line
    void flush()
    {
        while (!pending.empty())
            pending.erase(0, write_some(pending)); // after an error, what was not written stays
    }

%end
%if timer
    void run_timer()
    {
        std::unique_lock<std::mutex> guard(lock);
        while (!stop.wait_for(guard, std::chrono::milliseconds(@PERIOD_MS@), [this] { return stopped; })) {
            guard.unlock();
            int failed = 0;
            try {
                tick();
            } catch (const std::system_error &caught) {
                failed = caught.code().value();
            }
            guard.lock();
            if (failed)
                error = failed; // the next call throws it
        }
    }

%end
    int fd = -1;
%if gather|line
    static constexpr size_t buffer_bytes = @BUFFER@;
    std::string pending;
%end
%if threads
    std::mutex lock;
%end
%if timer
    std::condition_variable stop;
    std::thread timer;
    bool stopped = false, dirty = false;
    int error = 0;
%end
%if group
    std::condition_variable synced;
    unsigned long written = 0, durable = 0;
    bool syncing = false;
    int error = 0;
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
        for (std::string line; std::getline(std::cin, line);) {
            if (!std::cin.eof())
                line += '\n';
            log.record(line);
        }
        log.close();
    } catch (const std::system_error &error) {
        std::cerr << argv[1] << ": " << error.what() << '\n';
        return 1;
    }
    return 0;
}
