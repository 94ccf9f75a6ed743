//! The driver of a run that only begins a run of several parts: the agent's own driver checks the settings, and no
//! process starts.

use crate::agent::limit::{Keeper, Limit};
use crate::agent::{AgentEvent, AskKey, Driver, Launch, Line, Reply, Turn, TurnOver};
use crate::protocol::failure::Failure;
use crate::protocol::image::Image;
use crate::protocol::outbound::{AgentExit, Capabilities, Text};
use crate::protocol::request::Settings;

/// Wraps the driver of an agent that is not started.
pub(super) struct CheckOnlyDriver(pub(super) Box<dyn Driver>);

/// The text of the result, which is never shown.
const OPENED: &str = "The run is open.";

impl Driver for CheckOnlyDriver {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn launch(&mut self, settings: &Settings, turn: &mut Turn) -> Result<Launch, Failure> {
        let launch = self.0.launch(settings, turn)?;
        turn.events.push(AgentEvent::TurnOver(TurnOver::completed(OPENED.to_owned())));
        Ok(launch)
    }

    fn keeper(&self, limit: Limit) -> Keeper {
        self.0.keeper(limit)
    }

    fn has_process(&self) -> bool {
        false
    }

    fn asks_by(&self, settings: &Settings) -> Option<&'static str> {
        self.0.asks_by(settings)
    }

    fn line(&mut self, _line: Line<'_>, _turn: &mut Turn) {}

    fn answer(&mut self, _key: &AskKey, _replies: &[Reply], _turn: &mut Turn) {}

    fn follow_up(&mut self, _prompt: &str, _images: &[Image], _turn: &mut Turn) {}

    fn interrupt(&mut self, _turn: &mut Turn) {}

    fn finish(&mut self, _turn: &mut Turn) {}

    fn exited(&mut self, _exit: AgentExit, _alive: bool, _stderr: &Text) -> TurnOver {
        TurnOver::completed(OPENED.to_owned())
    }
}
