/* open_file.bpf.c: reads struct file, its inode and super block. Each bpf_probe_read_kernel() costs more than the bytes
 * that it copies, so one call reads the beginning of a struct. A member that is outside the prefix in the running
 * kernel is read alone; CO-RE decides it at load time. */
#include "open_file.h"

#define READ_PREFIX(into, most, type, from)                                                                            \
    bpf_probe_read_kernel(&(into), bpf_core_type_size(type) < (most) ? bpf_core_type_size(type) : (most), from)
#define MEMBER(prefix, most, from, member)                                                                             \
    ({                                                                                                                 \
        u64 at_ = bpf_core_field_offset((from)->member);                                                               \
        typeof((from)->member) got_;                                                                                   \
        if (at_ + sizeof got_ <= (most))                                                                               \
            got_ = *(typeof(got_) *)((prefix).bytes + at_);                                                            \
        else                                                                                                           \
            got_ = BPF_CORE_READ(from, member);                                                                        \
        got_;                                                                                                          \
    })

GLOBAL_FUNCTION u64 file_of(u32 fd)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file *file = 0;
    union short_struct_prefix prefix;
    READ_PREFIX(prefix, TABLE_BYTES, struct fdtable, table);
    if (fd >= MEMBER(prefix, TABLE_BYTES, table, max_fds))
        return 0;
    bpf_probe_read_kernel(&file, sizeof file, MEMBER(prefix, TABLE_BYTES, table, fd) + fd);
    return (u64)file;
}

GLOBAL_FUNCTION int read_open_file(struct open_file *to, u64 address)
{
    struct file *file = (void *)address;
    struct scratch_space *own = scratch();
    if (!to || !own)
        return 0;
    READ_PREFIX(own->prefix, FILE_BYTES, struct file, file);
    struct inode *inode = MEMBER(own->prefix, FILE_BYTES, file, f_inode);
    struct pipe_inode_info *pipe = MEMBER(own->prefix, FILE_BYTES, file, private_data);
    to->key = address;
    to->pos = MEMBER(own->prefix, FILE_BYTES, file, f_pos);
    to->flags = MEMBER(own->prefix, FILE_BYTES, file, f_flags);
    READ_PREFIX(own->prefix, INODE_BYTES, struct inode, inode);
    struct super_block *super = MEMBER(own->prefix, INODE_BYTES, inode, i_sb);
    to->ino = MEMBER(own->prefix, INODE_BYTES, inode, i_ino);
    to->size = MEMBER(own->prefix, INODE_BYTES, inode, i_size);
    to->mode = MEMBER(own->prefix, INODE_BYTES, inode, i_mode);
    READ_PREFIX(own->prefix, SUPER_BYTES, struct super_block, super);
    to->dev = MEMBER(own->prefix, SUPER_BYTES, super, s_dev);
    to->block_bits = MEMBER(own->prefix, SUPER_BYTES, super, s_blocksize_bits);
    to->pipe_pages = 0;
    if ((to->mode & 0170000) == 0010000) /* S_IFIFO */
        to->pipe_pages = BPF_CORE_READ(pipe, ring_size);
    return 0;
}
