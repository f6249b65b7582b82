//! Names of error numbers, see errno(3). The numbers are those of x86-64 and aarch64.

/// Names of the errors of input, output and tracing.
const NAMES: [(i32, &str); 48] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (36, "ENAMETOOLONG"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (71, "EPROTO"),
    (75, "EOVERFLOW"),
    (95, "EOPNOTSUPP"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (104, "ECONNRESET"),
    (106, "EISCONN"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (116, "ESTALE"),
    (122, "EDQUOT"),
    (125, "ECANCELED"),
];

/// Returns the name of an error number; `None` if it is not in the table.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == number).map(|&(_, name)| name)
}

/// Returns the name of an error number, or `errno N` if it is not in the table.
pub fn name_or_number(number: i32) -> String {
    name(number).map_or_else(|| format!("errno {number}"), str::to_string)
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_have_names() {
        assert_eq!([2, 28, 122].map(super::name), [Some("ENOENT"), Some("ENOSPC"), Some("EDQUOT")]);
        assert_eq!(super::name(0), None);
    }
}
