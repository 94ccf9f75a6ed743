//! An agent whose lines name the events that its driver reports.

use super::Duration;
use super::acts::{Asked, Lives};
use crossbeam_channel::Receiver;
use spektacular::agent::limit::Keeper;
use spektacular::agent::{
    AgentEvent as Event, AskKey, CallKey, Driver, DriverOutput, Features, LEAVE, Launch, Line, MessageKey, Program,
    Reply, TurnOver, text::FinalAnswer,
};
use spektacular::protocol::failure::{Code, Failure};
use spektacular::protocol::ids::SessionId;
use spektacular::protocol::image::Image;
use spektacular::protocol::outbound::{AgentExit, Capabilities, Text, ToolFacts};
use spektacular::protocol::question::{Answer, Ask, Choice, Choices, Kind, Place, Subject};
use spektacular::protocol::request::Settings;
use spektacular::protocol::scope::Scope;
use spektacular::protocol::words::{Category, Purpose, StopReason, ToolState, TurnOrigin};

/// A line from the puppet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Text,
    /// A question marker.
    Marker,
    /// The beginning or the end of a tool call.
    Tool(u64),
    ToolOver(u64),
    /// Asks a group of questions. The number identifies the group.
    Ask(u64, Vec<Asked>),
    Withdraw(u64),
    Result,
    Failure,
    Interrupted,
    Garbage,
    /// Opens the session.
    Session,
    /// Whether work is pending in the background.
    Background(bool),
    /// A turn begins: the agent's own, or that of a prompt that it has.
    Began(bool),
}

pub(crate) struct Puppet {
    pub(crate) lives: Lives,
    /// The line that has this meaning.
    pub(crate) next: Receiver<Said>,
    messages: u64,
}

const MARKER: &str = "<!--QUESTION:{\"questions\":[{\"question\":\"Q\",\"options\":[{\"label\":\"a\"}]}]}-->";

impl Puppet {
    pub(crate) fn new(lives: Lives, next: Receiver<Said>) -> Puppet {
        Puppet { lives, next, messages: 0 }
    }

    fn text(&mut self, text: &str) -> Event {
        self.messages += 1;
        let message = MessageKey(self.messages);
        Event::Text { message, piece: text.into(), done: true, reasoning: false, parent: None }
    }
}

fn launch() -> Launch {
    Launch::new(Program::Command("puppet".into()), "puppet")
}

fn completed() -> TurnOver {
    let answer = FinalAnswer::from("done".to_owned());
    TurnOver::Completed { answer, structured: None, stop: StopReason::EndTurn }
}

/// A question of this form.
pub(crate) fn ask(asked: Asked) -> Ask {
    let choice = |name: &str| Choice { value: name.into(), label: name.into(), description: None };
    let select = || Kind::Select {
        choices: Choices::new([choice("a"), choice("b")]).expect("two options"),
        multiple: false,
        allow_other: false,
    };
    match asked {
        Asked::Permission => {
            let subject = Subject {
                category: Category::Edit,
                title: "Edit".into(),
                locations: vec![Place { path: "a".into(), line: None }],
                detail: "".into(),
                call_id: None,
            };
            Ask::permission(subject, "Edit?", Scope::of_request(Category::Edit, None, None))
        }
        Asked::Default => {
            Ask { default: Some(Answer::One("a".into())), ..Ask::new(Purpose::Clarification, select(), "H", "Which?") }
        }
        Asked::Optional => Ask { required: false, ..Ask::new(Purpose::Input, select(), "H", "Perhaps?") },
        Asked::Required => Ask::new(Purpose::Input, select(), "H", "Which?"),
    }
}

impl Driver for Puppet {
    fn features(&self, _: &Settings) -> Features {
        let capabilities = Capabilities { resume: Some(false), ..Capabilities::usual(Vec::new()) };
        Features {
            listens: self.lives.listens,
            leave_time: if self.lives.leaves { LEAVE } else { Duration::ZERO },
            process_per_turn: self.lives.per_turn,
            ..Features::usual(capabilities, |_| Keeper::Run)
        }
    }

    fn launch(&mut self, _: &Settings, _: &mut DriverOutput) -> Result<Launch, Failure> {
        Ok(launch())
    }

    fn line(&mut self, _: Line<'_>, turn: &mut DriverOutput) {
        let event = match self.next.try_recv().expect("a line has a meaning") {
            Said::Text => self.text("text"),
            Said::Marker => self.text(MARKER),
            Said::Tool(call) => Event::Tool {
                call: CallKey::of(&call.to_string()),
                // Denied or not, such a call stops no run.
                category: Category::Fetch,
                name: "puppet".to_owned(),
                title: None,
                locations: Vec::new(),
                input: None,
                parent: None,
            },
            Said::ToolOver(call) => Event::ToolOver {
                call: CallKey::of(&call.to_string()),
                state: ToolState::Completed,
                output: None,
                facts: ToolFacts::default(),
            },
            Said::Ask(key, asks) => {
                Event::Ask { key: AskKey(key.to_string()), asks: asks.into_iter().map(ask).collect(), call: None }
            }
            Said::Withdraw(key) => Event::AskWithdrawn { key: AskKey(key.to_string()) },
            Said::Result => Event::TurnOver(completed()),
            Said::Failure => Event::TurnOver(TurnOver::Failed(Failure::new(Code::RateLimited, "Later."))),
            Said::Interrupted => Event::TurnOver(TurnOver::Interrupted),
            Said::Garbage => Event::Unparsed,
            Said::Session => Event::Session { id: SessionId::new("s".to_owned()), version: None, model: None },
            Said::Background(works) => Event::Background(works.then(|| Text::from("work")).into_iter().collect()),
            Said::Began(own) => Event::TurnBegan(if own { TurnOrigin::Agent } else { TurnOrigin::Prompt }),
        };
        turn.events.push(event);
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], turn: &mut DriverOutput) {
        turn.send.push(format!("answer {} {}", key.0, replies.len()));
    }

    fn follow_up(&mut self, _: &str, _: &[Image], turn: &mut DriverOutput) {
        match self.lives.per_turn {
            true => turn.relaunch = Some(Box::new(launch())),
            false => turn.send.push("follow up".into()),
        }
    }

    fn steer(&mut self, _: &str, _: &[Image], turn: &mut DriverOutput) -> bool {
        turn.send.extend(self.lives.steers.then(|| "steer".into()));
        self.lives.steers
    }

    fn interrupt_turn(&mut self, turn: &mut DriverOutput) -> bool {
        turn.send.extend(self.lives.stays.then(|| "interrupt turn".into()));
        self.lives.stays
    }

    fn interrupt(&mut self, turn: &mut DriverOutput) {
        turn.send.push("interrupt".into());
    }

    fn finish(&mut self, turn: &mut DriverOutput) {
        turn.send.push("finish".into());
        turn.close_input = true;
    }

    fn exited(&mut self, _: AgentExit, _: bool, _: &Text) -> TurnOver {
        match self.lives.per_turn {
            true => completed(),
            false => TurnOver::Failed(Failure::new(Code::AgentExited, "It ended.")),
        }
    }
}
