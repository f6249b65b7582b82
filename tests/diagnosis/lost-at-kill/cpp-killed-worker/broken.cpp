// A supervisor and a worker that is killed.
#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

static void work()
{
    std::ofstream log("worker.log");

    for (int job = 1;; job++) {
        log << "job " << job << " finished\n";
        usleep(10000);
    }
}

int main()
{
    pid_t worker = fork();

    if (worker == 0)
        work();
    usleep(500000);
    kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
}
