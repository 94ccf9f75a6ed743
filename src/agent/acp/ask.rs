//! The agent's requests to the user and their answers: permissions and forms.

use super::call::{Call, Diff, PROSE, texts};
use super::{Acp, PERMISSION, modes};
use crate::agent::detail::{join, rest};
use crate::agent::form::{self, ElicitationForm};
use crate::agent::{DriverOutput, Reply, edits, rpc};
use crate::json::{Object, Raw, to_line};
use crate::protocol::question::{Ask, Asks, Place, Subject, one};
use crate::protocol::scope::Scope;
use crate::protocol::text::Text;
use crate::protocol::words::Category;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

#[derive(Debug)]
pub(super) enum AcpRequest {
    /// Permission for a tool call, with the ids of the options for this one request. Lasting options are never chosen:
    /// the agent decides how far they reach, and would not ask again.
    Permission {
        call: String,
        once: Option<String>,
        reject: Option<String>,
    },
    ElicitationForm(ElicitationForm),
    /// Questions in the form of a permission, with the id of the option that passes the answers on.
    Questions {
        submit: Option<String>,
    },
}

#[derive(Debug)]
pub(super) struct EarlyRequest {
    pub(super) id: String,
    line: String,
}

impl Acp {
    pub(super) fn permission(&mut self, params: &Object<'_>, out: &mut DriverOutput) -> Option<(AcpRequest, Asks)> {
        let about = params.object("toolCall")?;
        let mut confirmed = self.confirmed(&about);
        let (only, several) = (confirmed.pop().filter(|_| confirmed.is_empty()), !confirmed.is_empty());
        let known = only.clone().map(Cow::Owned).or_else(|| about.str("toolCallId"));
        let known = known.and_then(|id| self.calls.get(&*id));
        let lost = known.is_some_and(|call| call.input_is_lost);
        let earlier = known.map(|call| call.input.clone()).unwrap_or_default();
        let mut places = known.map(|call| call.locations.clone()).unwrap_or_default();
        let id = match only {
            Some(call) => Cow::Owned(call),
            None => self.learn(&about)?,
        };
        if let Some(call) = self.calls.get_mut(&*id) {
            // The request's own input may lack the directory, which a second request for the same call must show too.
            call.asked = true;
            let keeps = is_command(&earlier);
            call.input_is_asked = !keeps && about.raw("rawInput").is_some();
            if keeps {
                call.input.clone_from(&earlier);
                if self.profile.inputs_follow {
                    call.take_look(&self.cwd);
                }
            }
        }
        self.called = true;
        self.end_message(out);
        if !self.calls.get(&*id)?.own {
            self.show(&id, out);
        }
        let call = self.calls.get(&*id)?;
        let title = call.title();
        let text = format!("Allow {title}?");
        // The request may describe a part of the action, which still concerns the files known before.
        let now = self.places(&about, call);
        places.retain(|place| call.category().changes_files() && !now.contains(place));
        places.splice(0..0, now);
        let detail = self.detail(&about, &earlier, call);
        let subject = Subject::new(call.category(), title, places, detail);
        let (once, reject) = (option_of(params, "allow_once"), option_of(params, "reject_once"));
        // The request's own input may lack a part of the action, such as the directory of a command.
        let is_whole = !(lost || (call.diffs_are_lost && Diff::all(&about).is_empty()))
            || (subject.category != Category::Execute && about.raw("rawInput").is_some_and(|raw| raw.get() != "{}"));
        let ask = if !is_whole {
            out.warn("A permission can only be denied, because the input of its call is too long to be shown");
            Ask::denial(subject, text)
        } else if several {
            out.warn("A permission can only be denied, because the agent does not say for which of its calls it asks");
            Ask::denial(subject, text)
        } else if once.is_some() {
            let identity = self.identity(&about, &earlier, call);
            let also = call.look.as_ref().and_then(|look| look.also);
            let scope = Scope::of_request(subject.category, call.tool_name(&id, self.profile), identity.as_deref());
            let scope = scope.filter(|_| also.is_none());
            Ask { also: also.into_iter().collect(), ..Ask::permission(subject, text, scope) }
        } else {
            let why = "A permission can only be denied, because the agent offers no way to allow a single request";
            out.warn(why);
            Ask::denial(subject, text)
        };
        Some((AcpRequest::Permission { call: id.into_owned(), once, reject }, one(ask)))
    }

