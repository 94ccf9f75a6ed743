//! A scenario as a person reads it.

use super::scenario::{
    CallWork, Condition, NamedQuestion, PlayedCall, Scenario, ScenarioStep, SpokenText, StepAction, ToolEnd,
};
use crate::agent::title;
use crate::json::{Object, Raw};
use crate::protocol::words::Category;
use std::fmt::Write;

/// The maximum length of a text that is shown whole, in characters.
const SHOWN: usize = 400;

impl Scenario {
    pub(crate) fn script(&self, name: &str) -> String {
        let mut out = format!("{name}: {}\n", self.about);
        for (at, turn) in self.turns.iter().enumerate() {
            let _ = match self.turns.len() {
                1 => writeln!(out),
                _ => writeln!(out, "\nTurn {}", at + 1),
            };
            for step in turn {
                let text = indented(&(modifiers(step) + &action(&step.action)));
                let _ = writeln!(out, "  {text}");
            }
        }
        out
    }
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

fn modifiers(step: &ScenarioStep) -> String {
    let times = if step.times == 1 { String::new() } else { format!("{} times: ", step.times) };
    conditions(&step.conditions) + &times
}

fn conditions(all: &[Condition]) -> String {
    let answer = |answer: &Option<String>| answer.clone().unwrap_or_else(|| "not answered".into());
    let one = |Condition { name, any_of, negated }: &Condition| {
        let answers = any_of.iter().map(answer).collect::<Vec<_>>().join(" or ");
        format!("{} {{{name}}} is {answers}: ", if *negated { "unless" } else { "if" })
    };
    all.iter().map(one).collect()
}

fn action(action: &StepAction) -> String {
    match action {
        StepAction::Say { words, thought, parent } => {
            let verb = if *thought { "think" } else { "say" };
            format!("{}{verb}: {}", of(parent.as_deref()), text(words))
        }
        StepAction::Ask(questions) => match questions.as_slice() {
            [one] => format!("ask {}", question(one)),
            many => many.iter().fold("ask together:".into(), |out, one| out + "\n" + &question(one)),
        },
        StepAction::Calls(calls) => match calls.as_slice() {
            [one] => call(one),
            many => many.iter().fold("together:".into(), |out, one| out + "\n" + &call(one)),
        },
        StepAction::End(name, end) => format!("end {name}{}", ended(end)),
        StepAction::Plan(entries) => {
            let entries = Object::parse(&format!("{{\"plan\":{entries}}}")).map(|whole| {
                let entry = |entry: Object<'_>| {
                    let field = |name: &str| entry.string(name).unwrap_or_default();
                    format!("\n[{}] {}", field("status"), field("text"))
                };
                whole.objects("plan").map(entry).collect::<String>()
            });
            format!("plan:{}", entries.unwrap_or_default())
        }
        StepAction::Usage(usage) => format!("usage: {usage}"),
        StepAction::Retry(text) => format!("retry: {text}"),
        StepAction::Result(result) => format!("result: {}", cut(result)),
        StepAction::Fail(failure) => format!("fail: {failure}"),
        StepAction::Wait(limit) => format!("wait {} s", limit.as_secs_f64()),
        StepAction::AwaitSteer(limit) => {
            format!("wait for a prompt that steers, at most {} s -> {{steer}}", limit.as_secs_f64())
        }
        StepAction::Stderr(text) => format!("stderr: {text}"),
        StepAction::Exit(code) => format!("exit {code}"),
        StepAction::Hang => "hang".into(),
    }
}

fn of(parent: Option<&str>) -> String {
    parent.map(|parent| format!("(sub-agent of {parent}) ")).unwrap_or_default()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

fn text(words: &SpokenText) -> String {
    let times = if words.times == 1 { String::new() } else { format!(" ({} times)", words.times) };
    cut(&words.pieces.join("|")) + &times
}

fn question(question: &NamedQuestion) -> String {
    let Some(form) = Object::parse(&question.form) else { return String::new() };
    let mut out =
        format!("({}) {}", form.str("kind").unwrap_or("text".into()), form.str("question").unwrap_or_default());
    for raw in form.array("options") {
        let label = raw.string().or_else(|| raw.object()?.string("label")).unwrap_or_default();
        let _ = write!(out, "\n  - {label}");
    }
    let mut rules: Vec<String> = Vec::new();
    rules.extend(form.string("default").map(|default| format!("default {default}")));
    rules.extend((form.bool("required") == Some(false)).then(|| "optional".to_owned()));
    rules.extend(form.raw("validation").map(Raw::get).map(|rules| format!("validation {rules}")));
    if !rules.is_empty() {
        let _ = write!(out, "\n  ({})", rules.join(", "));
    }
    if let Some(name) = &question.name {
        let _ = write!(out, "\n  -> {{{name}}}");
    }
    out
}

fn call(call: &PlayedCall) -> String {
    let answer = call.name.as_ref().map(|name| format!(" -> {{{name}}}")).unwrap_or_default();
    let begin = conditions(&call.conditions) + &of(call.parent.as_deref());
    match &call.work {
        CallWork::Tool(tool) => {
            let head = Object::parse(&tool.head);
            let field = |name: &str| head.as_ref().and_then(|head| head.string(name)).unwrap_or_default();
            let category = Category::from_word(&field("category")).unwrap_or(Category::Other);
            let title = title(category, &field("name"), &field("subject"));
            let asks = if tool.asks { ", if allowed" } else { "" };
            let end = tool.end.as_ref().map_or_else(|| " (stays open)".to_owned(), ended);
            format!("{begin}{title}{asks}{end}{answer}")
        }
        CallWork::Change(change) => match &change.content {
            Some(content) => format!("{begin}write {}, if allowed{answer}:\n{}", change.path, text(content)),
            None => format!("{begin}delete {}, if allowed{answer}", change.path),
        },
    }
}

fn ended(end: &ToolEnd) -> String {
    let state = if end.failed { " (failed)" } else { "" };
    let code = end.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
    let output = end.output.as_ref().map(|output| format!(": {}", text(output))).unwrap_or_default();
    format!("{state}{code}{output}")
}
