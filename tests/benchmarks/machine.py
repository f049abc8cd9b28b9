"""Where figures were measured, and with what."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import confluent_kafka
import numpy as np

from stream_fs.broker.toolchain import KAFKA_VERSION
from stream_fs.selector.kernels.dispatch import active_core


def machine() -> dict[str, str]:
    """Processor, system and the libraries that compute."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": f"{np.__version__} ({blas['name']} {blas['version']}, one thread)",
        "scipy": version("scipy"),
        "core": active_core(),
    }


def stolen() -> tuple[int, int]:
    """What the hypervisor has withheld of the processors' time so far, and all of it (Linux)."""
    times = [int(field) for field in Path("/proc/stat").read_text("ascii").split()[1:9]]
    return times[-1], sum(times)


def clients() -> dict[str, str]:
    """What speaks with the broker, and the broker."""
    return {
        "confluent-kafka": f"{version('confluent-kafka')}, librdkafka "
        f"{confluent_kafka.libversion()[0]}",
        "msgpack": version("msgpack"),
        "broker": f"Apache Kafka {KAFKA_VERSION}, one node on the same machine",
    }


def processor() -> str:
    """The model by name; `platform` knows it on few systems."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
