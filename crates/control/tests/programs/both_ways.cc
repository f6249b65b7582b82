// As both_ways.c, through a std::fstream.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

static void move_to_place(std::fstream &file, char how) {
    char read[16];
    if (how == 'n') return;
    file.seekg(100).read(read, 11);
    switch (how) {
    case 'b': file.seekp(-3, std::ios::cur); break;
    case 'f': file.seekp(130); break;
    case 'u': file.unget(), file.seekp(0, std::ios::cur); break;
    case 'z':
        for (std::string line; std::getline(file, line);) {}
        file.clear(), file.seekp(0, std::ios::cur);
        break;
    case 'e': file.seekp(0, std::ios::end); break;
    default: file.seekp(0, std::ios::cur);
    }
}

int main(int count, char **words) {
    if (count < 2) return 2;
    std::fstream file("file", std::ios::in | std::ios::out | std::ios::trunc);
    for (int number = 0; number < 2000; number++) file << "line " << number << " of the first part\n";
    file.flush();
    move_to_place(file, words[1][0]);
    for (int number = 0; number < 5; number++) file << "NEW " << number << "\n", usleep(5000);
    if (words[1][1] == '2') {
        file.seekg(0).get();
        file.seekp(0, std::ios::end) << "at the end\n", usleep(20000);
    }
    if (count > 2) raise(SIGKILL);
    file.close();
    return !file;
}
