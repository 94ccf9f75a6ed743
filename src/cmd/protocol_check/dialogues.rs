//! The built-in dialogues.

use crate::json::to_line;
use serde::Serialize;

#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The turns of the scenario that the demo agent plays, as JSON.
    turns: &'static str,
    pub(super) quirk: Quirk,
    pub(super) ending: Ending,
    /// The mistake of a client that leaves early, or whose exit code does not match the run.
    pub(super) mistake: Mistake,
    /// The rule that such a client breaks, as a sentence.
    pub(super) rule: &'static str,
}

/// The difference between the dialogue and a run of the demo agent, before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quirk {
    None,
    /// The first answer does not fit, whatever it is.
    Again,
    /// Frames that no pipe can hold come while the question is open.
    Flood,
    /// Questions time out soon.
    Expires,
    /// In the frame with [`NOVEL`], the second text takes the place of the first: a later version may send that.
    Novel(&'static str, &'static str),
    /// Frames with other letters than ASCII come in pieces, with pauses.
    Slow,
    /// A frame of the greatest length.
    Huge,
}

/// The message whose frame has something that this version does not have.
pub(super) const NOVEL: &str = "It may rain.";

/// The end of the run, with the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Completed(u8),
    Failed(u8),
    /// No terminal frame.
    Vanished(u8),
    /// Half a frame, and then SIGKILL.
    Killed,
    /// Further prompts, until the client ends the conversation.
    Conversation,
}

/// A variant's name in JSON is the code of the mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mistake {
    NotCalled,
    WrongCall,
    SeveralRuns,
    NoStart,
    InvalidMessage,
    UnknownField,
    InvalidStart,
    NotReading,
    UnknownQuestion,
    AnsweredTwice,
    AnsweredResolved,
    Unanswered,
    NotAnsweredAgain,
    ClosedInput,
    LeftRunning,
    StoppedAtUnknown,
    TrustedExitCode,
    WrongEnd,
    NeverEnded,
}

const ONE_QUESTION: &str =
    r#"[[{"ask": [{"question": "Shall I go on?", "header": "Go on", "kind": "confirm", "default": "yes"}]}]]"#;
const QUESTIONS: &str = r#"[[
    {"ask": [{"question": "Shall I go on?", "header": "Go on", "kind": "confirm", "default": "yes"}]},
    {"ask": [
        {"question": "Which colour?", "header": "Colour", "kind": "select", "options": ["Red", "Green"], "default": "Red"},
        {"question": "Which toppings?", "header": "Toppings", "kind": "multi-select", "options": ["Cheese", "Olives"],
         "default": ["Cheese"]}
    ]},
    {"ask": [{"question": "Which title?", "header": "Title", "kind": "text", "default": "Untitled"}]},
    {"ask": [{"question": "Which password?", "header": "Password", "kind": "secret", "required": false}]},
    {"ask": [{"question": "Which file?", "header": "File", "kind": "file_path", "default": "README.md"}]},
    {"tool": {"name": "Bash", "category": "execute", "subject": "make test", "ask": true}},
    {"say": "I am done."}
]]"#;
/// A late answer has its time before the second question.
const TWO_QUESTIONS: &str = r#"[[
    {"ask": [{"name": "first", "question": "Shall I go on?", "header": "Go on", "kind": "confirm", "required": false}]},
    {"if": {"first": null}, "wait": 2},
    {"ask": [{"question": "Shall I go on now?", "header": "Go on", "kind": "confirm", "default": "yes"}]}
]]"#;
const NEWS: &str = r#"[[{"say": "It may rain."}, {"say": "I go on."}]]"#;
const TRY: &str = r#"[[{"say": "I try."}]]"#;

const EXIT: &str = "Only the terminal frame tells how a run ended: exit with 0 if it is run.completed, and with another \
                    code if it is run.failed or if there is none.";
const READ_ON: &str = "Read every frame until the terminal frame.";

/// `rule`: broken by a client that leaves early.
const fn plain(name: &'static str, about: &'static str, turns: &'static str, rule: &'static str) -> Dialogue {
    let (quirk, ending) = (Quirk::None, Ending::Completed(0));
    Dialogue { name, about, turns, quirk, ending, mistake: Mistake::WrongEnd, rule }
}

