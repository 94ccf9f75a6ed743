"""A program around the client, for `spektacular protocol check`: its exit status is 0 if and only if the run completes."""

import asyncio
import sys
from typing import Any, Mapping

from spektacular_asyncio import Died, Question, Run


async def answer(question: Question) -> Mapping[str, Any]:
    if question["attempt"] > 1:
        return {"declined": True}
    options = question.get("options")
    return {"value": options[0]["value"] if options else "yes"}


async def main() -> bool:
    turns = 0
    async with Run({"agent": "demo", "prompt": "go", "conversation": True}, answer) as run:
        async for frame in run:
            if frame["type"] == "run.progress" and frame["payload"]["kind"] == "turn":
                turns += 1
                if turns == 1:
                    await run.prompt("again")
                else:
                    await run.end()
        return (await run.wait())["type"] == "run.completed"


try:
    sys.exit(0 if asyncio.run(main()) else 1)
except Died:
    sys.exit(1)
