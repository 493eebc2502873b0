"""Ways out of a jail that were tried, as data: what a command does, and what stops it.

Each command leaves a trace when it succeeds: it prints `ESCAPED` or the content of a secret, changes `~/.bashrc`, makes
`~/planted`, or leaves a `commondir` in a git directory. Without a jail each one succeeds. These variables are set:

| variable | is |
|---|---|
| `WORK` | the working directory, a git repository |
| `OPENED` | a directory outside, a git repository, that a person has opened to commands |
| `REPLACED` | another one; a link to the home has taken its place since |
| `VICTIM` | a process of the user outside, whose working directory is the home, whose environment has a secret, and whose \
standard input is `~/.bashrc`, opened for reading and writing |
| `SOCKET`, `ABSTRACT` | a socket that is a file in `XDG_RUNTIME_DIR`, and an abstract one, in which a program listens |
| `ZOTD`, `DOCKER` | a program listens at the path of zotd's socket, and, if this user is root, in `/run`, as Docker does |
| `QUEUE` | the key of a message queue of the user (System V) |
| `TCP`, `UDP` | ports of this machine where a program answers `ESCAPED` |
| `WEB`, `TLS` | ports of 127.0.0.3, which commands with a proxy may reach. `/away` leads to `WEB` of 127.0.0.1 and ::1, which \
may not be reached and answer `ESCAPED`; so does 127.0.0.3 itself when it is asked for `evil.example` |
| `OUTLET` | the socket of the proxy for a command of another jail |
| `ENTRANCE` | words in front of a command that run it in a network namespace that was made ahead for another jail |
| `PROXY`, `LISTENER`, `NAMESPACE` | the process with the proxy, its listener in that namespace, and its descriptor of it |
| `TERMINAL` | a terminal of the user in `/dev/pts` |
| `PYTHON` | an interpreter |
"""

from dataclasses import dataclass

from zotd.jail import MECHANISMS, Mechanism

BOTH = frozenset(MECHANISMS)
BUBBLEWRAP = frozenset({Mechanism.BUBBLEWRAP})


@dataclass(frozen=True)
class Escape:
    """One way out."""

    name: str
    command: str
    stopped_by: frozenset[Mechanism] = BOTH
    as_root: bool = False
    """Only root can do it even without a jail."""


def via(host, port="$WEB", name=""):
    """A command that connects to a host, through the proxy if there is one, by TLS if a name is given."""
    return f"$PYTHON -I -S -c '{_VIA}' {host} {port} {name} 2>/dev/null"


def python(code):
    """A command that runs these statements; failures are silent."""
    return f"$PYTHON -I -S -c '{code}' 2>/dev/null"


_LIBC = 'import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); h = os.environ["HOME"]; v = int(os.environ["VICTIM"]); '

_HANDLE = _LIBC + (
    'b = ctypes.create_string_buffer(136); b[0:4] = (128).to_bytes(4, "little"); m = ctypes.c_int(); '
    'p = (h + "/.ssh/id").encode(); r = libc.name_to_handle_at(-100, p, b, ctypes.byref(m), 0); '
    'd = os.open(os.environ["WORK"], os.O_RDONLY); f = libc.open_by_handle_at(d, b, 0); print(os.read(f, 99))'
)

_RACE = (
    'import os, sys, threading; h = os.environ["HOME"]; os.mkdir("real"); stop = []\n'
    "sys.setswitchinterval(1e-6)\n"  # else one of the threads waits for the other 5 ms each time
    "def swap():\n"
    "    while not stop:\n"
    '        os.symlink(h, "new"); os.rename("new", "way"); os.symlink("real", "new"); os.rename("new", "way")\n'
    "t = threading.Thread(target=swap); t.start()\n"
    "for _ in range(20000):\n"
    '    if os.path.exists(h + "/planted"): break\n'
    '    try: open("way/planted", "w").close()\n'
    "    except OSError: pass\n"
    "stop.append(1); t.join()"
)

_TALK = (
    "import os, socket; s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect({}); print(s.recv(99).decode())"
)

_VIA = """
import os, socket, ssl, sys
host, port, *name = sys.argv[1:]
if "HTTP_PROXY" in os.environ:
    way = socket.create_connection(("127.0.0.1", 3128), 5)
    way.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
    assert b" 200 " in way.recv(4096)
else:
    way = socket.create_connection((host.strip("[]"), int(port)), 5)
if name:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    way = context.wrap_socket(way, server_hostname=name[0])
way.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
print(way.recv(4096).decode())
"""

_URL = (
    'import os, urllib.request as r; u = "http://127.0.0.3:" + os.environ["WEB"]; '
    'print(r.urlopen(r.Request(u + "{path}", headers={headers}), timeout=9).read().decode())'
)