    /// Keeps a permission request that holds a command if its call's own input, with the command's directory, has yet to
    /// come: an approval needs both. Returns whether it does.
    pub(super) fn defers(&mut self, id: &str, params: &Object<'_>) -> bool {
        let Some(about) = params.object("toolCall").filter(|_| self.profile.inputs_follow) else { return false };
        let Some(call) = about.string("toolCallId") else { return false };
        let known = self.calls.get(&call).map(|known| known.input.as_str()).unwrap_or_default();
        let asked = about.raw("rawInput").map(Raw::get).unwrap_or_default();
        let waits = !known.is_empty() && !is_command(known) && is_command(asked) && self.early.get(&call).is_none();
        if waits {
            let early = EarlyRequest { id: id.to_owned(), line: params.line().to_owned() };
            let bytes = call.len() + early.id.len() + early.line.len();
            self.early.insert(call, early, bytes);
        }
        waits
    }

    /// `over`: the call has ended, so that nothing is left to permit.
    pub(super) fn ask_deferred(&mut self, call: &str, over: bool, out: &mut DriverOutput) {
        let Some(early) = self.early.remove(call) else { return };
        if over {
            return out.send.push(rpc::result(&early.id, &cancelled()));
        }
        let params = Object::parse(&early.line).and_then(|line| line.object("params"));
        self.asked(&early.id, PERMISSION, params, out);
    }

    /// The open calls that a request may confirm, if it says nothing of what it allows and its id is not that of a call.
    fn confirmed(&self, about: &Object<'_>) -> Vec<String> {
        let says = |name: &str| about.raw(name).is_some_and(|raw| !matches!(raw.get(), "{}" | "[]" | "\"\""));
        let is_known = about.str("toolCallId").is_none_or(|id| self.calls.get(&*id).is_some());
        let has_kind = about.str("kind").is_some_and(|kind| kind != "other");
        if is_known || has_kind || ["rawInput", "content", "locations"].into_iter().any(says) {
            return Vec::new();
        }
        self.calls.iter().filter(|(_, call)| !call.own && !call.asked).map(|(id, _)| id.clone()).collect()
    }

    /// A call's own locations leave out the working directory, but a look at it needs a place.
    fn places(&self, about: &Object<'_>, call: &Call) -> Vec<Place> {
        let is_here = |path: &str| path.is_empty() || Path::new(path) == self.cwd;
        let searches_here = |input: Object<'_>| {
            input.string("pattern").is_some()
                && input.raw("path").is_none_or(|path| path.str().is_some_and(|p| is_here(&p)))
        };
        let is_search = call.category() == Category::Search && self.profile.searches_cwd;
        let reads = matches!(call.category(), Category::Read | Category::Search);
        let names_here =
            || about.objects("locations").any(|at| at.str("path").is_some_and(|path| Path::new(&*path) == self.cwd));
        let searches = || is_search && about.object("rawInput").is_some_and(searches_here);
        if call.locations.is_empty() && (reads && names_here() || searches()) {
            return vec![Place { path: self.cwd.to_string_lossy().into_owned().into(), line: None }];
        }
        call.locations.clone()
    }

    /// `earlier`: the input known before the request, which may omit a command's directory. `None`: not enough is
    /// known.
    fn identity(&self, about: &Object<'_>, earlier: &str, call: &Call) -> Option<String> {
        let raw = |name| about.raw(name).map_or("", Raw::get);
        let (input, content) = (raw("rawInput"), raw("content"));
        let is_command = self.profile.titles_are_commands && call.category() == Category::Execute;
        let states = |raw: &str| !matches!(raw, "" | "{}" | "[]" | "null");
        let is_known = is_command || [input, content, earlier].into_iter().any(states);
        is_known.then(|| to_line(&[&call.text, content, input, earlier]))
    }

    /// Whether a text names only the usual directory of a command and the model's description, in Gemini's words. Without
    /// another bracket, the directory surely ends at the first one.
    fn is_usual_directory(&self, text: &str) -> bool {
        let usual = format!("[current working directory {}]", self.cwd.to_string_lossy());
        text.strip_prefix(&usual).is_some_and(|rest| !rest.contains(']'))
    }

    /// The change, the command, or else the agent's description, followed by the input's other fields.
    fn detail(&self, about: &Object<'_>, earlier: &str, call: &Call) -> String {
        let input = about.object("rawInput");
        let (text, shown) = action(about, input.as_ref(), call);
        let has_command = || [about.raw("rawInput").map_or("", Raw::get), earlier].into_iter().any(names_command);
        if call.category() == Category::Execute && !self.profile.titles_are_commands && !has_command() {
            // Kimi states the command in the content alone.
            let stated: Vec<String> = texts(about).filter(|text| !text.trim().is_empty()).collect();
            return if stated.is_empty() { String::new() } else { join(&call.text, stated) };
        }
        let places: HashSet<&Path> = call.locations.iter().map(|at| Path::new(at.path.unredacted())).collect();
        let is_shown = |name: &str, value: Raw<'_>| match (&shown, value.str()) {
            (Shown::Input, _) => true,
            (Shown::Fields(names), None) => names.contains(&name) && strings(value).is_some_and(|all| all == text),
            (Shown::Fields(names), Some(value)) => {
                let is_usual = || matches!(name, "cwd" | "workdir") && Path::new(&*value) == self.cwd;
                let is_place = || places.contains(Path::new(&*value));
                name == PROSE[0] || names.contains(&name) || value == text || is_place() || is_usual()
            }
        };
        let mut fields = input.as_ref().map(|input| rest(input, is_shown)).unwrap_or_default();
        if let Some(earlier) = Object::parse(earlier).filter(|_| text != earlier) {
            let known = input.iter().flat_map(Object::iter).filter(|(_, value)| value.get() != "null");
            let repeated: HashSet<Cow<'_, str>> = known.map(|(name, _)| name).collect();
            let is_covered = |name: &str, value| matches!(shown, Shown::Fields(_)) && is_shown(name, value);
            fields.extend(rest(&earlier, |name, value| {
                name == PROSE[0] || repeated.contains(name) || is_covered(name, value)
            }));
        }
        if self.profile.titles_are_commands && call.category() == Category::Execute {
            fields.extend(texts(about).filter(|text| !text.is_empty() && !self.is_usual_directory(text)));
        }
        join(&text, fields)
    }
}

