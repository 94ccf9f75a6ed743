"""An orchestrator in types alone: `.ci/run` checks it with the types of `spektacular protocol types python`."""

from spektacular_types import Frame, Message, Progress, Question, RunStart

START: RunStart = {
    "v": "1",
    "type": "run.start",
    "payload": {
        "prompt": "Fix the failing test",
        "permissions": {"read": "allow", "*": "ask"},
        "mcp_servers": [{"name": "wiki", "url": "https://wiki.example.org/mcp"}],
        "timeout_s": None,
        "workflow": {"continue": True},
    },
}


def answer(question: Question) -> Message:
    options = question.get("options")
    if options:
        return {
            "v": "1",
            "type": "run.input",
            "payload": {"question_id": question["question_id"], "value": options[0]["value"]},
        }
    return {"v": "1", "type": "run.input", "payload": {"question_id": question["question_id"], "declined": True}}


def progress(payload: Progress) -> str:
    if payload["kind"] == "text":
        return payload["message_id"] if payload["done"] else payload["text"]
    if payload["kind"] == "tool":
        places = " ".join(place["path"] for place in payload["locations"])
        return f"{payload['category']} {payload['state']} {places}"
    if payload["kind"] == "turn":
        failure = payload["failure"]
        return failure["code"] if failure else payload["outcome"]
    return payload["text"]


def read(frame: Frame) -> Message | str | None:
    if frame["type"] == "run.started":
        return frame["payload"]["agent"]["name"] if frame["payload"]["capabilities"]["steer"] else START
    if frame["type"] == "run.progress":
        return progress(frame["payload"])
    if frame["type"] == "run.question":
        return answer(frame["payload"])
    if frame["type"] == "run.artifact":
        return frame["payload"]["path"]
    if frame["type"] == "run.completed":
        return frame["payload"]["text"]
    if frame["type"] == "run.failed":
        failed = frame["payload"]
        return None if failed["code"] == "rate_limited" and failed["retryable"] else failed["message"]
    return frame["payload"]["reason"]


# A misspelt field, and a word that the protocol does not have. Unused ignores are errors here.
MISSPELT: RunStart = {"v": "1", "type": "run.start", "payload": {"promt": "x"}}  # type: ignore[typeddict-item, typeddict-unknown-key]
UNKNOWN: RunStart = {"v": "1", "type": "run.start", "payload": {"prompt": "x", "progress": "verbose"}}  # type: ignore[typeddict-item]
