//! Plays the agent's side of a run, turn by turn.

use super::lines::PlayerLine;
use super::player::{DemoStage, End, Player, TurnStop};
use super::scenario::Scenario;
use super::workflow::DemoPart;

/// `works`: whether a prompt of a workflow gets the work that it asks for instead.
pub(crate) fn play(scenario: &Scenario, works: bool, stage: &mut dyn DemoStage) -> End {
    let mut player = Player::new(stage);
    let Some(mut prompt) = player.prompt() else { return End::Exit(0) };
    player.send(PlayerLine::default().with("session", "true"));
    let mut working = false;
    loop {
        let part = if works { DemoPart::of(&prompt, player.stage) } else { None };
        // A correction in a workflow may be any prompt.
        working |= part.is_some();
        let outcome = match part {
            Some(part) => part.play(&mut player),
            None if working => DemoPart::Phase { number: 0, again: false }.play(&mut player),
            None => player.turn(scenario, prompt),
        };
        if let Err(TurnStop::Over(end)) = outcome {
            return end;
        }
        player.end_turn(outcome);
        match player.prompt() {
            Some(next) => prompt = next,
            None => return End::Exit(0),
        }
    }
}
