//! A part of the run without a process: one question of spektacular's own, or the wait for work in a thread.

use crate::agent::{AgentEvent, AskKey, Driver, DriverOutput, Features, Launch, Line, Reply, TurnOver};
use crate::protocol::failure::Failure;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text};
use crate::protocol::question::{Ask, Asks};
use crate::protocol::request::Settings;
use crate::protocol::words::QuestionKind;
use crossbeam_channel::Sender;

/// The text of the result, which is never shown.
const OVER: &str = "The step is over.";

/// The driver of a part without a process.
pub(crate) enum OwnStep {
    /// Asks a question. The channel gets the reply, which ends the step.
    Asks(Box<Ask>, Sender<Reply>),
    /// Waits until [`Event::TaskOver`](crate::run::Event::TaskOver) ends the step.
    Waits,
}

impl Driver for OwnStep {
    fn features(&self, _settings: &Settings) -> Features {
        Features::of_step(Capabilities::only_asking(vec![QuestionKind::Confirm, QuestionKind::Select]))
    }

    fn launch(&mut self, _settings: &Settings, out: &mut DriverOutput) -> Result<Option<Launch>, Failure> {
        if let OwnStep::Asks(ask, _) = self {
            let asks: Asks = std::iter::once((**ask).clone()).collect();
            out.events.push(AgentEvent::Ask { key: AskKey("question".into()), asks, call: None });
        }
        Ok(None)
    }

    fn line(&mut self, _line: Line<'_>, _out: &mut DriverOutput) {}

    fn answer(&mut self, _key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        if let (OwnStep::Asks(_, sender), Some(reply)) = (&self, replies.first()) {
            let _ = sender.try_send(reply.clone());
        }
        out.events.push(AgentEvent::TurnOver(TurnOver::completed(OVER.to_owned())));
    }

    fn takes_turns(&self) -> bool {
        false
    }

    fn follow_up(&mut self, _prompt: &str, _images: &[Image], _out: &mut DriverOutput) {}

    fn interrupt(&mut self, _out: &mut DriverOutput) {}

    fn finish(&mut self, _out: &mut DriverOutput) {}

    fn exited(&mut self, _exit: AgentExit, _alive: bool, _stderr: &Text) -> TurnOver {
        TurnOver::completed(OVER.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::OwnStep;
    use crate::agent::{AgentEvent, AskKey, Driver, DriverOutput, Reply};
    use crate::protocol::question::{Ask, Kind};
    use crate::protocol::words::Purpose;
    use crossbeam_channel::bounded;

    #[test]
    fn the_reply_ends_the_part_of_the_run() {
        let (sender, receiver) = bounded(1);
        let ask = Ask::new(Purpose::Clarification, Kind::Confirm, "Manual check", "Is it friendly?");
        let mut question = OwnStep::Asks(Box::new(ask), sender);
        let mut out = DriverOutput::default();
        question.answer(&AskKey("question".into()), &[Reply::NoUser], &mut out);
        assert!(matches!(out.events[..], [AgentEvent::TurnOver(_)]));
        assert_eq!(receiver.try_recv(), Ok(Reply::NoUser));
    }
}
