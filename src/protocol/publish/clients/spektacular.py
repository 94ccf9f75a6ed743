"""A client for spektacular: runs a coding agent, yields its frames and answers its questions.

Copy this file into your project as spektacular.py. It needs Python 3.9 or later and nothing else. The types of all
messages are at its end. This example runs the demo agent; an empty line declines a question, and Ctrl-C cancels the run:

    import sys
    from spektacular import Run

    def answer(question):
        options = [option["value"] for option in question.get("options", [])]
        print("?", question["text"], options or "")
        line = sys.stdin.readline().strip()
        return {"value": line} if line else {"declined": True}

    with Run({"agent": "demo", "prompt": "Say hello."}, answer) as run:
        try:
            for frame in run:
                if frame["type"] == "run.progress":
                    print(frame["payload"]["text"])
        except KeyboardInterrupt:
            run.cancel("Ctrl-C")
        last = run.wait()
    print(last["type"], last["payload"].get("message", ""))
    sys.exit(last["type"] == "run.failed")
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import threading
import time
from queue import Queue
from typing import TYPE_CHECKING, IO, Any, Callable, Literal, Mapping, Optional, Sequence, TypedDict, Union, cast

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired
else:
    NotRequired = Optional

Last = Union["RunCompleted", "RunFailed", "RunCancelled"]
OnQuestion = Callable[["Question"], Optional[Mapping[str, Any]]]


class Died(Exception):
    """spektacular ended without a terminal frame, for example because it was killed."""


class Run:
    """One run. Iterate over it to read the frames up to the terminal one, which `wait` returns.

    `start` is the payload of run.start. `answer` gets the payload of each run.question and returns the payload of the
    run.input without its question_id: {"value": …}, {"value_from": …} or {"declined": True}. It returns None if the
    program calls `reply` itself, at any time. It runs in a thread of its own, for one question at a time, while the
    frames are read on. The `timeout_s` of a question that had to wait is the time that is left. After a bad answer it is
    called again: the question then has a higher `attempt` and an `error`. If it raises, the run is cancelled and `wait`
    raises the exception. Without `answer`, the run is headless.

    `flags` are further flags of the subcommand, such as ["--report", "run.html"]; `subcommand` is "adhoc", "spec", "plan"
    or "implement", and other keyword arguments go to subprocess.Popen.

    Iterate in one thread. The other methods may be called from any. `process` is the process of spektacular.
    """

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
        first = _line("run.start", {"interactive": answer is not None, **start}, run_id)
        # If this program dies, the end of stdin cancels the run. Ctrl-C reaches this program alone.
        command = [*(command or _program()), subcommand, "--output", "json", "--on-eof", "cancel", *flags]
        popen.setdefault("start_new_session", True)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        self._stdin, self._stdout = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        self._asked: Queue[Optional[tuple[float, Question]]] = Queue()
        self._open: set[str] = set()
        self._lock = threading.Lock()
        self._error: Optional[BaseException] = None
        self._last: Optional[Last] = None
        self._died: Optional[str] = None
        if answer is not None:
            threading.Thread(target=self._answer_questions, args=(answer,), daemon=True).start()
        self._write(first)

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Frame:
        """The next frame. Raises StopIteration after the terminal one, and Died if that never comes."""
        if self._last is not None:
            raise StopIteration
        if self._died is not None:
            raise Died(self._died)
        line = self._stdout.readline()
        if not line.endswith(b"\n"):
            # A last line without LF was not delivered.
            self._stop()
            self._died = f"spektacular ended without a terminal frame, with exit status {self.process.returncode}"
            raise Died(self._died)
        frame: Frame = json.loads(line)
        if frame["type"] == "run.question":
            with self._lock:
                self._open.add(frame["payload"]["question_id"])
            self._asked.put((time.monotonic(), frame["payload"]))
        elif frame["type"] == "run.progress" and frame["payload"]["kind"] == "question_resolved":
            with self._lock:
                self._open.discard(frame["payload"]["question_id"])
        elif frame["type"] == "run.completed" or frame["type"] == "run.failed" or frame["type"] == "run.cancelled":
            self._last = frame
            self._stop()
        return frame

    def wait(self) -> Last:
        """Reads the remaining frames and returns the terminal one."""
        for _ in self:
            pass
        if self._error is not None:
            raise self._error
        return cast("Last", self._last)

    def reply(self, question_id: str, reply: Mapping[str, Any]) -> None:
        """Answers an open question. Does nothing if the question is resolved, for example by its timeout."""
        if sum(key in reply for key in ("value", "value_from", "declined")) != 1:
            raise ValueError("a reply has exactly one of value, value_from and declined")
        with self._lock:
            is_open = question_id in self._open
        if is_open:
            self._send("run.input", {"question_id": question_id, **reply})

    def prompt(
        self, text: str, when: Literal["next", "now"] = "next", images: Sequence[str] = ()
    ) -> None:
        """Sends a further message of the user: after the turn, or with "now" while the agent works, where it can."""
        self._send("run.input", {"prompt": text, "when": when, **({"images": list(images)} if images else {})})

    def rewind(self, checkpoint_id: str) -> None:
        """Puts the files back to a checkpoint of a conversation with `checkpoints`."""
        self._send("run.input", {"rewind": checkpoint_id})

    def end(self) -> None:
        """Ends a conversation: the running turn and waiting prompts are finished first."""
        self._send("run.input", {"end": True})

    def cancel(self, reason: Optional[str] = None) -> None:
        """Cancels the run. Its terminal frame follows within 4 seconds."""
        self._send("run.cancel", {"reason": reason} if reason else {})

    def cancel_turn(self) -> None:
        """Interrupts the running turn of a conversation, which goes on. Cancels a run that is no conversation."""
        self._send("run.cancel", {"scope": "turn"})

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the run if it still runs."""
        if self.process.poll() is None:
            self.cancel()
            try:
                # Frames that nobody reads any more would hold up the end.
                self.process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._stop()
        if self._last is None and self._died is None:
            self._died = "the run was closed before its terminal frame"

    def _answer_questions(self, answer: OnQuestion) -> None:
        while (asked := self._asked.get()) is not None:
            since, question = asked
            try:
                with self._lock:
                    is_open = question["question_id"] in self._open
                if question["timeout_s"] is not None:
                    left = max(0.0, question["timeout_s"] - (time.monotonic() - since))
                    question = cast("Question", {**question, "timeout_s": left})
                reply = answer(question) if is_open else None
                if reply is not None:
                    self.reply(question["question_id"], reply)
            except BaseException as error:
                self._error = error
                return self.cancel("the answer callback failed")

    def _send(self, kind: str, payload: Mapping[str, Any]) -> None:
        self._write(_line(kind, payload))

    def _write(self, line: str) -> None:
        with self._lock:
            try:
                self._stdin.write(line.encode())
                self._stdin.flush()
            except (OSError, ValueError):
                # The run has ended: its terminal frame, or Died, says how.
                pass

    def _stop(self) -> None:
        self._asked.put(None)
        with self._lock:
            try:
                self._stdin.close()
            except OSError:
                pass
        self.process.wait()
        self._stdout.close()


def _program() -> Sequence[str]:
    """The program of the package `spektacular` from pip, which need not be on the PATH, or else that on the PATH."""
    packed = os.path.join(sysconfig.get_path("scripts"), "spektacular")
    return [packed if os.path.exists(packed) else "spektacular"]


def _line(kind: str, payload: Mapping[str, Any], run_id: Optional[str] = None) -> str:
    envelope = {"run_id": run_id} if run_id else {}
    return json.dumps({"v": "1", "type": kind, **envelope, "payload": payload}) + "\n"
