// A server that logs into an ofstream and then waits for work.
#include <fstream>
#include <poll.h>
#include <unistd.h>

int main()
{
    int work[2];
    std::ofstream log("server.log");
    log << std::unitbuf;

    if (!log || pipe(work) != 0)
        return 1;
    log << "listening, pid " << getpid() << "\n";
    pollfd wait = {work[0], POLLIN, 0};
    poll(&wait, 1, 1600);
    return log.flush() ? 0 : 1;
}
