"""A client for spektacular with asyncio: runs a coding agent, yields its frames and answers its questions.

Copy this file into your project as spektacular_asyncio.py. It needs Python 3.9 or later and nothing else. The types of
all messages are at its end. This example runs the demo agent; an empty line declines a question, and Ctrl-C cancels the
run:

    import asyncio
    import sys
    from spektacular_asyncio import Run

    terminal = asyncio.Lock()

    async def answer(question):
        options = [option["value"] for option in question.get("options", [])]
        async with terminal:
            print("?", question["text"], options or "")
            line = (await asyncio.to_thread(sys.stdin.readline)).strip()
        return {"value": line} if line else {"declined": True}

    async def main():
        async with Run({"agent": "demo", "prompt": "Say hello."}, answer) as run:
            async for frame in run:
                if frame["type"] == "run.progress":
                    print(frame["payload"]["text"])
            last = await run.wait()
        print(last["type"], last["payload"].get("message", ""))
        return last["type"] == "run.failed"

    sys.exit(asyncio.run(main()))
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import sysconfig
from collections import deque
from typing import (
    TYPE_CHECKING, Any, Awaitable, Callable, Deque, Literal, Mapping, Optional, Sequence, TypedDict, Union, cast,
)

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired
else:
    NotRequired = Optional

Last = Union["RunCompleted", "RunFailed", "RunCancelled"]
OnQuestion = Callable[["Question"], Awaitable[Optional[Mapping[str, Any]]]]


class Died(Exception):
    """spektacular ended without a terminal frame, for example because it was killed."""


class Run:
    """One run. Enter it to start it, and iterate over it to read the frames up to the terminal one, which `wait` returns.

    `start` is the payload of run.start. `answer` gets the payload of each run.question and returns the payload of the
    run.input without its question_id: {"value": …}, {"value_from": …} or {"declined": True}. It returns None if the
    program calls `reply` itself, at any time. Each question has a task of its own, because several may be open, each with
    its time limit, while the frames are read on. The task is cancelled when the question needs no answer any more. After
    a bad answer `answer` is called again: the question then has a higher `attempt` and an `error`. If it raises, the run
    is cancelled and `wait` raises the exception. Without `answer`, the run is headless.

    `flags` are further flags of the subcommand, such as ["--report", "run.html"]; `subcommand` is "adhoc", "spec", "plan"
    or "implement", and other keyword arguments go to asyncio.create_subprocess_exec.

    Iterate in one task. The other methods may be called from any. `process` is the process of spektacular.
    """

    process: asyncio.subprocess.Process

    def __init__(
        self,
        start: Start,
        answer: Optional[OnQuestion] = None,
        run_id: Optional[str] = None,
        command: Optional[Sequence[str]] = None,
        flags: Sequence[str] = (),
        subcommand: str = "adhoc",
        **popen: Any,
    ) -> None:
        # A value that is no JSON raises here, before there is a process.
        self._first = _line("run.start", {"interactive": answer is not None, **start}, run_id)
        # If this program dies, the end of stdin cancels the run. Ctrl-C reaches this program alone.
        self._command = [*(command or _program()), subcommand, "--output", "json", "--on-eof", "cancel", *flags]
        self._popen = {"start_new_session": True, **popen}
        self._answer = answer
        self._open: dict[str, Optional[asyncio.Task[None]]] = {}
        self._pieces: list[bytes] = []
        self._lines: Deque[bytes] = deque()
        self._error: Optional[BaseException] = None
        self._last: Optional[Last] = None
        self._died: Optional[str] = None

    async def __aenter__(self) -> Run:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, **self._popen)
        self._stdin = cast(asyncio.StreamWriter, self.process.stdin)
        self._stdout = cast(asyncio.StreamReader, self.process.stdout)
        await self._write(self._first)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Ends the run if it still runs."""
        if self.process.returncode is None:
            await self.cancel()
            try:
                # Frames that nobody reads any more would hold up the end.
                await asyncio.wait_for(self._discard(), timeout=10)
            except asyncio.TimeoutError:
                self.process.kill()
        await self._stop()
        if self._last is None and self._died is None:
            self._died = "the run was closed before its terminal frame"

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Frame:
        """The next frame. Raises StopAsyncIteration after the terminal one, and Died if that never comes."""
        if self._last is not None:
            raise StopAsyncIteration
        if self._died is not None:
            raise Died(self._died)
        line = await self._read_line()
        if line is None:
            await self._stop()
            self._died = f"spektacular ended without a terminal frame, with exit status {self.process.returncode}"
            raise Died(self._died)
        frame: Frame = json.loads(line)
        if frame["type"] == "run.question":
            self._ask(frame["payload"])
        elif frame["type"] == "run.progress" and frame["payload"]["kind"] == "question_resolved":
            self._resolve(frame["payload"]["question_id"])
        elif frame["type"] == "run.completed" or frame["type"] == "run.failed" or frame["type"] == "run.cancelled":
            self._last = frame
            await self._stop()
        return frame

    async def wait(self) -> Last:
        """Reads the remaining frames and returns the terminal one."""
        async for _ in self:
            pass
        if self._error is not None:
            raise self._error
        return cast("Last", self._last)

    async def reply(self, question_id: str, reply: Mapping[str, Any]) -> None:
        """Answers an open question. Does nothing if the question is resolved, for example by its timeout."""
        if sum(key in reply for key in ("value", "value_from", "declined")) != 1:
            raise ValueError("a reply has exactly one of value, value_from and declined")
        if question_id in self._open:
            await self._send("run.input", {"question_id": question_id, **reply})

    async def prompt(
        self, text: str, when: Literal["next", "now"] = "next", images: Sequence[str] = ()
    ) -> None:
        """Sends a further message of the user: after the turn, or with "now" while the agent works, where it can."""
        await self._send("run.input", {"prompt": text, "when": when, **({"images": list(images)} if images else {})})

    async def rewind(self, checkpoint_id: str) -> None:
        """Puts the files back to a checkpoint of a conversation with `checkpoints`."""
        await self._send("run.input", {"rewind": checkpoint_id})

    async def end(self) -> None:
        """Ends a conversation: the running turn and waiting prompts are finished first."""
        await self._send("run.input", {"end": True})

    async def cancel(self, reason: Optional[str] = None) -> None:
        """Cancels the run. Its terminal frame follows within 4 seconds."""
        await self._send("run.cancel", {"reason": reason} if reason else {})

    async def cancel_turn(self) -> None:
        """Interrupts the running turn of a conversation, which goes on. Cancels a run that is no conversation."""
        await self._send("run.cancel", {"scope": "turn"})

    async def _read_line(self) -> Optional[bytes]:
        """The next line. None: stdout ended; a last line without LF was not delivered."""
        # Not StreamReader.readline, which refuses long lines.
        while not self._lines:
            chunk = await self._stdout.read(1 << 16)
            if not chunk:
                return None
            first, *rest = chunk.split(b"\n")
            self._pieces.append(first)
            for piece in rest:
                self._lines.append(b"".join(self._pieces))
                self._pieces = [piece]
        return self._lines.popleft()

    async def _discard(self) -> None:
        while await self._stdout.read(1 << 16):
            pass
        await self.process.wait()

    def _ask(self, question: Question) -> None:
        self._resolve(question["question_id"])
        task = asyncio.ensure_future(self._answer_one(question, self._answer)) if self._answer else None
        self._open[question["question_id"]] = task

    def _resolve(self, question_id: str) -> None:
        task = self._open.pop(question_id, None)
        if task is not None:
            task.cancel()

    async def _answer_one(self, question: Question, answer: OnQuestion) -> None:
        try:
            reply = await answer(question)
            if reply is not None:
                await self.reply(question["question_id"], reply)
        except Exception as error:
            self._error = error
            await self.cancel("the answer callback failed")

    async def _send(self, kind: str, payload: Mapping[str, Any]) -> None:
        await self._write(_line(kind, payload))

    async def _write(self, line: str) -> None:
        try:
            self._stdin.write(line.encode())
            await self._stdin.drain()
        except (OSError, RuntimeError):
            # The run has ended: its terminal frame, or Died, says how.
            pass

    async def _stop(self) -> None:
        for question_id in list(self._open):
            self._resolve(question_id)
        self._stdin.close()
        await self.process.wait()


def _program() -> Sequence[str]:
    """The program of the package `spektacular` from pip, which need not be on the PATH, or else that on the PATH."""
    packed = os.path.join(sysconfig.get_path("scripts"), "spektacular")
    return [packed if os.path.exists(packed) else "spektacular"]


def _line(kind: str, payload: Mapping[str, Any], run_id: Optional[str] = None) -> str:
    envelope = {"run_id": run_id} if run_id else {}
    return json.dumps({"v": "1", "type": kind, **envelope, "payload": payload}) + "\n"
