/* The functions that do not measure: the registry, the text, the cache state, the alignment. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static void registry(void)
{
    static const char *const names[] = {
        "copy_file_range", "direct", "dontcache", "io_uring", "libweir", "mmap", "pread-pwrite", "sendfile",
        "splice", "stdio", "stdio-char", "stdio-char-unlocked", "stdio-unlocked", "syscall", "vector",
    };
    enum { NAMES = sizeof names / sizeof names[0] };
    struct wb_method_info info;
    begin("the methods by name");
    for (size_t i = 0; i < NAMES; i++) {
        expect(wb_method_at(i, &info) && strcmp(info.name, names[i]) == 0, "%s is missing", names[i]);
        expect((info.workloads == WB_BIT(WB_WORKLOADS) - 1) == !info.workload_reason, "%s", names[i]);
        expect((info.syncs == WB_BIT(WB_SYNCS) - 1) == !info.sync_reason, "%s", names[i]);
        expect(strlen(info.title) > 5 && strlen(info.title) < 70, "%s", info.title);
    }
    expect(!wb_method_at(NAMES, &info), "one more than known");
    end();
}

static void text(void)
{
    begin("the text and the map");
    for (uint64_t record = 1; record < 300; record += 7)
        for (uint64_t offset = 0; offset < 1000; offset++) {
            const unsigned char byte = wb_text_at(offset, record);
            expect((byte == '\n') == (offset % record == record - 1), "line end");
            expect(byte == '\n' || (byte >= 32 && byte < 127), "byte %u", byte);
        }
    for (int byte = 0; byte < 256; byte++)
        expect(wb_translated((unsigned char)byte) == (byte >= 'a' && byte <= 'z' ? byte - 32 : byte), "map");
    end();
}

static void cache(const char *title)
{
    struct wb_cache_state state;
    current_directory = disk_directory;
    make_input(100001);
    const int fd = open(in_path(), O_RDWR);
    begin("the cache state from %s", title);
    expect(wb_read_cache_state(fd, 100001, &state) == 0 && state.pages == 25 && state.cached == 25,
           "%llu of %llu", (unsigned long long)state.cached, (unsigned long long)state.pages);
    expect(wb_read_cache_state(fd, 1 << 30, &state) == 0 && state.pages == 25, "beyond the end");
    expect(wb_read_cache_state(fd, 8192, &state) == 0 && state.pages == 2 && state.cached == 2, "a part");
    expect(wb_read_cache_state(fd, 0, &state) == 0 && state.pages == 0 && state.cached == 0, "no byte");
    expect(state.exact || no_cachestat == (state.exact == 0), "exact");
    expect(wb_read_cache_state(-1, 1, &state) == -EBADF, "no file");
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    expect(wb_read_cache_state(fd, 100001, &state) == 0, "no state");
    if (state.cached == 25 || short_run) /* valgrind reads mapped pages */
        skip("pages of %s do not leave the cache", current_directory);
    else
        expect(state.cached == 0 && state.dirty == 0, "%llu stayed", (unsigned long long)state.cached);
    end();
    close(fd);
    current_directory = memory_directory;
}

static void alignment(void)
{
    uint32_t memory = 0, offset = 0;
    begin("alignment of O_DIRECT");
    expect(wb_direct_alignment(-1, &memory, &offset) == -EBADF, "no file");
    current_directory = disk_directory;
    make_input(1 << 16);
    const int fd = open(in_path(), O_RDONLY);
    const int rc = wb_direct_alignment(fd, &memory, &offset);
    expect(rc == 0 || rc == -EOPNOTSUPP, "%s", strerror(-rc));
    if (rc == 0) {
        expect(memory && offset && !(memory & (memory - 1)) && !(offset & (offset - 1)), "%u %u", memory,
               offset);
        struct wb_job job = make_job("direct", WB_COPY, 1 << 16, offset + offset / 4);
        struct wb_result result;
        wb_measure(&job, &result);
        expect(result.status == WB_CANNOT && strstr(result.text, "multiple"), "%s", result_text(&result));
        unlink(out_path());
        job.record_bytes = offset;
        result = run(&job, false);
        expect(result.text[0] == '\0' || short_run, "a remark: %s", result.text);
    }
    close(fd);
    current_directory = memory_directory;
    end();
}

void test_queries(void)
{
    registry();
    text();
    cache("cachestat");
    no_cachestat = true;
    cache("mincore");
    no_cachestat = false;
    alignment();
}