const fn novel(
    name: &'static str,
    about: &'static str,
    (part, novelty): (&'static str, &'static str),
    rule: &'static str,
) -> Dialogue {
    let quirk = Quirk::Novel(part, novelty);
    Dialogue { quirk, mistake: Mistake::StoppedAtUnknown, ..plain(name, about, NEWS, rule) }
}

const fn ends(ending: Ending, name: &'static str, about: &'static str, turns: &'static str) -> Dialogue {
    Dialogue { ending, mistake: Mistake::TrustedExitCode, ..plain(name, about, turns, EXIT) }
}

pub(super) const DIALOGUES: &[Dialogue] = &[
    plain("hello", "a message, and the end at once", r#"[[{"say": "Hello."}]]"#, READ_ON),
    plain(
        "questions",
        "questions of every kind, alone and in a group",
        QUESTIONS,
        "Answer or decline a question of each kind, and read on.",
    ),
    Dialogue {
        quirk: Quirk::Again,
        ..plain(
            "bad-answer",
            "an answer that does not fit: the question comes again with the same id",
            ONE_QUESTION,
            "A run.question with a greater `attempt` repeats the question: answer it again.",
        )
    },
    Dialogue {
        quirk: Quirk::Flood,
        ..plain("thinking", "many frames while a question is open", ONE_QUESTION, "Read on while your user thinks.")
    },
    Dialogue {
        quirk: Quirk::Expires,
        ..plain(
            "timeout",
            "a question that times out, and another one",
            TWO_QUESTIONS,
            "question_resolved withdraws the question: go on without an answer.",
        )
    },
    novel(
        "unknown-type",
        "a frame of an unknown type",
        (r#""type":"run.progress""#, r#""type":"run.weather""#),
        "Ignore frame types that you do not know.",
    ),
    novel(
        "unknown-kind",
        "progress of an unknown kind",
        (r#""kind":"text""#, r#""kind":"weather""#),
        "Ignore kinds of run.progress that you do not know.",
    ),
    novel(
        "unknown-field",
        "unknown fields in the envelope and the payload",
        (r#""payload":{"#, r#""weather":{"sky":"grey"},"payload":{"weather":[1,null],"#),
        "Ignore fields that you do not know.",
    ),
    Dialogue {
        quirk: Quirk::Slow,
        ..plain(
            "slow",
            "frames in pieces, cut inside a character",
            r#"[[{"say": "Grüße, 世界."}, {"say": "And again: 世界."}, {"say": "I am done."}]]"#,
            "A frame ends at its line feed, however many reads it takes.",
        )
    },
    Dialogue {
        quirk: Quirk::Huge,
        ..plain(
            "huge",
            "a frame as long as max_frame_bytes allows",
            r#"[[{"say": "I go on."}]]"#,
            "A frame may be as long as max_frame_bytes, by default 262144 bytes.",
        )
    },
    ends(
        Ending::Failed(0),
        "failed",
        "run.failed with exit code 0",
        r#"[[{"say": "I try."}, {"stderr": "This failure is part of the dialogue."}, {"exit": 1}]]"#,
    ),
    ends(Ending::Completed(1), "completed", "run.completed with exit code 1", TRY),
    ends(Ending::Vanished(0), "vanished", "exit code 0 without a terminal frame", TRY),
    Dialogue { mistake: Mistake::WrongEnd, ..ends(Ending::Killed, "killed", "a signal in the middle of a frame", TRY) },
    Dialogue {
        ending: Ending::Conversation,
        ..plain(
            "conversation",
            "a conversation, if the client holds one",
            r#"[[{"say": "What next?"}], [{"say": "I heard you."}]]"#,
            "After a turn, send a further prompt or the end.",
        )
    },
];

impl Dialogue {
    pub(super) fn named(name: &str) -> Option<&'static Dialogue> {
        DIALOGUES.iter().find(|dialogue| dialogue.name == name)
    }

    pub(super) fn asks(&self) -> bool {
        self.turns.contains("\"ask\"")
    }

    pub(super) fn scenario(&self) -> String {
        format!("{{\"about\": {}, \"turns\": {}}}\n", to_line(&self.about), self.turns)
    }
}
