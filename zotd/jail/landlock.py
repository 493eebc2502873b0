"""Landlock (Linux 5.13 and later): restricts a thread, and all that it starts from then on, without root.

A domain of Landlock only ever allows. "Everything but a list" is built by allowing what lies beside each hidden path:
every entry of every directory above it. So what is made in such a directory later can be read by the next command only.

| from ABI | Linux | restricts as well |
|---|---|---|
| 1 | 5.13 | reading, writing, making and removing files |
| 2 | 5.19 | nothing; renaming between directories is possible again |
| 3 | 6.2 | emptying a file with truncate() |
| 4 | 6.7 | TCP: listening and connecting |
| 5 | 6.10 | ioctl() of devices |
| 6 | 6.12 | signals and abstract sockets of processes outside |

Later ABIs add control of audit logs (7), which nothing here uses. An unknown later ABI is used like the last known one.
"""

import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Collection, Iterator

from zotd.jail.errors import JailError
from zotd.jail.policy import JailPolicy, Network, is_in

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls; the same numbers on every architecture."""

_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 4

_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ABI_1 = (1 << 13) - 1
"""With those above, and from bit 4 on: removing a directory, a file; making a device, directory, file, socket, pipe, block
device and link."""
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TCP = 0b11
"""Listening on a port and connecting to one."""
_SCOPES = 0b11
"""Abstract sockets and signals."""

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""The rights that a rule for something other than a directory may have."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""The only devices. Not the terminals in `/dev/pts`: they are those of the user, whose keys could be read there."""

KEPT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3
"""What a root user keeps: CAP_CHOWN, CAP_DAC_OVERRIDE and CAP_FOWNER, which work on files and so within the rules. The
others open the memory of processes outside (CAP_PERFMON, CAP_SYS_PTRACE), load modules, and more."""

_CAPABILITY_VERSION = 0x20080522

MAX_ENTRIES = 20_000
"""Most entries beside hidden paths that are allowed one by one, at 4 us each."""


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _OpenHow(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("flags", "mode", "resolve"))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySet(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class LandlockRuleset:
    """The rules of a policy, in the kernel; can be used any number of times until it is closed."""

    def __init__(self, policy: JailPolicy, abi: int) -> None:
        """Build the rules of `policy` for a kernel with this ABI. Blocks for 4 us for each entry beside a hidden path.

        Raises:
            JailError: the policy cannot be kept by Landlock, or the kernel refuses it.
        """
        for path in policy.hidden:
            if is_in(path, policy.writable):
                raise JailError(f"Landlock cannot hide {path}, because it is in a directory that commands may change")
        self._files = _handled(abi)
        # Older kernels do not know the later fields of the structure, and accept it only without them.
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        attr = _RulesetAttr(self._files, 0 if policy.network is Network.OPEN else _TCP, _SCOPES)
        self._fd = _call(_CREATE_RULESET, ctypes.byref(attr), size, 0)
        try:
            self._fill(policy)
        except BaseException:
            self.close()
            raise

    def restrict_thread(self) -> None:
        """Restrict the calling thread and all that it starts, for ever.

        Raises:
            JailError: the kernel refuses it; the thread may have lost privileges all the same.
        """
        _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))))
        _drop_capabilities()
        _call(_RESTRICT_SELF, ctypes.c_int(self._fd), ctypes.c_uint32(0))

    def close(self) -> None:
        """Free the rules. Threads that they restrict stay restricted."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _fill(self, policy: JailPolicy) -> None:
        read = _EXECUTE | _READ_FILE | _READ_DIR
        everything = self._files & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
        # The names in directories are no secret to Landlock: programs look into directories above their own.
        self._allow("/", _READ_DIR)
        for path in _beside(policy.above_hidden, {*policy.hidden, "/dev"}):
            self._allow(path, read)
        for device in DEVICES:
            self._allow(device, _READ_FILE | _WRITE_FILE | _IOCTL_DEV | _TRUNCATE)
        for path in policy.shown:
            self._allow(path, read)
        for path in (*policy.writable, *policy.own, *_own_repository(policy)):
            self._allow(path, everything)

    def _allow(self, path: str, rights: int) -> None:
        try:
            fd = _opened(path)
        except OSError:
            return  # gone, a link, or not accessible to this user anyway
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            rights &= self._files if is_directory else self._files & _OF_FILES
            attr = _PathBeneathAttr(rights, fd)
            _call(_ADD_RULE, ctypes.c_int(self._fd), _PATH_BENEATH, ctypes.byref(attr), ctypes.c_uint32(0))
        finally:
            os.close(fd)


def _opened(path: str) -> int:
    """Open a path without following any link in it: a command may replace directories of its own by links meanwhile."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    name = ctypes.c_char_p(os.fsencode(path))
    fd = _libc().syscall(
        ctypes.c_long(_OPENAT2), _AT_FDCWD, name, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
    )
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    return int(fd)