/// The option of this kind: one whose name does not say that it lasts, if there is one. OpenHands offers two that allow
/// once, one of which lets a model decide about later calls.
fn option_of(params: &Object<'_>, kind: &str) -> Option<String> {
    let of_kind = || params.objects("options").filter(|option| option.is("kind", kind));
    let lasts = |option: &Object<'_>| {
        ["optionId", "name"].iter().any(|name| option.str(name).is_some_and(|name| modes::lasts(&name)))
    };
    of_kind().find(|option| !lasts(option)).or_else(|| of_kind().next())?.string("optionId")
}

fn strings(value: Raw<'_>) -> Option<String> {
    let all: Option<Vec<String>> = value.elements()?.map(Raw::string).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.join("\n"))
}

fn is_command(input: &str) -> bool {
    Object::parse(input).is_some_and(|input| input.raw("command").is_some())
}

/// Whether a tool's input holds more than the place, the time limit and the description of a command.
fn names_command(input: &str) -> bool {
    let is_aside = |name: &str| PROSE.contains(&name) || matches!(name, "cwd" | "workdir");
    Object::parse(input).is_some_and(|input| input.iter().any(|(name, _)| !is_aside(&name)))
}

/// The result for a permission that nobody was or will be asked for.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// The part of an input that the text of an action shows.
enum Shown {
    Fields(&'static [&'static str]),
    Input,
}

fn action(about: &Object<'_>, input: Option<&Object<'_>>, call: &Call) -> (String, Shown) {
    let fields = |text, names| (text, Shown::Fields(names));
    // Some requests have only the call's id, and the input came with the call.
    let known = Object::parse(&call.input).filter(|_| input.is_none());
    let input = input.or(known.as_ref());
    let field = |name: &str| input.and_then(|input| input.string(name));
    // The request may leave out the diffs of its call, or add some to the diff or the command of its input.
    let own = Diff::texts(about);
    let diffs = if own.is_empty() { &call.diffs } else { &own };
    let with_diffs = |text: String, shown: &[&str]| {
        let more = diffs.iter().filter(|(path, _)| !shown.contains(&path.as_str()));
        let more: String = more.map(|(_, text)| text.as_str()).collect();
        let between = if text.is_empty() || more.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        [&text, between, &more].concat()
    };
    if let Some(diff) = field("diff") {
        let text = with_diffs(diff.clone(), &edits::files(&diff));
        return fields(text, &["diff", "oldString", "newString", "content"]);
    }
    let commands = || input.and_then(|input| input.raw("commands")).and_then(strings);
    if let Some(command) = field("command").or_else(commands) {
        return fields(with_diffs(command, &[]), &["command", "commands"]);
    }
    if !diffs.is_empty() {
        let text = with_diffs(String::new(), &[]);
        return fields(text, &["content", "oldString", "newString", "old_string", "new_string"]);
    }
    if call.category() == Category::Execute {
        return fields(call.text.clone(), &[]);
    }
    // Not limited in length, because the user must see the whole action.
    let raw = about.raw("rawInput").map(Raw::get).filter(|raw| *raw != "{}");
    if let Some(raw) = raw.or(Some(call.input.as_str()).filter(|input| !input.is_empty())) {
        return (raw.to_owned(), Shown::Input);
    }
    let texts: Vec<String> = texts(about).collect();
    fields(if texts.is_empty() { call.text.clone() } else { texts.join("\n") }, &[])
}

