"""Java, Maven and the cached jars of Apache Kafka."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stream_fs.broker.guarded_process import GuardedCommand
from stream_fs.broker.node import BrokerUnavailable, tail

KAFKA_VERSION: Final = "4.3.1"
OLDEST_JAVA: Final = 17

_SCALA: Final = "2.13"
_LOG4J: Final = "2.25.3"
_COPY_DEPENDENCIES: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>stream-fs</groupId>
  <artifactId>development-broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{_SCALA}</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{_LOG4J}</version>
    </dependency>
  </dependencies>
</project>
"""


@dataclass(frozen=True)
class Toolchain:
    """The tools of this machine for running Kafka."""

    java: str | None
    """The Java launcher, whatever its version."""
    maven: str | None
    jars: Path
    """The directory of the jars; it exists only if it is complete."""

    @classmethod
    def found(cls, environ: Mapping[str, str]) -> Toolchain:
        """Look in ``JAVA_HOME``, ``PATH`` and the user's cache directory."""
        path = environ.get("PATH", "")
        home = environ.get("JAVA_HOME")
        java = shutil.which("java", path=str(Path(home, "bin"))) if home else None
        cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(
            java=java or shutil.which("java", path=path),
            maven=shutil.which("mvn", path=path),
            jars=cache / "stream-fs" / f"kafka-{KAFKA_VERSION}",
        )

    def missing(self) -> list[str]:
        """Sentences about what has to be installed; empty if Kafka can be run."""
        sentences = []
        if self.java is None:
            sentences.append(
                f"Java {OLDEST_JAVA} or newer: no java in JAVA_HOME or on PATH; install a JDK "
                "(Debian: default-jre-headless)"
            )
        elif (version := _java_version(self.java)) < OLDEST_JAVA:
            sentences.append(
                f"Java {OLDEST_JAVA} or newer: {self.java} is Java {version}; install a newer JDK "
                "or point JAVA_HOME to one"
            )
        if self.maven is None and not self.jars.is_dir():
            sentences.append(
                "Maven: no mvn on PATH, needed once to fetch Apache Kafka; install it "
                "(Debian: maven)"
            )
        return sentences

    def fetch(self) -> Path:
        """Fetch the jars of Kafka, unless they are cached; returns their directory.

        Of several processes, one fetches and the others wait. The directory is created complete or
        not at all.
        """
        if not self.jars.is_dir():
            self.jars.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.jars.with_name(f"{self.jars.name}.lock")):
                if not self.jars.is_dir():
                    self._copy_dependencies(self.jars.with_name(f"{self.jars.name}.partial"))
        return self.jars

    def _copy_dependencies(self, partial: Path) -> None:
        """Fill ``partial`` with Maven, then rename it."""
        assert self.maven is not None
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed while fetching
        partial.mkdir()
        pom = partial / "pom.xml"
        pom.write_text(_POM, encoding="utf-8")
        output = self.jars.with_name(f"{self.jars.name}.log")
        output.unlink(missing_ok=True)
        command = [
            self.maven,
            "-q",
            "-B",
            "-f",
            str(pom),
            f"{_COPY_DEPENDENCIES}:copy-dependencies",
        ]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        status = GuardedCommand([*command, *options], output=output, scratch=partial).wait()
        if status != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise BrokerUnavailable(
                f"Maven could not fetch Apache Kafka {KAFKA_VERSION} (exit status {status}):\n"
                + tail(output)
            )
        partial.rename(self.jars)


def _java_version(java: str) -> int:
    """The major version: 1 for Java 8 and older, 0 if it is unknown."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', answer.stderr)
    return int(match.group(1)) if match else 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, which the system releases when the process dies."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
