/* kernel.h: the members of kernel structs that the programs read. preserve_access_index has the loader relocate their offsets
 * (CO-RE), so the layout here need not be the kernel's. This replaces vmlinux.h: the build needs neither bpftool nor a kernel
 * with BTF, and works when cross-compiling. */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#define KERNEL_STRUCT __attribute__((preserve_access_index))

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;
typedef long long s64;

struct super_block {
    u32 s_dev;
    unsigned char s_blocksize_bits;
} KERNEL_STRUCT;
struct inode {
    unsigned short i_mode;
    unsigned long i_ino;
    s64 i_size;
    struct super_block *i_sb;
} KERNEL_STRUCT;
struct pipe_inode_info {
    u32 ring_size;
} KERNEL_STRUCT;
struct qstr {
    const unsigned char *name;
} KERNEL_STRUCT;
struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
    struct inode *d_inode;
} KERNEL_STRUCT;
struct vfsmount {
    struct dentry *mnt_root;
} KERNEL_STRUCT;
struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
} KERNEL_STRUCT;
struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
} KERNEL_STRUCT;
struct file {
    struct path f_path;
    struct inode *f_inode;
    u32 f_flags;
    s64 f_pos;
    void *private_data;
} KERNEL_STRUCT;
struct fdtable {
    u32 max_fds;
    struct file **fd;
} KERNEL_STRUCT;
struct files_struct {
    struct fdtable *fdt;
} KERNEL_STRUCT;
struct fs_struct {
    struct path pwd;
} KERNEL_STRUCT;
struct mm_struct {
    unsigned long start_code, arg_start, arg_end;
} KERNEL_STRUCT;
struct task_io_accounting {
    u64 rchar, wchar, syscr, syscw, read_bytes;
} KERNEL_STRUCT;
struct task_struct;
struct signal_struct {
    struct {
        int counter;
    } live; /* threads that have not begun to exit */
    int group_exit_code;
    struct task_struct *group_exec_task; /* since Linux 5.16 */
} KERNEL_STRUCT;
struct sched_entity {
    u64 sum_exec_runtime;
} KERNEL_STRUCT;
struct sched_info {
    u64 run_delay;
} KERNEL_STRUCT;
struct task_struct {
    int pid, tgid, exit_code;
    unsigned int flags;
    struct files_struct *files;
    struct fs_struct *fs;
    void *stack;
    struct mm_struct *mm;
    struct signal_struct *signal;
    struct task_io_accounting ioac;
    u64 utime, stime;
    struct sched_entity se;
    struct sched_info sched_info;
} KERNEL_STRUCT;
/* The state, which Linux 5.14 renamed. */
struct task_struct___before_5_14 {
    long state;
} KERNEL_STRUCT;
struct task_struct___5_14 {
    unsigned int __state;
} KERNEL_STRUCT;
struct linux_binprm {
    struct file *file;
    const char *filename;
} KERNEL_STRUCT;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long r10, r9, r8, ax, dx, si, di, orig_ax;
    unsigned short cs; /* wider on some kernels; the selector is its low half */
} KERNEL_STRUCT;
#define CALL_NUMBER(r) ((u32)(r)->orig_ax)
#define CALL_RESULT(r) ((s64)(r)->ax)
#define CALL_0(r) ((r)->di)
#define CALL_1(r) ((r)->si)
#define CALL_2(r) ((r)->dx)
#define CALL_3(r) ((r)->r10)
#define CALL_4(r) ((r)->r8)
#define CALL_5(r) ((r)->r9)
#define CALL_IS_32BIT(r) ((r)->cs == 0x23) /* __USER32_CS */
/* The registers that a thread has saved at its system call. */
#define SAVED_NUMBER(r) ((u32)SAVED(r, orig_ax))
#define SAVED_RESULT(r) ((s64)SAVED(r, ax))
#define SAVED_0(r) SAVED(r, di)
#define SAVED_1(r) SAVED(r, si)
#define SAVED_2(r) SAVED(r, dx)
/* Arguments of a kernel function at its entry, for kprobes. */
#define FUNCTION_0(r) ((r)->di)
#define FUNCTION_1(r) ((r)->si)
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
    u64 regs[31];
    u64 pstate;
} KERNEL_STRUCT;
struct pt_regs {
    union {
        struct user_pt_regs user_regs;
    };
    u64 orig_x0;
    int syscallno;
} KERNEL_STRUCT;
#define CALL_NUMBER(r) ((u32)(r)->syscallno)
#define CALL_RESULT(r) ((s64)(r)->user_regs.regs[0])
#define CALL_0(r) ((r)->orig_x0)
#define CALL_1(r) ((r)->user_regs.regs[1])
#define CALL_2(r) ((r)->user_regs.regs[2])
#define CALL_3(r) ((r)->user_regs.regs[3])
#define CALL_4(r) ((r)->user_regs.regs[4])
#define CALL_5(r) ((r)->user_regs.regs[5])
#define CALL_IS_32BIT(r) ((r)->user_regs.pstate & 0x10) /* PSR_MODE32_BIT */
#define SAVED_NUMBER(r) ((u32)SAVED(r, syscallno))
#define SAVED_RESULT(r) ((s64)SAVED(r, user_regs.regs[0]))
#define SAVED_0(r) SAVED(r, orig_x0)
#define SAVED_1(r) SAVED(r, user_regs.regs[1])
#define SAVED_2(r) SAVED(r, user_regs.regs[2])
#define FUNCTION_0(r) ((r)->user_regs.regs[0])
#define FUNCTION_1(r) ((r)->user_regs.regs[1])
#else
#error "x86 and arm64 only"
#endif

#endif
