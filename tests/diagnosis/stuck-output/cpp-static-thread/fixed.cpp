// One thread writes events into a file, another one waits for the next event.
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

static std::mutex guard;
static std::condition_variable changed;
static int events;
static bool done;

static void record(std::fstream &file)
{
    std::unique_lock<std::mutex> lock(guard);
    for (int written = 0; !done; ) {
        changed.wait(lock, [&] { return done || written < events; });
        for (; written < events; written++)
            file << "event " << written << '\n' << std::flush;
    }
}

int main()
{
    std::fstream file("events", std::ios::out | std::ios::trunc);
    std::thread recorder(record, std::ref(file));
    {
        std::lock_guard<std::mutex> lock(guard);
        events = 5;
    }
    changed.notify_one();
    std::this_thread::sleep_for(std::chrono::milliseconds(1600));
    {
        std::lock_guard<std::mutex> lock(guard);
        done = true;
    }
    changed.notify_one();
    recorder.join();
    return file.flush() ? 0 : 1;
}
