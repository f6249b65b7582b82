/* The record: its memory, its text for WB_WRITE and WB_LOG, and the map of WB_TRANSLATE. */
#include "frame.h"

enum { PRINTABLE_FIRST = '!', PRINTABLE = '~' - '!' + 1 };

unsigned char wb_text_at(uint64_t offset, uint64_t record_bytes)
{
    const uint64_t column = record_bytes > 0 ? offset % record_bytes : 0;
    if (column + 1 >= record_bytes)
        return '\n';
    return (unsigned char)(PRINTABLE_FIRST + column % PRINTABLE);
}

unsigned char wb_translated(unsigned char byte)
{
    return byte >= 'a' && byte <= 'z' ? (unsigned char)(byte - 'a' + 'A') : byte;
}

static const unsigned char *translation(void)
{
    static unsigned char map[256];
    for (unsigned i = 0; i < sizeof map; i++)
        map[i] = wb_translated((unsigned char)i);
    return map;
}

/* Allocates and fills the record. WB_WRITE's text repeats after each line, so a buffer that is one line longer
 * than the record contains the text of every offset, at a variable start. A WB_LOG record is one line. */
int wb_prepare_record(struct wb_run *run)
{
    const struct wb_job *job = run->job;
    const unsigned options = run->method->options;
    const bool log = job->workload == WB_LOG, text = log || job->workload == WB_WRITE;
    run->pass_bytes = options & WB_HAS_RECORD ? job->record_bytes : 1;
    if (options & WB_HAS_VECTOR)
        run->pass_bytes *= job->vector_records;
    run->record_size = run->pass_bytes;
    /* All requests of a queue write the same text, so they share one record. Requests that read need one each. */
    if ((options & WB_HAS_QUEUE) && !text)
        run->record_size *= job->queue_depth;
    if (log && run->record_size < job->record_bytes)
        run->record_size = job->record_bytes; /* the whole line, also for byte-by-byte methods */
    if (!log && text) {
        run->text_mask = WB_TEXT_LINE - 1;
        run->record_size += WB_TEXT_LINE;
    }
    run->map = translation();
    run->record = wb_allocate(run, run->record_size);
    if (!run->record)
        return -1;
    for (uint64_t i = 0; text && i < run->record_size; i++)
        run->record[i] = wb_text_at(i, log ? job->record_bytes : WB_TEXT_LINE);
    return 0;
}
