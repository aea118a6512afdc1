"""A session whose tasks run in two processes of their own, as on a cluster: another JVM than the
driver's, a shuffle over the network (`make test-executors`).

What works in one JVM alone (a value that tasks share, a class of the driver's class path, a file
that only the driver can see) does not work here.
"""

from __future__ import annotations

from tidemill.lake.session import jars, launch, local_machine

EXECUTORS = "local-cluster[2,1,2048]"  # how many, cores of each, MiB of each


def settings() -> dict[str, str]:
    """What such a session is started with beside what a local one has."""
    known = jars.resolved(local_machine.ivy_folder(), launch._packages({}))
    return {
        "spark.master": EXECUTORS,
        "spark.executor.memory": "2g",
        "spark.executor.extraClassPath": ":".join(map(str, jars.beyond_spark(known or ()))),
    }
