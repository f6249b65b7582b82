"""Debian's kernels, and liburing for aarch64, downloaded by apt with lists of its own, and kept.

packages.py uring: prints the folder of the static liburing for aarch64.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", pathlib.Path(__file__).resolve().parents[2] / "target")).resolve()

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Unavailable(Exception):
    """A package, or a tool, cannot be had here."""


class NoDebian(Unavailable):
    """This machine has no access to Debian's packages at all."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    arch: str
    suite: str
    # The metapackage of the newest kernel of the suite.
    package: str
    engines: tuple = ("ebpf", "ptrace")
    # Without it the test fails.
    required: bool = True
    # The labelled set runs there too (labelled.toml).
    labelled: bool = False
    # The cases of Yama run there too. Level 3 stays until the machine ends.
    yama: bool = False


KERNELS = [
    Kernel("5.10", "x86_64", "bullseye", "linux-image-cloud-amd64"),
    Kernel("6.1", "x86_64", "bookworm", "linux-image-cloud-amd64", labelled=True),
    Kernel("6.12", "x86_64", "bookworm-backports", "linux-image-cloud-amd64", labelled=True, yama=True),
    Kernel("newest", "x86_64", "sid", "linux-image-cloud-amd64", required=False),
    Kernel("6.1-arm64", "aarch64", "bookworm", "linux-image-cloud-arm64"),
    Kernel("6.12-arm64", "aarch64", "bookworm-backports", "linux-image-cloud-arm64", required=False),
]


def mirror():
    """Returns the address from which apt gets this machine's packages."""
    files = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]
    for file in files:
        if not file.is_file():
            continue
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith(("deb ", "URIs:")):
                for word in line.split():
                    if "://" in word and word.rstrip("/").endswith("/debian"):
                        return word
    raise NoDebian("apt's sources name no mirror of Debian")


def options(folder):
    """Returns the options that give apt its own lists, sources and cache."""
    own = folder / "apt"
    return ["-o", f"Dir::State::lists={own}/lists", "-o", f"Dir::Cache={own}/cache",
            "-o", f"Dir::State::status={own}/status", "-o", f"Dir::Etc::sourcelist={own}/sources.list",
            "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Architecture=amd64", "-o", "APT::Architectures::=amd64",
            "-o", "APT::Architectures::=arm64", "-o", "Acquire::Check-Valid-Until=false",
            "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User=root"]


def apt(folder, tool, *arguments, cwd=None):
    """Runs apt-get or apt-cache. Returns its output; fails with its last error."""
    try:
        done = subprocess.run([tool, *options(folder), *arguments], cwd=cwd, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError as error:
        raise Unavailable(f"{tool} is not installed") from error
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("E:")] or ["no error message"]
        raise Unavailable(f"{tool} {' '.join(arguments)}: {errors[0]}")
    return done.stdout


def update(folder):
    """Downloads the lists of all suites, once."""
    own = folder / "apt"
    if (own / "updated").exists():
        return
    for name in ("lists/partial", "cache/archives/partial"):
        (own / name).mkdir(parents=True, exist_ok=True)
    (own / "status").touch()
    suites = sorted({kernel.suite for kernel in KERNELS})
    lines = [f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n" for suite in suites]
    (own / "sources.list").write_text("".join(lines))
    apt(folder, "apt-get", "update")
    (own / "updated").touch()


def fields(folder, package, suite=None):
    """Returns the fields of a package's record. `suite`: the record of that suite."""
    records = apt(folder, "apt-cache", "show", f"{package}" + (f"/{suite}" if suite else ""), "--no-all-versions")
    return dict(line.split(": ", 1) for line in records.split("\n\n")[0].splitlines() if re.match(r"[A-Z][\w-]*: ", line))


def version_in(folder, package, suite):
    """Returns the version of a package in a suite."""
    for line in apt(folder, "apt-cache", "madison", package).splitlines():
        _, version, source = (part.strip() for part in line.split("|"))
        if f" {suite}/" in source and "Packages" in source:
            return version
    raise Unavailable(f"{suite} has no package {package}")


def download(folder, package, version, where):
    """Downloads a package and unpacks it in the folder `where`."""
    where.mkdir(parents=True, exist_ok=True)
    apt(folder, "apt-get", "download", f"{package}={version}", cwd=where)
    for deb in where.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", deb, where], check=True)
        deb.unlink()


def image(folder, kernel):
    """Returns the file of a kernel, downloaded if it is not kept yet."""
    where = folder / "images" / kernel.name
    kept = where / "vmlinuz"
    if kept.exists():
        return kept
    update(folder)
    meta = f"{kernel.package}:{ARCHITECTURES[kernel.arch]}"
    version = version_in(folder, meta, kernel.suite)
    record = apt(folder, "apt-cache", "show", f"{meta}={version}")
    depends = re.search(r"^Depends: .*?(linux-image-[^ ,]+)", record, re.MULTILINE)
    if not depends:
        raise Unavailable(f"{meta}={version} depends on no kernel")
    name = depends.group(1)
    suffix = f":{ARCHITECTURES[kernel.arch]}"
    # Since Linux 7.1 the file is in a package of its own.
    for candidate in (name.replace("linux-image", "linux-binary"), name, f"{name}-unsigned"):
        try:
            download(folder, candidate + suffix, version_in(folder, candidate + suffix, kernel.suite), where)
        except Unavailable:
            continue
        found = sorted(where.rglob("vmlinuz*"))
        if found:
            found[0].rename(kept)
            return kept
    raise Unavailable(f"{kernel.suite} has no package with the kernel {name}")


def busybox(folder, arch):
    """Returns the static busybox of an architecture."""
    where = folder / "busybox" / arch
    kept = where / "busybox"
    if not kept.exists():
        update(folder)
        package = f"busybox-static:{ARCHITECTURES[arch]}"
        download(folder, package, version_in(folder, package, "bookworm"), where)
        found = [file for file in where.rglob("bin/busybox") if file.is_file()]
        if not found:
            raise Unavailable(f"{package} has no busybox")
        found[0].rename(kept)
    return kept


def uring(folder):
    """Returns the folder with the static liburing for aarch64."""
    where = folder / "liburing"
    kept = where / "usr/lib/aarch64-linux-gnu"
    if not (kept / "liburing.a").exists():
        update(folder)
        package = "liburing-dev:arm64"
        download(folder, package, version_in(folder, package, "bookworm"), where)
    return kept


if __name__ == "__main__":
    if sys.argv[1:] != ["uring"]:
        sys.exit("packages.py: give uring")
    try:
        print(uring(TARGET / "kernels"))
    except Unavailable as why:
        sys.exit(f"packages.py: {why}")