pub(super) fn is_form(params: &Object<'_>) -> bool {
    params.string("mode").is_none_or(|mode| mode == "form")
}

pub(super) fn form(params: &Object<'_>) -> Option<(AcpRequest, Asks)> {
    if !is_form(params) {
        return None;
    }
    let (form, asks) =
        ElicitationForm::read(&params.object("requestedSchema")?, &params.string("message").unwrap_or_default())?;
    Some((AcpRequest::ElicitationForm(form), asks))
}

/// The questions that a permission request holds in place of an action, as Qwen Code asks them (measured on 0.24.4).
pub(super) fn questions_of<'a>(params: &Object<'a>) -> Option<Object<'a>> {
    params.object("toolCall")?.object("_meta").filter(|meta| meta.is("qwenInteractionKind", "user_question"))
}

pub(super) fn questions(params: &Object<'_>) -> Option<(AcpRequest, Asks)> {
    let asks: Asks = questions_of(params)?.objects("qwenQuestions").map(|asked| form::question(&asked)).collect();
    let submit = params.objects("options").find(|option| option.is("kind", "allow_once"))?.string("optionId");
    (!asks.is_empty()).then_some((AcpRequest::Questions { submit }, asks))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    ByUser(Option<Text>),
    NoUser,
}

impl AcpRequest {
    pub(super) fn call(&self) -> Option<&str> {
        match self {
            AcpRequest::Permission { call, .. } => Some(call),
            AcpRequest::ElicitationForm(_) | AcpRequest::Questions { .. } => None,
        }
    }

    pub(super) fn denial(&self, replies: &[Reply]) -> Option<Denial> {
        match (self, replies.first()) {
            (AcpRequest::ElicitationForm(_) | AcpRequest::Questions { .. }, _) => None,
            (_, Some(Reply::Allowed | Reply::AllowedWith(_))) => None,
            (_, Some(Reply::Denied(message) | Reply::Declined(message))) => Some(Denial::ByUser(message.clone())),
            (_, Some(Reply::NoUser)) => Some(Denial::NoUser),
            (_, Some(Reply::Answer(_)) | None) => Some(Denial::ByUser(None)),
        }
    }

    pub(super) fn cancelled(&self) -> Value {
        match self {
            AcpRequest::Permission { .. } | AcpRequest::Questions { .. } => cancelled(),
            AcpRequest::ElicitationForm(_) => json!({"action": "cancel"}),
        }
    }

    pub(super) fn respond(&self, replies: &[Reply]) -> Value {
        let (once, reject) = match self {
            AcpRequest::Permission { once, reject, .. } => (once, reject),
            AcpRequest::Questions { submit } => {
                let answers = replies.iter().enumerate().map(|(at, reply)| (at.to_string(), json!(reply.spoken())));
                let answers: Value = answers.collect();
                let passed = |id| json!({"outcome": {"outcome": "selected", "optionId": id}, "answers": answers});
                return submit.as_ref().map_or_else(cancelled, passed);
            }
            AcpRequest::ElicitationForm(form) => {
                return match form.content(replies) {
                    Some(content) => json!({"action": "accept", "content": content}),
                    None => json!({"action": "decline"}),
                };
            }
        };
        let chosen = if self.denial(replies).is_none() { once } else { reject };
        match chosen {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => self.cancelled(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AcpRequest;
    use crate::agent::Reply;
    use serde_json::json;

    #[test]
    fn without_an_option_to_reject_a_denial_cancels() {
        let pending = AcpRequest::Permission { call: "c".into(), once: Some("o".into()), reject: None };
        assert_eq!(pending.respond(&[Reply::Denied(None)]), json!({"outcome": {"outcome": "cancelled"}}));
        let selected = json!({"outcome": {"outcome": "selected", "optionId": "o"}});
        assert_eq!(pending.respond(&[Reply::Allowed]), selected);
    }
}
