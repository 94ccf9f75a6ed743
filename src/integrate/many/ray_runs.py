"""Runs many tasks through coding agents on a Ray cluster: python ray_runs.py TASKS RESULTS

TASKS holds one JSON object per line: {"id": …, "start": {…the payload of run.start…}}. RESULTS gets one line per task,
in the order in which the tasks end. spektacular.py must be beside this file, and spektacular on the PATH of each node.

Ray runs a task again if its node dies or its worker is killed. A failure that says that it is retryable is also run again,
and so is a run whose spektacular was killed. Every other failure would repeat itself, so it is a result. A task that runs
again begins anew: give it a fresh checkout, or a task that can be done twice.
"""

import json
import os
import sys
import time

import ray

from spektacular import Died, Run

ATTEMPTS = 4


class Again(Exception):
    """The run failed, but the same run may succeed later."""


@ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=[Again, Died])
def run(task):
    start = {"metadata": {"task": task["id"]}, **task["start"]}
    # The id of the run leads from a log line to its task. Each attempt is a run of its own.
    with Run(start, run_id=f"{task['id']}.{time.time_ns()}") as agent:
        last = agent.wait()
    if last["type"] == "run.failed" and last["payload"]["retryable"]:
        raise Again(last["payload"]["message"])
    return {"id": task["id"], "run_id": last["run_id"], "node": ray.get_runtime_context().get_node_id(), "last": last}


def main(tasks, results):
    with open(tasks, encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    waiting = {run.remote(task): task["id"] for task in tasks}
    failed = 0
    while waiting:
        (done,), _ = ray.wait(list(waiting))
        task = waiting.pop(done)
        try:
            result = ray.get(done)
        except ray.exceptions.RayError as error:
            # The last attempt ended like this.
            result = {"id": task, "error": str(error)}
        failed += result.get("last", {}).get("type") != "run.completed"
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    ray.init(runtime_env={"working_dir": os.path.dirname(os.path.abspath(__file__))})
    sys.exit(main(*sys.argv[1:]))
