"""Plays scenarios of the demo agent by the client with asyncio, and prints how each ends: every_scenario_asyncio.py NAME..."""

import asyncio
import sys
from typing import Any, Mapping

from spektacular_asyncio import Question, Run


async def answer(question: Question) -> Mapping[str, Any]:
    # A second attempt follows an answer that does not fit.
    if question["attempt"] > 1:
        return {"declined": True}
    options = question.get("options")
    return {"value": options[0]["value"] if options else "yes"}


async def play(name: str) -> str:
    prompts = ["again", "and again"]
    steers = name == "steer"
    async with Run({"agent": f"demo:{name}", "prompt": "go", "conversation": name == "turns"}, answer) as run:
        async for frame in run:
            if frame["type"] != "run.progress":
                continue
            if name == "hang" and frame["payload"]["kind"] == "text":
                await run.cancel("The agent hangs.")
            elif steers and frame["payload"]["kind"] == "text":
                steers = False
                await run.prompt("Stop.", "now")
            elif frame["payload"]["kind"] == "turn" and prompts:
                await run.prompt(prompts.pop(0))
            elif frame["payload"]["kind"] == "turn":
                await run.end()
        return (await run.wait())["type"]


async def main() -> None:
    for scenario in sys.argv[1:]:
        print(scenario, await play(scenario), flush=True)


asyncio.run(main())
