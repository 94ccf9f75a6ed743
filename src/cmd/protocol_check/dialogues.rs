//! The built-in dialogues.

use super::mistakes::Mistake;

/// A dialogue between the played program and a client.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) name: &'static str,
    /// A line for people.
    pub(super) about: &'static str,
    pub(super) steps: &'static [DialogueStep],
    pub(super) ending: Ending,
    /// The mistake of a client that leaves early, or whose exit code does not match the run.
    pub(super) mistake: Mistake,
    /// The rule that such a client breaks, as a sentence.
    pub(super) rule: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DialogueStep {
    /// A message of the agent.
    Say(&'static str),
    /// A message whose frame comes in pieces, with pauses.
    Slowly(&'static str),
    /// A frame of the greatest length.
    Huge,
    Novelty(Novelty),
    /// Questions of one group, as a question marker has them.
    Ask(&'static [&'static str], Course),
    /// A question for a permission.
    Permission,
}

/// Something that this version does not have, and a later one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    Type,
    Kind,
    Field,
}

/// The course of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Plain,
    /// The first answer does not fit, whatever it is.
    Again,
    /// Frames that no pipe can hold come while the question is open.
    Flood,
    /// The question times out soon.
    Expires,
}

/// The end of the run, with the exit code.
#[derive(Clone, Copy, Debug)]
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

const CONFIRM: &str = r#"{"question":"Shall I go on?","header":"Go on","kind":"confirm","default":"yes"}"#;
const EXIT: &str = "Only the terminal frame tells how a run ended: exit with 0 if it is run.completed, and with another \
                    code if it is run.failed or if there is none.";
const READ_ON: &str = "Read every frame until the terminal frame.";

/// A dialogue whose run completes. `rule`: broken by a client that leaves early.
const fn plain(
    name: &'static str,
    about: &'static str,
    steps: &'static [DialogueStep],
    rule: &'static str,
) -> Dialogue {
    Dialogue { name, about, steps, ending: Ending::Completed(0), mistake: Mistake::WrongEnd, rule }
}

/// All dialogues, in order.
pub(super) const DIALOGUES: &[Dialogue] = &[
    plain("hello", "a message, and the end at once", &[DialogueStep::Say("Hello.")], READ_ON),
    plain(
        "questions",
        "questions of every kind, alone and in a group",
        &[
            DialogueStep::Ask(&[CONFIRM], Course::Plain),
            DialogueStep::Ask(
                &[
                    r#"{"question":"Which colour?","header":"Colour","kind":"select","options":["Red","Green"],"default":"Red"}"#,
                    r#"{"question":"Which toppings?","header":"Toppings","kind":"multi-select","options":["Cheese","Olives"],"default":["Cheese"]}"#,
                ],
                Course::Plain,
            ),
            DialogueStep::Ask(
                &[r#"{"question":"Which title?","header":"Title","kind":"text","default":"Untitled"}"#],
                Course::Plain,
            ),
            DialogueStep::Ask(
                &[r#"{"question":"Which password?","header":"Password","kind":"secret","required":false}"#],
                Course::Plain,
            ),
            DialogueStep::Ask(
                &[r#"{"question":"Which file?","header":"File","kind":"file_path","default":"README.md"}"#],
                Course::Plain,
            ),
            DialogueStep::Permission,
        ],
        "Answer or decline a question of each kind, and read on.",
    ),
    plain(
        "bad-answer",
        "an answer that does not fit: the question comes again with the same id",
        &[DialogueStep::Ask(&[CONFIRM], Course::Again)],
        "A run.question with a greater `attempt` repeats the question: answer it again.",
    ),
    plain(
        "thinking",
        "many frames while a question is open",
        &[DialogueStep::Ask(&[CONFIRM], Course::Flood)],
        "Read on while your user thinks.",
    ),
    plain(
        "timeout",
        "a question that times out, and another one",
        &[DialogueStep::Ask(&[CONFIRM], Course::Expires), DialogueStep::Ask(&[CONFIRM], Course::Plain)],
        "question_resolved withdraws the question: go on without an answer.",
    ),
    Dialogue {
        mistake: Mistake::StoppedAtUnknown,
        ..plain(
            "unknown-type",
            "a frame of an unknown type",
            &[DialogueStep::Novelty(Novelty::Type), DialogueStep::Say("I go on.")],
            "Ignore frame types that you do not know.",
        )
    },
    Dialogue {
        mistake: Mistake::StoppedAtUnknown,
        ..plain(
            "unknown-kind",
            "progress of an unknown kind",
            &[DialogueStep::Novelty(Novelty::Kind), DialogueStep::Say("I go on.")],
            "Ignore kinds of run.progress that you do not know.",
        )
    },
    Dialogue {
        mistake: Mistake::StoppedAtUnknown,
        ..plain(
            "unknown-field",
            "unknown fields in the envelope and the payload",
            &[DialogueStep::Novelty(Novelty::Field), DialogueStep::Say("I go on.")],
            "Ignore fields that you do not know.",
        )
    },
    plain(
        "slow",
        "frames in pieces, cut inside a character",
        &[DialogueStep::Slowly("Grüße, 世界."), DialogueStep::Slowly("And again: 世界.")],
        "A frame ends at its line feed, however many reads it takes.",
    ),
    plain(
        "huge",
        "a frame as long as max_frame_bytes allows",
        &[DialogueStep::Huge, DialogueStep::Say("I go on.")],
        "A frame may be as long as max_frame_bytes, by default 262144 bytes.",
    ),
    Dialogue {
        ending: Ending::Failed(0),
        mistake: Mistake::TrustedExitCode,
        ..plain("failed", "run.failed with exit code 0", &[DialogueStep::Say("I try.")], EXIT)
    },
    Dialogue {
        ending: Ending::Completed(1),
        mistake: Mistake::TrustedExitCode,
        ..plain("completed", "run.completed with exit code 1", &[DialogueStep::Say("I try.")], EXIT)
    },
    Dialogue {
        ending: Ending::Vanished(0),
        mistake: Mistake::TrustedExitCode,
        ..plain("vanished", "exit code 0 without a terminal frame", &[DialogueStep::Say("I try.")], EXIT)
    },
    Dialogue {
        ending: Ending::Killed,
        ..plain("killed", "a signal in the middle of a frame", &[DialogueStep::Say("I try.")], EXIT)
    },
    Dialogue {
        ending: Ending::Conversation,
        ..plain(
            "conversation",
            "a conversation, if the client holds one",
            &[DialogueStep::Say("What next?")],
            "After a turn, send a further prompt or the end.",
        )
    },
];

impl Dialogue {
    /// The dialogue with this name.
    pub(super) fn named(name: &str) -> Option<&'static Dialogue> {
        DIALOGUES.iter().find(|dialogue| dialogue.name == name)
    }
    /// Whether a question times out so soon that the client need not answer it.
    pub(super) fn has_short_question(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, DialogueStep::Ask(_, Course::Expires)))
    }
}