_HAND_OVER = (
    "import os, re, socket; s = socket.socket(socket.AF_UNIX); "
    'own = re.findall(r" (/\\S+/outlets/\\S+) ", open("/proc/self/mounts").read()); '
    's.connect((own or [os.environ["OUTLET"]])[0]); print("ESCAPED")'
)

_UDP = (
    "import os, socket; s = socket.socket(socket.AF_INET{}, socket.SOCK_DGRAM); s.settimeout(20); "
    's.connect(("{}", int(os.environ["UDP"]))); s.send(b"x"); print(s.recv(99).decode())'  # connected: a refusal is an error
)

_STOLEN = _LIBC + 'import os; d = libc.syscall(438, os.pidfd_open(v), 0, 0); os.write(d, b"x")'
"""pidfd_getfd"""

_TAKEN = _LIBC + (
    'd = libc.syscall(438, os.pidfd_open(int(os.environ["PROXY"])), int(os.environ["{}"]), 0); d >= 0 and print("ESCAPED")'
)

_RING = (
    _LIBC
    + """import mmap, struct
params = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 4, params)
numbers = struct.unpack("30I", params.raw)
tail, array = numbers[11], numbers[16]
path = ctypes.create_string_buffer((h + "/planted").encode())
queue, entries = mmap.mmap(ring, array + 16), mmap.mmap(ring, 256, offset=0x10000000)
entries[:40] = struct.pack("<BBHiQQIIQ", 18, 0, 0, -100, 0, ctypes.addressof(path), 0o600, os.O_CREAT | os.O_WRONLY, 1)
queue[array:array + 4] = struct.pack("I", 0)
queue[tail:tail + 4] = struct.pack("I", 1)
libc.syscall(426, ring, 1, 1, 1, None, 0)"""
)
"""io_uring: openat, done by the kernel."""

