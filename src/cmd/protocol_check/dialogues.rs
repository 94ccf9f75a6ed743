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

/// All dialogues, in order.
pub(super) const DIALOGUES: &[Dialogue] = &[
    Dialogue {
        name: "hello",
        about: "a message, and the end at once",
        steps: &[DialogueStep::Say("Hello.")],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: READ_ON,
    },
    Dialogue {
        name: "questions",
        about: "questions of every kind, alone and in a group",
        steps: &[
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
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "Answer or decline a question of each kind, and read on.",
    },
    Dialogue {
        name: "bad-answer",
        about: "an answer that does not fit: the question comes again with the same id",
        steps: &[DialogueStep::Ask(&[CONFIRM], Course::Again)],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "A run.question with a greater `attempt` repeats the question: answer it again.",
    },
    Dialogue {
        name: "thinking",
        about: "many frames while a question is open",
        steps: &[DialogueStep::Ask(&[CONFIRM], Course::Flood)],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "Read on while your user thinks.",
    },
    Dialogue {
        name: "timeout",
        about: "a question that times out, and another one",
        steps: &[DialogueStep::Ask(&[CONFIRM], Course::Expires), DialogueStep::Ask(&[CONFIRM], Course::Plain)],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "question_resolved withdraws the question: go on without an answer.",
    },
    Dialogue {
        name: "unknown-type",
        about: "a frame of an unknown type",
        steps: &[DialogueStep::Novelty(Novelty::Type), DialogueStep::Say("I go on.")],
        ending: Ending::Completed(0),
        mistake: Mistake::StoppedAtUnknown,
        rule: "Ignore frame types that you do not know.",
    },
    Dialogue {
        name: "unknown-kind",
        about: "progress of an unknown kind",
        steps: &[DialogueStep::Novelty(Novelty::Kind), DialogueStep::Say("I go on.")],
        ending: Ending::Completed(0),
        mistake: Mistake::StoppedAtUnknown,
        rule: "Ignore kinds of run.progress that you do not know.",
    },
    Dialogue {
        name: "unknown-field",
        about: "unknown fields in the envelope and the payload",
        steps: &[DialogueStep::Novelty(Novelty::Field), DialogueStep::Say("I go on.")],
        ending: Ending::Completed(0),
        mistake: Mistake::StoppedAtUnknown,
        rule: "Ignore fields that you do not know.",
    },
    Dialogue {
        name: "slow",
        about: "frames in pieces, cut inside a character",
        steps: &[DialogueStep::Slowly("Grüße, 世界."), DialogueStep::Slowly("And again: 世界.")],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "A frame ends at its line feed, however many reads it takes.",
    },
    Dialogue {
        name: "huge",
        about: "a frame as long as max_frame_bytes allows",
        steps: &[DialogueStep::Huge, DialogueStep::Say("I go on.")],
        ending: Ending::Completed(0),
        mistake: Mistake::WrongEnd,
        rule: "A frame may be as long as max_frame_bytes, by default 262144 bytes.",
    },
    Dialogue {
        name: "failed",
        about: "run.failed with exit code 0",
        steps: &[DialogueStep::Say("I try.")],
        ending: Ending::Failed(0),
        mistake: Mistake::TrustedExitCode,
        rule: EXIT,
    },
    Dialogue {
        name: "completed",
        about: "run.completed with exit code 1",
        steps: &[DialogueStep::Say("I try.")],
        ending: Ending::Completed(1),
        mistake: Mistake::TrustedExitCode,
        rule: EXIT,
    },
    Dialogue {
        name: "vanished",
        about: "exit code 0 without a terminal frame",
        steps: &[DialogueStep::Say("I try.")],
        ending: Ending::Vanished(0),
        mistake: Mistake::TrustedExitCode,
        rule: EXIT,
    },
    Dialogue {
        name: "killed",
        about: "a signal in the middle of a frame",
        steps: &[DialogueStep::Say("I try.")],
        ending: Ending::Killed,
        mistake: Mistake::WrongEnd,
        rule: EXIT,
    },
    Dialogue {
        name: "conversation",
        about: "a conversation, if the client holds one",
        steps: &[DialogueStep::Say("What next?")],
        ending: Ending::Conversation,
        mistake: Mistake::WrongEnd,
        rule: "After a turn, send a further prompt or the end.",
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
