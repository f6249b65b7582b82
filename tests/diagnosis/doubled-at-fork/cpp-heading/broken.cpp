// A report of two processes.
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

int main()
{
    std::ofstream report("report", std::ios::app);

    report << "Report of two processes\n";
    pid_t child = fork();
    report << (child == 0 ? "child: done\n" : "parent: done\n");
    report.flush();
    if (child > 0)
        waitpid(child, nullptr, 0);
}
