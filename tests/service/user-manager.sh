#!/bin/bash
# A real `systemd --user` of its own, to be run in namespaces of its own:
#
#   unshare --mount --cgroup --pid --fork --mount-proc --kill-child bash user-manager.sh CGROUP
#
# It sees nothing of this machine's /run and cgroups, and this machine nothing of its units. As root, because mounting is.
# The manager is not exec'ed: as process 1 it would take itself for the system's.
set -eu
mount -t tmpfs tmpfs /run
mkdir -p -m 700 /run/user/"$UID"
mkdir -p /run/systemd/system # what `sd_booted(3)` looks for
umount --lazy --recursive /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p "/sys/fs/cgroup/$1"
echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
export XDG_RUNTIME_DIR=/run/user/$UID
/lib/systemd/systemd --user --log-target=console &
for _ in $(seq 300); do
    systemctl --user is-system-running 2>/dev/null | grep -qE 'running|degraded' && break
    sleep 0.1
done
echo "up: $(systemctl --user is-system-running)"
wait
