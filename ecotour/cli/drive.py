"""Where the runner meets the sinks: a job, carried out in a directory that is owned here."""

from __future__ import annotations

import contextlib
import signal

from ecotour.cli import process
from ecotour.cli.crew import Crew
from ecotour.cli.job import Job
from ecotour.errors import EcotourError
from ecotour.rundir.claim import RunDirectory
from ecotour.rundir.strict_json import to_json

VERDICT_NOT_REACHED = 3


def carry_out(job: Job, directory: RunDirectory, stop: process.Stop) -> int:
    """Run a job's program into the sinks, and return the exit code.

    The directory is released in any case, and removed if nothing was written into it.

    Raises:
        EcotourError: The run failed.
    """
    from ecotour.running import runner

    try:
        crew = Crew(job, directory)
        resume = job.continuation.resume if job.continuation else None
        failure: EcotourError | None = None
        try:
            for event in runner.run(
                job.program, job.plan, began=job.began, stop=stop, resume=resume
            ):
                crew(event)
        except EcotourError as error:
            failure = error
        except KeyboardInterrupt:
            pass  # the last event said so
        left_over = crew.finish()
        return _end(job, crew, failure or left_over, stop)
    finally:
        directory.abandon()


def _end(job: Job, crew: Crew, failure: EcotourError | None, stop: process.Stop) -> int:
    """Print the document, if it is wanted, and return what the run's end stands for."""
    record = crew.record
    if job.options.json:
        with contextlib.suppress(OSError):  # whoever was to read it has gone
            job.stdout.write(to_json(record, indent=1) + "\n")
    if failure is not None:
        failure.shown_as_json = job.options.json
        raise failure
    if record["status"] == "interrupted":
        return 128 + (stop.signal or signal.SIGINT)
    reached = all(check["passed"] for check in record["checks"]) and not record["unshown"]
    if job.options.strict and not reached:
        return VERDICT_NOT_REACHED
    return 0
