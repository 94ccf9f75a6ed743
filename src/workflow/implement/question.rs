//! A question of spektacular's own as the driver of a part of the run. It has no process: the run is the question.

use crate::agent::{AgentEvent, AskKey, Driver, Launch, Line, Program, Reply, Turn, TurnOver, text::FinalAnswer};
use crate::failure::Failure;
use crate::protocol::outbound::{AgentExit, Capabilities, Text};
use crate::protocol::question::{Answer, Ask, Asks, Kind, Place, Subject};
use crate::protocol::request::Settings;
use crate::protocol::words::{Category, Purpose, QuestionKind, StopReason};
use crossbeam_channel::Sender;

/// Asks one question.
pub(crate) struct QuestionStep {
    ask: Ask,
    reply: Sender<Reply>,
}

impl QuestionStep {
    /// `reply` gets the reply.
    pub(crate) fn new(ask: Ask, reply: Sender<Reply>) -> QuestionStep {
        QuestionStep { ask, reply }
    }
}

/// The question for consent. `plan`: the path of plan.md; `commands`: each with the id of its phase.
pub(crate) fn consent<'a>(plan: &str, commands: impl IntoIterator<Item = (&'a str, &'a str)>) -> Ask {
    let mut count = 0;
    let lines = commands.into_iter().map(|(phase, command)| {
        count += 1;
        format!("{phase}: {command}\n")
    });
    let detail = lines.collect::<String>().trim_end().to_owned();
    let commands = if count == 1 { "the command" } else { "the commands" };
    let title = format!("{commands} of {plan}");
    let text = format!("Run {title} to verify the work?");
    let locations = vec![Place { path: Text::from(plan), line: None }];
    let subject = Subject { category: Category::Execute, title: title.into(), locations, detail: detail.into() };
    Ask { header: "Verification".into(), ..Ask::permission(subject, text, None) }
}

/// The question for a manual check.
pub(crate) fn manual(text: &str) -> Ask {
    Ask::new(Purpose::Clarification, Kind::Confirm, "Manual check", text)
}

/// Whether a manual check is answered with Yes. `None`: nobody answered it.
pub(crate) fn checked(reply: &Reply) -> Option<bool> {
    match reply {
        Reply::Answer(Answer::Bool(yes)) => Some(*yes),
        Reply::Answer(Answer::One(_) | Answer::Many(_) | Answer::Text(_) | Answer::Null)
        | Reply::Allowed
        | Reply::Declined(_)
        | Reply::Denied(_)
        | Reply::NoUser => None,
    }
}

impl Driver for QuestionStep {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            questions: vec![QuestionKind::Confirm, QuestionKind::Select],
            resume: Some(false),
            deltas: Some(false),
            structured_output: Some(false),
            usage: Some(false),
        }
    }

    fn launch(&mut self, _settings: &Settings, turn: &mut Turn) -> Result<Launch, Failure> {
        let asks: Asks = std::iter::once(self.ask.clone()).collect();
        turn.events.push(AgentEvent::Ask { key: AskKey("question".into()), asks });
        Ok(Launch {
            program: Program::Myself,
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            send: Vec::new(),
            close_input: true,
            start_timeout: None,
            driver: "question",
            install: None,
        })
    }

    fn has_process(&self) -> bool {
        false
    }

    fn line(&mut self, _line: Line<'_>, _turn: &mut Turn) {}

    fn answer(&mut self, _key: &AskKey, replies: &[Reply], turn: &mut Turn) {
        if let Some(reply) = replies.first() {
            let _ = self.reply.try_send(reply.clone());
        }
        turn.events.push(AgentEvent::TurnOver(over()));
    }

    fn takes_turns(&self) -> bool {
        false
    }

    fn follow_up(&mut self, _prompt: &str, _turn: &mut Turn) {}

    fn interrupt(&mut self, _turn: &mut Turn) {}

    fn finish(&mut self, _turn: &mut Turn) {}

    fn exited(&mut self, _exit: AgentExit, _alive: bool, _stderr: &Text) -> TurnOver {
        over()
    }
}

fn over() -> TurnOver {
    let answer = FinalAnswer::from("The question is over.".to_owned());
    TurnOver::Completed { answer, structured: None, stop: StopReason::EndTurn }
}

#[cfg(test)]
mod tests {
    use super::{QuestionStep, checked, consent, manual};
    use crate::agent::{AgentEvent, AskKey, Driver, Reply, Turn};
    use crate::protocol::question::{ALLOW_ONCE, Answer, DENY};
    use crate::protocol::words::Category;
    use crossbeam_channel::bounded;

    #[test]
    fn consent_names_every_command_with_its_phase() {
        let ask = consent(".spektacular/plans/x/plan.md", [("P1", "make"), ("P2", "test -s a")]);
        let subject = ask.subject.clone().unwrap();
        assert_eq!((subject.category, subject.detail.shown()), (Category::Execute, "P1: make\nP2: test -s a"));
        assert_eq!(subject.locations[0].path.shown(), ".spektacular/plans/x/plan.md");
        assert_eq!((ask.header.shown(), &ask.default), ("Verification", &Some(Answer::One(DENY.into()))));
        assert!(ask.offers(ALLOW_ONCE) && ask.offers(DENY) && !ask.offers("allow_always"));
    }

    #[test]
    fn only_yes_and_no_answer_a_manual_check() {
        assert_eq!(manual("Is it friendly?").default, None);
        for (reply, answer) in [
            (Reply::Answer(Answer::Bool(true)), Some(true)),
            (Reply::Answer(Answer::Bool(false)), Some(false)),
            (Reply::Declined(None), None),
            (Reply::NoUser, None),
        ] {
            assert_eq!(checked(&reply), answer);
        }
    }

    #[test]
    fn the_reply_ends_the_part_of_the_run() {
        let (sender, receiver) = bounded(1);
        let mut question = QuestionStep::new(manual("Is it friendly?"), sender);
        let mut turn = Turn::default();
        question.answer(&AskKey("question".into()), &[Reply::NoUser], &mut turn);
        assert!(matches!(turn.events[..], [AgentEvent::TurnOver(_)]));
        assert_eq!(receiver.try_recv(), Ok(Reply::NoUser));
    }
}
