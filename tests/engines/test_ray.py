"""The Ray engine: network access, lost workers and wrong addresses."""

import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import work

from aggrevated.core.errors import AggrevatedError, UsageError
from aggrevated.engines.ray import check_reachable

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'aggrevated[ray]'")


def list_descendants(pid: int) -> set[int]:
    """Return the ids of all descendants of a process."""
    children = {
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    }
    return children.union(*(list_descendants(child) for child in children if Path(f"/proc/{child}").exists()))


def list_listening_addresses(pids: set[int]) -> set[str]:
    """Return the addresses, in hexadecimal, on which processes listen for TCP."""
    sockets = {str(fd.readlink()) for pid in pids for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and f"socket:[{parts[9]}]" in sockets:
                found.add(parts[1].rpartition(":")[0])
    return found


def test_ray_engine_listens_on_the_loopback_address_only(ray_engine):
    ray_engine.map(work.add, 1, [1, 2, 3])
    processes = list_descendants(os.getpid())
    found = list_listening_addresses(processes)
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert found and found <= loopback, found


def test_ray_engine_replaces_killed_workers_silently(ray_engine, capfd):
    for _ in range(4):
        pids = {pid for _, pid in ray_engine.map(work.sleep_and_return, 0.0, list(range(4)))}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert [each for each, _ in ray_engine.map(work.sleep_and_return, 0.02, list(range(6)))] == list(range(6))
    time.sleep(1.0)  # Ray prints messages about lost workers with a delay
    assert capfd.readouterr().out == ""


def test_ray_engine_refuses_a_second_engine_in_the_same_process(ray_engine):
    from aggrevated.engines.ray import RayEngine

    with pytest.raises(UsageError, match=r"call ray\.shutdown\(\) first"):
        RayEngine(1)


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("127.0.0.1:1", AggrevatedError, r"^Ray cannot be reached at 127\.0\.0\.1:1 \(.*\); start it with 'ray start"),
        ("127.0.0.1", UsageError, r"^--ray-address is 127\.0\.0\.1, but must be HOST:PORT"),
        ("ray://somewhere", UsageError, "must be HOST:PORT"),
        ("ray://127.0.0.1:10001", UsageError, "must be HOST:PORT"),
    ],
)
def test_check_reachable_refuses_unreachable_and_malformed_addresses(address, error, message):
    with pytest.raises(error, match=message):
        check_reachable(address)


def test_start_ray_does_not_join_a_cluster_that_was_left_behind(monkeypatch):
    """Ray stores the address of its latest cluster and would connect to it by default."""
    from aggrevated.engines import ray as module

    init_options = {}

    class RecordingRay:
        def is_initialized(self):
            return False

        def init(self, **options):
            init_options.update(options)

    monkeypatch.setattr(module, "import_ray", RecordingRay)
    monkeypatch.setattr(module, "silence_ray_logs", lambda: None)
    module.start_ray(2, None)
    assert init_options["address"] == "local" and init_options["_node_ip_address"] == "127.0.0.1"