@functools.cache
def landlock_abi() -> int:
    """Return the newest ABI that the kernel offers; 0 if there is none, or if Landlock is switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    except JailError:
        return 0


def limits(policy: JailPolicy, abi: int) -> list[str]:
    """Return what commands can do under this policy though it should not let them, as clauses, worst first."""
    found = ["connect to sockets that are files, such as those of Docker, D-Bus, tmux and ssh-agent"]
    if policy.network is not Network.OPEN:
        found.append("use the network, except for TCP" if abi >= 4 else "use the network")
    if (policy.carved and is_in(policy.carved[0], policy.writable)) or _own_repository(policy):
        found.append("change the hooks and the configuration of the repository")
    found.append("change modes, owners and times of your files")
    found.append("see the names of hidden files")
    if abi < 6:
        found.append("send signals to your other programs, and connect to their abstract sockets")
    if abi < 3:
        found.insert(0, "empty any file of yours with truncate()")
    return found


def lacks(policy: JailPolicy, abi: int) -> list[str]:
    """Return what commands cannot do under this policy though it should let them, as clauses."""
    found = ["use terminals (pty)", "read what is made beside a hidden path while they run"]
    if policy.network is not Network.OPEN:
        found.append("listen on ports of this machine, or connect to them, by TCP")
    if policy.network is Network.PROXIED:
        found.append("reach any host, because a port of the proxy would be open at every address: install bubblewrap")
    if policy.carved and not is_in(policy.carved[0], policy.writable) and not _own_repository(policy):
        found.append("write to the git directory above the working directory")
    if abi < 2:
        found.append("rename files from one directory to another")
    return found


def _handled(abi: int) -> int:
    files = _ABI_1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        files |= right if abi >= since else 0
    return files


def _own_repository(policy: JailPolicy) -> list[str]:
    """The git directory of a worktree. That of a repository above has hooks and configuration, which stay unwritable."""
    return [path for path in policy.carved if os.path.isfile(f"{path}/commondir")]


def _beside(above: Collection[str], hidden: set[str]) -> Iterator[str]:
    """Yield what lies in the directories `above` and neither is one of them nor hidden."""
    count = 0
    for folder in above:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue  # absent, or not readable for this user
        count += len(entries)
        if count > MAX_ENTRIES:
            raise JailError(
                f"the directories above hidden files, such as {folder}, have more than {MAX_ENTRIES} entries"
            )
        for name in entries:
            path = os.path.join(folder, name)
            if path not in above and path not in hidden:
                yield path


def _drop_capabilities() -> None:
    """Reduce those of the calling thread. Without new privileges a program that root starts gets no more either."""
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)
    sets = (_CapabilitySet * 2)()  # of 32 capabilities each
    _check(_libc().capget(ctypes.byref(header), sets))
    if not sets[0].permitted and not sets[1].permitted:
        return
    kept = sets[0].permitted & KEPT_CAPABILITIES
    sets[0], sets[1] = _CapabilitySet(kept, kept, 0), _CapabilitySet(0, 0, 0)
    _check(_libc().capset(ctypes.byref(header), sets))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    return _check(int(_libc().syscall(ctypes.c_long(number), *arguments)))


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        reason = "is switched off" if code == errno.EOPNOTSUPP else os.strerror(code).lower()
        raise JailError(f"Landlock: {reason}")
    return result
