"""Plays scenarios of the demo agent by the client, and prints how each ends: every_scenario.py NAME..."""

import sys
from typing import Any, Mapping

from spektacular import Question, Run


def answer(question: Question) -> Mapping[str, Any]:
    # A second attempt follows an answer that does not fit.
    if question["attempt"] > 1:
        return {"declined": True}
    options = question.get("options")
    return {"value": options[0]["value"] if options else "yes"}


def play(name: str) -> str:
    prompts = ["again", "and again"]
    steers = name == "steer"
    with Run({"agent": f"demo:{name}", "prompt": "go", "conversation": name == "turns"}, answer) as run:
        for frame in run:
            if frame["type"] != "run.progress":
                continue
            if name == "hang" and frame["payload"]["kind"] == "text":
                run.cancel("The agent hangs.")
            elif steers and frame["payload"]["kind"] == "text":
                steers = False
                run.prompt("Stop.", "now")
            elif frame["payload"]["kind"] == "turn" and prompts:
                run.prompt(prompts.pop(0))
            elif frame["payload"]["kind"] == "turn":
                run.end()
        return run.wait()["type"]


for scenario in sys.argv[1:]:
    print(scenario, play(scenario), flush=True)
