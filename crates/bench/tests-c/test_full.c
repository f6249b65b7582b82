/* File systems that only root can make: a full one, and one that shares blocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static char mount_point[300];

static bool make_mount_point(void)
{
    snprintf(mount_point, sizeof mount_point, "%s/mounted", memory_directory);
    return mkdir(mount_point, 0700) == 0;
}

static void full(void)
{
    struct wb_method_info info;
    for (size_t i = 0; wb_method_at(i, &info); i++)
        for (uint32_t workload = 0; workload < WB_WORKLOADS; workload++) {
            struct wb_job job = make_job(info.name, workload, 300000, 4096);
            char out[400];
            if (!(info.workloads & WB_BIT(workload)) || workload == WB_READ)
                continue;
            if (strcmp(info.name, "direct") == 0 || strcmp(info.name, "dontcache") == 0)
                continue; /* tmpfs does not support them */
            snprintf(out, sizeof out, "%s/out", mount_point);
            job.out_path = out;
            const struct wb_result result = run_failing(&job, ENOSPC);
            expect(strcmp(result.error_path, out) == 0, "path %s", result.error_path);
            unlink(out);
        }
}

static void test_no_space(void)
{
    begin("a full file system");
    if (geteuid() != 0 || mount("tmpfs", mount_point, "tmpfs", 0, "size=400k") != 0) {
        skip("a small file system could not be mounted: %s", geteuid() ? "not root" : strerror(errno));
        return;
    }
    const char *before = current_directory;
    current_directory = mount_point; /* for the input too: some calls do not copy between file systems */
    make_input(300000);
    full();
    current_directory = before;
    expect(umount(mount_point) == 0, "umount: %s", strerror(errno));
    end();
}

/* Runs a shell command without output; %1$s is the disk directory, %2$s the mount point. */
static bool shell(const char *format)
{
    char command[1200], quiet[1300];
    snprintf(command, sizeof command, format, disk_directory, mount_point);
    snprintf(quiet, sizeof quiet, "(%s) >/dev/null 2>&1", command);
    return system(quiet) == 0;
}

static void test_shared_blocks(void)
{
    begin("shared blocks copy_file_range");
    if (geteuid() != 0 || !shell("truncate -s 128M %1$s/image && mkfs.btrfs -q %1$s/image") ||
        !shell("mount -o loop %1$s/image %2$s")) {
        skip("no btrfs could be made and mounted");
        shell("rm -f %1$s/image");
        return;
    }
    const char *before = current_directory;
    current_directory = mount_point;
    make_input(1 << 20);
    sync(); /* btrfs shares only blocks that are on the disk */
    struct wb_job job = make_job("copy_file_range", WB_COPY, 1 << 20, 65536);
    const struct wb_result shared = run(&job, false);
    expect(strstr(shared.text, "reflink") != NULL, "no remark: %s", result_text(&shared));
    job = make_job("syscall", WB_COPY, 1 << 20, 65536);
    const struct wb_result copied = run(&job, false);
    expect(copied.text[0] == '\0', "a remark: %s", copied.text);
    current_directory = before;
    expect(shell("umount %2$s && rm %1$s/image"), "umount");
    end();
}

void test_full(void)
{
    expect(make_mount_point(), "%s: %s", mount_point, strerror(errno));
    test_no_space();
    test_shared_blocks();
    rmdir(mount_point);
}
