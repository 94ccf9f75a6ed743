//! A driver around the agent's own driver: removes the marker of a blocked agent from its text, if the prompt offers
//! this marker, and records whether the agent did something. At the end of the part it returns both, and the agent's
//! driver for a further turn.

use super::blocked::{BlockedCutter, cut};
use crate::agent::{
    AgentEvent, AskKey, CallKey, Driver, DriverOutput, Features, Launch, Line, MessageKey, Reply, TurnOver,
    text::FinalAnswer,
};
use crate::protocol::failure::Failure;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text};
use crate::protocol::request::Settings;
use crate::protocol::words::{Category, ToolState};
use crossbeam_channel::Sender;
use std::collections::{BTreeMap, HashMap};

/// The facts about a finished session.
pub(crate) struct Observation {
    /// Whether a tool that does something completed.
    pub(crate) acted: bool,
    /// The agent's reason if it cannot continue.
    pub(crate) blocked: Option<String>,
    /// Whether the agent wrote anything.
    pub(crate) heard: bool,
    /// The agent's driver.
    pub(crate) driver: Box<dyn Driver>,
}

impl Observation {
    /// The observation of two processes, one after the other.
    pub(super) fn then(self, later: Observation) -> Observation {
        let (acted, heard) = (self.acted || later.acted, self.heard || later.heard);
        Observation { acted, heard, blocked: later.blocked.or(self.blocked), driver: later.driver }
    }
}

/// The treatment of the marker of a blocked agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedMarker {
    /// The prompt offers the marker, so it is removed from the text.
    Cut,
    /// The prompt does not offer it, so the text stays as it is.
    Kept,
}

/// The agent's driver, observed.
pub(crate) struct Observer {
    /// `None` only while this is dropped.
    inner: Option<Box<dyn Driver>>,
    /// Whether [`Driver::launch`] begins a further turn of the driver's session.
    goes_on: bool,
    marker: BlockedMarker,
    cutters: BTreeMap<MessageKey, BlockedCutter>,
    /// The running tool calls.
    calls: HashMap<CallKey, Category>,
    heard: bool,
    acted: bool,
    blocked: Option<String>,
    over: Sender<Observation>,
}

impl Observer {
    /// `goes_on`: whether the launch begins a further turn, for a driver that starts one process per turn. `over` receives
    /// the observation.
    pub(crate) fn new(
        inner: Box<dyn Driver>,
        goes_on: bool,
        marker: BlockedMarker,
        over: Sender<Observation>,
    ) -> Observer {
        Observer {
            inner: Some(inner),
            goes_on,
            marker,
            cutters: BTreeMap::new(),
            calls: HashMap::new(),
            heard: false,
            acted: false,
            blocked: None,
            over,
        }
    }

    /// Calls the agent's driver and processes the events that it emits.
    fn observe(&mut self, out: &mut DriverOutput, ask: impl FnOnce(&mut dyn Driver, &mut DriverOutput)) {
        let Some(inner) = &mut self.inner else { return };
        let before = std::mem::take(&mut out.events);
        ask(inner.as_mut(), out);
        let new = std::mem::replace(&mut out.events, before);
        out.events.extend(new.into_iter().map(|event| self.see(event)));
    }

    fn see(&mut self, event: AgentEvent) -> AgentEvent {
        match event {
            AgentEvent::Text { message, piece, done, reasoning: false, parent: None }
                if self.marker == BlockedMarker::Cut =>
            {
                let cutter = self.cutters.entry(message).or_default();
                let piece = cutter.push(piece.unredacted(), done);
                if done {
                    self.message_ended(message);
                }
                AgentEvent::Text { message, piece: piece.into(), done, reasoning: false, parent: None }
            }
            AgentEvent::Withdrawn { message } => {
                self.cutters.remove(&message);
                AgentEvent::Withdrawn { message }
            }
            AgentEvent::Tool { call, category, name, title, locations, input, parent } => {
                self.calls.insert(call, category);
                AgentEvent::Tool { call, category, name, title, locations, input, parent }
            }
            AgentEvent::ToolOver { call, state, output, facts } => {
                let category = self.calls.remove(&call);
                self.acted |= state == ToolState::Completed && category.is_some_and(does_something);
                AgentEvent::ToolOver { call, state, output, facts }
            }
            AgentEvent::TurnOver(over) => AgentEvent::TurnOver(self.end(over)),
            other @ (AgentEvent::Text { .. }
            | AgentEvent::Session { .. }
            | AgentEvent::Partial { .. }
            | AgentEvent::Plan(_)
            | AgentEvent::PlanText(_)
            | AgentEvent::ModelCalled
            | AgentEvent::Usage(_)
            | AgentEvent::Changed { .. }
            | AgentEvent::Ask { .. }
            | AgentEvent::AskWithdrawn { .. }
            | AgentEvent::ResultRefused(_)
            | AgentEvent::McpServer { .. }
            | AgentEvent::AwaitsServers
            | AgentEvent::Retrying { .. }
            | AgentEvent::Background(_)
            | AgentEvent::TurnBegan(_)
            | AgentEvent::Warning(..)
            | AgentEvent::Unparsed
            | AgentEvent::Note(_)) => other,
        }
    }