ESCAPES = (
    # Changing files outside
    Escape("redirect into a file of the home", "echo x > ~/.bashrc"),
    Escape("append to a file of the home", "echo x >> ~/.bashrc"),
    Escape("rename over a file of the home", "echo x > new; mv -f new ~/.bashrc"),
    Escape("remove a file of the home", "rm -f ~/.bashrc"),
    Escape("truncate() a file of the home", "truncate -s 0 ~/.bashrc"),
    Escape(
        "empty a file that is opened for reading", python(_LIBC + 'os.open(h + "/.bashrc", os.O_RDONLY | os.O_TRUNC)')
    ),
    Escape("make a file in the home", "touch ~/planted"),
    Escape("make a directory in the home", "mkdir ~/planted"),
    Escape("make a link in the home", "ln -s x ~/planted"),
    Escape("make a pipe in the home", "mkfifo ~/planted"),
    Escape("listen in the home", python(_LIBC + 'import socket; socket.socket(socket.AF_UNIX).bind(h + "/planted")')),
    Escape("write from another working directory", "cd ~ && touch planted"),
    Escape("write through a link to a file", "ln -s ~/.bashrc way; echo x > way"),
    Escape("write through a link to a directory", "ln -s ~ way; touch way/planted"),
    Escape("write through a chain of links", "ln -s ~ a; ln -s a b; ln -s b/. c; touch c/planted"),
    Escape("write through a hard link", "ln ~/.bashrc way; echo x > way"),
    Escape("write through a link that changes meanwhile", python(_RACE)),
    Escape("move a file of the home into the working directory", "mv ~/.bashrc ."),
    Escape("move a directory of the home into the working directory", "mv ~/.config . && echo ESCAPED"),
    Escape(
        "exchange a file with one of the home",
        "echo x > new; " + python(_LIBC + 'libc.renameat2(-100, b"new", -100, (h + "/.bashrc").encode(), 2)'),
    ),
    Escape("write below /proc/self/root", "echo x > /proc/self/root$HOME/.bashrc"),
    Escape("write above /proc/self/cwd", "touch /proc/self/cwd/../planted"),
    Escape("write below the root of a process outside", "echo x > /proc/$VICTIM/root$HOME/.bashrc"),
    Escape("write in the working directory of a process outside", "touch /proc/$VICTIM/cwd/planted"),
    Escape(
        "reopen a directory that was opened as a path",
        python(
            _LIBC
            + ('d = os.open(h, os.O_PATH); os.close(os.open(f"/proc/self/fd/{d}/planted", os.O_WRONLY | os.O_CREAT))')
        ),
    ),
    Escape("write by a descriptor of a process outside", "echo x > /proc/$VICTIM/fd/0"),
    Escape("take a descriptor from a process outside", python(_STOLEN)),
    Escape("make a file by io_uring", python(_RING)),
    Escape("edit a file that shells run", "sed -i s/before/after/ ~/.bashrc"),
    Escape(
        "have a library loaded into all programs of the next login",
        "mkdir -p ~/.config/environment.d; echo LD_PRELOAD=$WORK/x.so > ~/.config/environment.d/x.conf && echo ESCAPED",
    ),
    Escape(
        "plant a service for the user's systemd",
        "mkdir -p ~/.config/systemd/user; echo '[Service]' > ~/.config/systemd/user/x.service && echo ESCAPED",
    ),
    Escape("plant a program that desktops start", "mkdir -p ~/.config/autostart && echo ESCAPED"),
    Escape(
        "plant a job for cron",
        "d=/etc/cron.d; [ -d $d ] || d=/etc; echo > $d/zot-escape && echo ESCAPED; rm -f $d/zot-escape",
        as_root=True,
    ),
    Escape("change the mode of a file of the home", "chmod 777 ~/.bashrc && echo ESCAPED", BUBBLEWRAP),
    Escape("change the times of a file of the home", "touch -d @0 ~/.bashrc && echo ESCAPED", BUBBLEWRAP),
    # Reading secrets
    Escape("read a key", "cat ~/.ssh/id"),
    Escape("read a file with a password", "cat ~/.netrc"),
    Escape("read the credentials of a cloud", "cat ~/.config/gcloud/credentials.db"),
    Escape("read a key of zot", "cat $ZOT_HOME/auth.json"),
    Escape("search the home", "grep -rah key ~"),
    Escape("read a key through a link", "ln -s ~/.ssh/id way; cat way"),
    Escape("read a key through a hard link", "ln ~/.ssh/id way; cat way"),
    Escape("read a key below /proc/self/root", "cat /proc/self/root$HOME/.ssh/id"),
    Escape("read a key in an archive", "tar -cf - -C ~ .ssh | tar -xOf -"),
    Escape("move keys into the working directory", "mv ~/.ssh . && cat .ssh/id"),
    Escape("move a directory with keys in it", "mv ~/.config . && cat .config/gcloud/credentials.db"),
    Escape(
        "read a key relative to its directory",
        python(
            _LIBC + ('d = os.open(h + "/.ssh", os.O_PATH); print(os.read(os.open("id", os.O_RDONLY, dir_fd=d), 99))')
        ),
    ),
    Escape("see the names of keys", "ls ~/.ssh | grep -q id && echo ESCAPED", BUBBLEWRAP),
    Escape("open a key by its handle", python(_HANDLE), as_root=True),
    # Namespaces, privileges, devices
    Escape("mount again in a user namespace", "unshare -rm sh -c 'mount -o remount,bind,rw /; touch ~/planted'"),
    Escape("unmount what hides, in a user namespace", "unshare -rm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id'"),
    Escape("change the root in a user namespace", "unshare -r chroot / sh -c 'touch ~/planted'"),
    Escape("enter the namespace of a process outside", "nsenter -t $VICTIM -m touch ~/planted", as_root=True),
    Escape("gain privileges from setuid programs", "grep -q 'NoNewPrivs:.*0' /proc/self/status && echo ESCAPED"),
    Escape("keep capabilities of root", "capsh --has-p=cap_sys_admin && echo ESCAPED", as_root=True),
    Escape("make a device", "mknod disk b 1 0 && echo ESCAPED", as_root=True),
    Escape(
        "read a disk",
        "for d in $(find /dev -type b); do head -c1 $d >/dev/null 2>&1 && echo ESCAPED && break; done",
        as_root=True,
    ),
    Escape(
        "change the kernel's settings",
        'set=/proc/sys/kernel/core_pattern; old=$(cat $set); echo "$old" > $set && echo ESCAPED',
        as_root=True,
    ),
    Escape("write to a terminal of the user", "echo ESCAPED > $TERMINAL"),
    # Other processes
    Escape("read the environment of a process outside", "tr '\\0' '\\n' < /proc/$VICTIM/environ"),
    Escape("signal a process outside", "kill -0 $VICTIM && echo ESCAPED"),
    Escape("trace a process outside", python(_LIBC + 'libc.ptrace(0x4206, v, 0, 0) == 0 and print("ESCAPED")')),
    Escape("read the memory of a process outside", "head -c0 /proc/$VICTIM/mem && echo ESCAPED"),
    Escape(
        "use a message queue of the user",
        python(_LIBC + 'libc.msgget(int(os.environ["QUEUE"]), 0) >= 0 and print("ESCAPED")'),
        BUBBLEWRAP,
    ),
    # Sockets and the network
    Escape("connect to a socket that is a file", python(_TALK.format('os.environ["SOCKET"]')), BUBBLEWRAP),
    Escape("connect to zotd", python(_TALK.format('os.environ["ZOTD"]')), BUBBLEWRAP),
    Escape("connect to a socket in /run", python(_TALK.format('os.environ["DOCKER"]')), BUBBLEWRAP, as_root=True),
    Escape("connect to an abstract socket", python(_TALK.format('"\\0" + os.environ["ABSTRACT"]'))),
    Escape("connect by TCP", "cat < /dev/tcp/127.0.0.1/$TCP"),
    Escape("connect by TCP to an IPv6 address", "cat < /dev/tcp/::1/$TCP"),
    Escape("send a datagram by UDP", python(_UDP.format("", "127.0.0.1")), BUBBLEWRAP),
    Escape("send a datagram by IPv6", python(_UDP.format("6", "::1")), BUBBLEWRAP),
    Escape("open a raw socket", python('import socket; socket.socket(17, 3, 768); print("ESCAPED")'), as_root=True),
    # The proxy
    Escape("reach another host", via("127.0.0.1")),
    Escape("spell an address as a number", via("2130706433")),
    Escape("spell an address in hexadecimal", via("0x7f.0.0.1")),
    Escape("spell an address in octal", via("0177.0.0.1")),
    Escape("leave out a part of an address", via("127.1")),
    Escape("name the unspecified address", via("0.0.0.0")),
    Escape("name a host of this machine", via("LocalHost")),
    Escape("reach another host by IPv6", via("[::1]")),
    Escape("write an IPv4 address as IPv6", via("[::ffff:127.0.0.1]")),
    Escape("follow a redirect to another host", python(_URL.format(path="/away", headers="{}"))),
    Escape("name another host in the header", python(_URL.format(path="/", headers='{"Host": "evil.example"}'))),
    Escape("name another host in TLS", via("127.0.0.3", "$TLS", "evil.example")),
    Escape(
        "use the proxy of another jail",
        python(_TALK.replace("print(s.recv(99).decode())", 'print("ESCAPED")').format('os.environ["OUTLET"]')),
        BUBBLEWRAP,
    ),
    Escape("hand over a second listener", python(_HAND_OVER), BUBBLEWRAP),
    # Network namespaces that are made ahead
    Escape("enter the network of another command", "$ENTRANCE true && echo ESCAPED"),
    Escape(
        "connect to the listener of another command",
        "$ENTRANCE bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128' && echo ESCAPED",
    ),
    Escape("open the namespace of another command", "exec 3</proc/$PROXY/fd/$NAMESPACE && echo ESCAPED"),
    Escape("enter the network of the proxy", "nsenter --net=/proc/$PROXY/ns/net true && echo ESCAPED", as_root=True),
    Escape("take the namespace of another command", python(_TAKEN.format("NAMESPACE"))),
    Escape("take a listener from the proxy", python(_TAKEN.format("LISTENER"))),
    # Git
    Escape("write a hook", "echo x > .git/hooks/pre-commit && echo ESCAPED", BUBBLEWRAP),
    Escape("replace the hooks", "mv .git/hooks old && mkdir .git/hooks && echo ESCAPED", BUBBLEWRAP),
    Escape("write git's configuration", "git config core.fsmonitor x && echo ESCAPED", BUBBLEWRAP),
    Escape(
        "write git's configuration by another name", "ln -s .git/config way; echo x >> way && echo ESCAPED", BUBBLEWRAP
    ),
    Escape("put another git directory in the place", "mv .git old && cp -r old .git && echo ESCAPED", BUBBLEWRAP),
    Escape("remove the git directory", "rm -rf .git; mkdir .git && echo ESCAPED", BUBBLEWRAP),
    # What a person has opened
    Escape("go through a link in an opened directory", "ln -s ~ $OPENED/way; touch $OPENED/way/planted"),
    Escape("put a link in the place of an opened directory", "mv $OPENED away; ln -s ~ $OPENED; touch $OPENED/planted"),
    Escape("use an opened directory that a link has replaced", "touch $REPLACED/planted"),
    Escape("move a file of the home into an opened directory", "mv ~/.bashrc $OPENED/"),
    Escape("link a file of the home into an opened directory", "ln ~/.bashrc $OPENED/b; echo x >> $OPENED/b"),
    Escape("change what is beside an opened directory", "touch $OPENED/../beside && echo ESCAPED"),
    Escape("write a hook in an opened directory", "echo x > $OPENED/.git/hooks/pre-commit && echo ESCAPED", BUBBLEWRAP),
    Escape("lead git to another configuration", "mkdir other && echo ../other > .git/commondir"),
    Escape("lead git to another configuration by a link", "echo ../x > pointer && ln -s ../pointer .git/commondir"),
    Escape("lead git to another configuration in an opened directory", "echo ../x > $OPENED/.git/commondir"),
)
