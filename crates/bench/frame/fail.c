/* Records failures and remarks. Only the first failure is kept, because later ones are its consequences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"

int wb_fail(struct wb_run *run, const char *call, const char *path, int error)
{
    struct wb_result *result = run->result;
    if (result->status != WB_OK)
        return -1;
    result->status = WB_FAILED;
    result->error_number = error;
    snprintf(result->error_call, sizeof result->error_call, "%s", call);
    snprintf(result->error_path, sizeof result->error_path, "%s", path ? path : "");
    result->text[0] = '\0'; /* a failed sample has no remark */
    return -1;
}

int wb_cannot(struct wb_run *run, const char *format, ...)
{
    if (run->result->status != WB_OK)
        return -1;
    run->result->status = WB_CANNOT;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->result->text, WB_TEXT, format, arguments);
    va_end(arguments);
    return -1;
}

int wb_refused(struct wb_run *run, const char *feature, const char *call, const char *path, int error)
{
    switch (feature ? error : 0) {
    case ENOSYS:
        return wb_cannot(run, "this kernel has no %s, or forbids it", feature);
    case EOPNOTSUPP:
    case EINVAL:
    case EXDEV:
        return wb_cannot(run, "%s is refused for these files: %s", feature, strerror(error));
    default:
        return wb_fail(run, call, path, error);
    }
}

void wb_remark(struct wb_run *run, const char *format, ...)
{
    char *text = run->result->text;
    if (run->result->status != WB_OK)
        return;
    size_t used = strlen(text);
    if (used > 0 && used + 3 < WB_TEXT) {
        memcpy(text + used, "; ", 3);
        used += 2;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, WB_TEXT - used, format, arguments);
    va_end(arguments);
}

int wb_moved(struct wb_run *run, uint64_t moved, uint64_t passes, const char *call)
{
    run->result->bytes_moved = moved;
    run->result->records = passes;
    if (run->result->status != WB_OK)
        return -1;
    if (moved < run->job->bytes)
        return wb_fail(run, call, run->job->in_path, ENODATA);
    return 0;
}