    fn message_ended(&mut self, message: MessageKey) {
        let reason = self.cutters.remove(&message).and_then(|cutter| cutter.reason);
        self.blocked = self.blocked.take().or(reason);
    }

    /// Handles the end of a turn, whose answer usually repeats the last message.
    fn end(&mut self, over: TurnOver) -> TurnOver {
        match over {
            TurnOver::Completed { mut answer, structured, stop } if self.marker == BlockedMarker::Cut => {
                let (text, reason) = cut(answer.clone().into_text().unredacted());
                if reason.is_some() {
                    self.blocked = self.blocked.take().or(reason);
                    answer = FinalAnswer::from(text);
                }
                TurnOver::Completed { answer, structured, stop }
            }
            over @ (TurnOver::Completed { .. } | TurnOver::Failed(_) | TurnOver::Interrupted) => over,
        }
    }
}

/// Whether a completed tool of this category means that the agent did something.
fn does_something(category: Category) -> bool {
    match category {
        Category::Edit | Category::Delete | Category::Move | Category::Execute | Category::Mcp | Category::Other => {
            true
        }
        Category::Read | Category::Search | Category::Fetch | Category::Think | Category::Agent | Category::Mode => {
            false
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(driver) = self.inner.take() {
            let (heard, acted, blocked) = (self.heard, self.acted, self.blocked.take());
            let _ = self.over.try_send(Observation { heard, acted, blocked, driver });
        }
    }
}

/// Without an inner driver, which happens only during the drop, every method does nothing.
impl Driver for Observer {
    fn features(&self, settings: &Settings) -> Features {
        let none = || Features::of_step(Capabilities::only_asking(Vec::new()));
        self.inner.as_ref().map_or_else(none, |inner| inner.features(settings))
    }

    fn launch(&mut self, settings: &Settings, out: &mut DriverOutput) -> Result<Option<Launch>, Failure> {
        let gone = || {
            Failure::new(crate::protocol::failure::Code::InternalError, "The session cannot continue: start it again.")
        };
        if !self.goes_on {
            let Some(inner) = &mut self.inner else { return Err(gone()) };
            return inner.launch(settings, out);
        }
        self.observe(out, |inner, out| inner.follow_up(&settings.prompt, &[], out));
        out.relaunch.take().map(|launch| Some(*launch)).ok_or_else(gone)
    }

    fn line(&mut self, line: Line<'_>, out: &mut DriverOutput) {
        self.heard = true;
        self.observe(out, |inner, out| inner.line(line, out));
    }

    fn answer(&mut self, key: &AskKey, replies: &[Reply], out: &mut DriverOutput) {
        self.observe(out, |inner, out| inner.answer(key, replies, out));
    }

    fn takes_turns(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.takes_turns())
    }

    fn follow_up(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) {
        self.observe(out, |inner, out| inner.follow_up(prompt, images, out));
    }

    fn steer(&mut self, prompt: &str, images: &[Image], out: &mut DriverOutput) -> bool {
        let mut taken = false;
        self.observe(out, |inner, out| taken = inner.steer(prompt, images, out));
        taken
    }

    fn send_held(&mut self, out: &mut DriverOutput) {
        self.observe(out, |inner, out| inner.send_held(out));
    }

    fn interrupt_turn(&mut self, out: &mut DriverOutput) -> bool {
        let mut stays = false;
        self.observe(out, |inner, out| stays = inner.interrupt_turn(out));
        stays
    }

    fn interrupt(&mut self, out: &mut DriverOutput) {
        self.observe(out, |inner, out| inner.interrupt(out));
    }

    fn finish(&mut self, out: &mut DriverOutput) {
        self.observe(out, |inner, out| inner.finish(out));
    }

    fn held_bytes(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.held_bytes())
    }

    fn tree_gone(&mut self, exit: AgentExit, out: &mut DriverOutput) {
        // An unfinished message ends with the process.
        for (message, mut cutter) in std::mem::take(&mut self.cutters) {
            let piece = cutter.push("", true);
            self.blocked = self.blocked.take().or(cutter.reason);
            if !piece.is_empty() {
                let (done, reasoning, parent) = (false, false, None);
                let piece = Text::from(piece);
                out.events.push(AgentEvent::Text { message, piece, done, reasoning, parent });
            }
        }
        self.observe(out, |inner, out| inner.tree_gone(exit, out));
    }

    fn exited(&mut self, exit: AgentExit, alive: bool, stderr: &Text) -> TurnOver {
        let over = self.inner.as_mut().map_or(TurnOver::Interrupted, |inner| inner.exited(exit, alive, stderr));
        self.end(over)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockedMarker, Observer};
    use crate::agent::lines::LinesDriver;
    use crate::agent::text::FinalAnswer;
    use crate::agent::{AgentEvent, Base, CallKey, Driver, DriverOutput, Line, MessageKey, TurnOver};
    use crate::protocol::outbound::{AgentExit, ToolFacts};
    use crate::protocol::request::Options;
    use crate::protocol::words::{Category, StopReason, ToolState};
    use crossbeam_channel::{Receiver, bounded};
    use std::path::PathBuf;

    fn observer(resume_args: &[&str]) -> (Observer, Receiver<super::Observation>) {
        let resume_args = resume_args.iter().map(|arg| (*arg).to_owned()).collect();
        let (sender, receiver) = bounded(1);
        (
            Observer::new(
                Box::new(LinesDriver::new(Base::command("x"), Vec::new(), resume_args)),
                false,
                BlockedMarker::Cut,
                sender,
            ),
            receiver,
        )
    }

    fn text(key: u64, piece: &str, done: bool) -> AgentEvent {
        AgentEvent::Text { message: MessageKey(key), piece: piece.into(), done, reasoning: false, parent: None }
    }

    fn shown(events: &[AgentEvent]) -> String {
        let piece = |event: &AgentEvent| match event {
            AgentEvent::Text { piece, .. } => piece.shown().to_owned(),
            other => panic!("{other:?}"),
        };
        events.iter().map(piece).collect()
    }

    #[test]
    fn the_marker_is_cut_from_messages_and_from_the_answer() {
        let (mut observer, over) = observer(&[]);
        let events = [text(1, "I can", false), text(1, "not.<!--BLOCKED: no", false), text(1, " key-->", true)];
        let events = events.map(|event| observer.see(event));
        assert_eq!(shown(&events), "I cannot.");
        let answer = FinalAnswer::from("I cannot.<!--BLOCKED: no key-->".to_owned());
        let done = TurnOver::Completed { answer, structured: None, stop: StopReason::EndTurn };
        let TurnOver::Completed { answer, .. } = observer.end(done) else { panic!("another end") };
        assert!(!answer.is_cut() && answer.into_text().shown() == "I cannot.");
        drop(observer);
        assert_eq!(over.recv().unwrap().blocked.as_deref(), Some("no key"));
    }

    #[test]
    fn a_withdrawn_message_does_not_block_and_an_open_one_ends_with_the_process() {
        let (mut observer, over) = observer(&[]);
        observer.see(text(1, "<!--BLOCKED: a-->", false));
        observer.see(AgentEvent::Withdrawn { message: MessageKey(1) });
        observer.see(text(2, "<!--BLOCKED: b", false));
        let mut out = DriverOutput::default();
        observer.tree_gone(AgentExit { code: Some(0), signal: None }, &mut out);
        assert_eq!(shown(&out.events), "<!--BLOCKED: b");
        drop(observer);
        assert_eq!(over.recv().unwrap().blocked, None);
    }

    #[test]
    fn only_a_completed_tool_that_changes_something_counts_as_an_action() {
        for (category, state, acted) in [
            (Category::Edit, ToolState::Completed, true),
            (Category::Execute, ToolState::Completed, true),
            (Category::Execute, ToolState::Denied, false),
            (Category::Edit, ToolState::Failed, false),
            (Category::Read, ToolState::Completed, false),
        ] {
            let (mut observer, over) = observer(&[]);
            let (call, title) = (CallKey::of("c"), None);
            observer.see(AgentEvent::Tool {
                call,
                category,
                name: String::new(),
                title,
                locations: Vec::new(),
                input: None,
                parent: None,
            });
            observer.see(AgentEvent::ToolOver { call, state, output: None, facts: ToolFacts::default() });
            drop(observer);
            assert_eq!(over.recv().unwrap().acted, acted, "{category:?} {state:?}");
        }
    }

    #[test]
    fn the_observer_returns_the_driver_for_a_further_turn() {
        let settings = |prompt: &str| Options::default().resolve(prompt.into(), "x".into(), PathBuf::from("/w"));
        let (mut first, over) = observer(&["--continue", "{prompt}"]);
        first.launch(&settings("one"), &mut DriverOutput::default()).unwrap();
        first.line(Line::Text("done".into()), &mut DriverOutput::default());
        first.exited(AgentExit { code: Some(0), signal: None }, true, &"".into());
        drop(first);
        let driver = over.recv().unwrap().driver;
        assert!(driver.takes_turns());
        let mut next = Observer::new(driver, true, BlockedMarker::Cut, bounded(1).0);
        let launch = next.launch(&settings("two"), &mut DriverOutput::default()).unwrap().unwrap();
        assert_eq!(launch.args, ["--continue", "two"]);
    }
}
