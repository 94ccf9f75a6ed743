//! Flags as rows: what a flag is, and how the value on a command line is stored.

use super::action::Offers;
use super::choices::Output;
use super::{Wrong, no_words, seconds, text};
use crate::agent::registry::DEFAULT;
use crate::protocol::fields::{self, Fallback, Field};
use crate::protocol::form::Form;
use crate::protocol::request::Seconds;
use crate::protocol::words::Policy;
use serde_json::Value as Json;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagForm {
    /// No value: the flag itself means this JSON value.
    Switch(&'static str),
    Text,
    /// A number or other JSON; anything else is a string.
    Json,
    /// A word, `NAME=WORD,...`, or JSON.
    Words,
    /// An element of a list; the flag may be repeated.
    Item,
    /// `NAME=VALUE`, one entry of an object; the flag may be repeated.
    Pair,
    /// A string after `=`, or none: the next word is not its value.
    Attached,
}

#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name, without its dashes.
    pub long: &'static str,
    pub other_names: &'static [&'static str],
    pub short: Option<char>,
    /// The placeholder of the value in help. `FILE`, `DIR`, `AGENT`, `ID` and `POLICY` also decide what a shell offers.
    pub metavar: &'static str,
    pub value: FlagForm,
    /// The field of run.start that it sets. `None`: the flag is the command's own.
    pub field: Option<&'static Field>,
    /// The title of the group that begins with this flag. `None`: the flag belongs to the group of the previous one.
    pub group: Option<&'static str>,
    /// A description of one line.
    pub help: &'static str,
    /// Further sentences for the long help. May be empty.
    pub more: &'static str,
    /// The allowed values, if they are words. May be empty.
    pub values: &'static [&'static str],
    /// A default that replaces that of the field. May be empty; see [`Flag::fallback`].
    pub default: &'static str,
    /// Text after the default in help. May be empty.
    pub also: &'static str,
}

pub const HELP: Flag = Flag {
    short: Some('h'),
    group: Some("Help"),
    ..Flag::new("help", "", FlagForm::Switch("true"), "show help (-h: brief, --help: with examples)")
};

impl Flag {
    pub fn is_named(&self, name: &str) -> bool {
        self.long == name || self.other_names.contains(&name)
    }

    /// Whether the next word on a command line is the flag's value.
    pub fn takes_value(&self) -> bool {
        match self.value {
            FlagForm::Switch(_) | FlagForm::Attached => false,
            FlagForm::Text | FlagForm::Json | FlagForm::Words | FlagForm::Item | FlagForm::Pair => true,
        }
    }

    pub fn repeats(&self) -> bool {
        match self.value {
            FlagForm::Item | FlagForm::Pair => true,
            FlagForm::Switch(_) | FlagForm::Text | FlagForm::Json | FlagForm::Words | FlagForm::Attached => false,
        }
    }

    /// The default as help shows it. Empty if there is none, or if it is a list or an object.
    pub fn fallback(&self) -> String {
        let field = self.field.filter(|_| self.takes_value() && self.default.is_empty());
        let value = match field.map(|field| field.fallback) {
            Some(Fallback::Value(value) | Fallback::Driver(value)) => value().and_then(|raw| scalar(raw.get())),
            Some(Fallback::Agent) => Some(DEFAULT.to_owned()),
            Some(Fallback::Absent) | None => None,
        };
        value.unwrap_or_else(|| self.default.to_owned()) + self.also
    }

    pub fn offers(&self) -> Offers {
        match self.metavar {
            _ if self.field.is_some_and(|field| field.name == "mode") => Offers::Modes,
            "FILE" => Offers::Files,
            "DIR" => Offers::Folders,
            "AGENT" => Offers::Agents,
            "ID" => Offers::Sessions,
            "POLICY" => Offers::Words(Policy::WORDS),
            _ if self.values.is_empty() => Offers::Nothing,
            _ => Offers::Words(self.values),
        }
    }
}

fn scalar(json: &str) -> Option<String> {
    match serde_json::from_str(json).ok()? {
        Json::String(text) => Some(text),
        number @ Json::Number(_) => Some(number.to_string()),
        Json::Bool(yes) => Some(yes.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[derive(Debug)]
pub struct GivenFlag {
    /// The flag's index in the flags of the command.
    pub at: usize,
    /// Empty if the flag takes none.
    pub value: OsString,
}

pub type SetOwn<T> = fn(&mut T, &'static Flag, OsString) -> Result<(), Wrong>;
type SetField<T> = fn(&mut T, &'static Flag, &'static Field, OsString) -> Result<(), Wrong>;

/// Sets the part with this name from a value of the flag.
pub type SetPart<T> = fn(&mut T, &str, &Flag, OsString) -> Result<(), Wrong>;

pub trait HasFields {
    /// Error: the value does not fit the field.
    fn set_field(&mut self, flag: &'static Flag, field: &'static Field, value: OsString) -> Result<(), Wrong>;
}

#[derive(Debug)]
pub struct Row<T: 'static> {
    pub flag: Flag,
    set: Set<T>,
}

impl<T> Clone for Row<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Row<T> {}

#[derive(Debug)]
enum Set<T: 'static> {
    Switch(fn(&mut T)),
    Text(fn(&mut T) -> &mut Option<String>),
    Texts(fn(&mut T) -> &mut Vec<String>),
    Path(fn(&mut T) -> &mut Option<PathBuf>),
    Seconds(fn(&mut T) -> &mut Option<Seconds>),
    Output(fn(&mut T) -> &mut Output),
    Json(fn(&mut T) -> &mut Output),
    Own(SetOwn<T>),
    Part(&'static str, SetPart<T>),
    Field(&'static Field, SetField<T>),
}

impl<T> Clone for Set<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Set<T> {}

pub const fn flags<T, const N: usize>(rows: &[Row<T>]) -> [Flag; N] {
    let (mut flags, mut at) = ([HELP; N], 0);
    while at < N {
        flags[at] = rows[at].flag;
        at += 1;
    }
    flags
}

pub fn store<T: Default>(rows: &'static [Row<T>], given: Vec<GivenFlag>) -> Result<T, Wrong> {
    let mut read = T::default();
    for GivenFlag { at, value } in given {
        if let Some(row) = rows.get(at) {
            match row.set {
                Set::Switch(set) => set(&mut read),
                Set::Text(place) => *place(&mut read) = Some(text(&row.flag, value)?),
                Set::Texts(place) => place(&mut read).push(text(&row.flag, value)?),
                Set::Path(place) => *place(&mut read) = Some(value.into()),
                Set::Seconds(place) => *place(&mut read) = Some(seconds(&row.flag, &value)?),
                Set::Output(place) => *place(&mut read) = Output::read(row.flag.long, &value)?,
                Set::Json(place) => *place(&mut read) = Output::Json,
                Set::Own(set) => set(&mut read, &row.flag, value)?,
                Set::Part(name, set) => set(&mut read, name, &row.flag, value)?,
                Set::Field(field, set) => set(&mut read, &row.flag, field, value)?,
            }
        }
    }
    Ok(read)
}

pub fn store_alone<T: Default>(
    name: &str,
    rows: &'static [Row<T>],
    given: Vec<GivenFlag>,
    words: &[OsString],
) -> Result<T, Wrong> {
    no_words(name, words)?;
    store(rows, given)
}

pub const fn field<T: HasFields>(name: &str, metavar: &'static str, help: &'static str) -> Row<T> {
    let field = fields::known(name);
    let (value, values): (FlagForm, &[&str]) = match field.form {
        Form::Text | Form::Shaped(_) => (FlagForm::Text, &[]),
        Form::Word(set) => (FlagForm::Text, set.words),
        Form::Bool => (FlagForm::Json, &["true", "false"]),
        Form::Either(_) | Form::Policies(_) => (FlagForm::Words, &[]),
        Form::AtMost(_, Form::Text | Form::Shaped(_) | Form::Either([Form::Shaped(_), ..])) => (FlagForm::Item, &[]),
        Form::Map(_) | Form::Named(..) => (FlagForm::Pair, &[]),
        Form::Integer
        | Form::Number
        | Form::Within(_)
        | Form::List(_)
        | Form::AtMost(..)
        | Form::Object(_)
        | Form::AnyObject
        | Form::Any
        | Form::True
        | Form::Schema
        | Form::Nullable(_) => (FlagForm::Json, &[]),
    };
    sets(field, Flag { values, ..Flag::new(field.flag, metavar, value, help) })
}

/// Sets a field of run.start to `meaning`, written as JSON.
pub const fn switch<T: HasFields>(name: &str, meaning: &'static str, help: &'static str) -> Row<T> {
    let field = fields::known(name);
    sets(field, Flag::new(field.flag, "", FlagForm::Switch(meaning), help))
}

const fn sets<T: HasFields>(field: &'static Field, flag: Flag) -> Row<T> {
    Row { flag: Flag { field: Some(field), ..flag }, set: Set::Field(field, T::set_field) }
}

pub const fn own<T>(
    long: &'static str,
    metavar: &'static str,
    value: FlagForm,
    help: &'static str,
    set: SetOwn<T>,
) -> Row<T> {
    Row { flag: Flag::new(long, metavar, value, help), set: Set::Own(set) }
}

pub const fn part<T>(name: &'static str, flag: Flag, set: SetPart<T>) -> Row<T> {
    Row { flag, set: Set::Part(name, set) }
}

pub const fn own_text<T>(
    long: &'static str,
    metavar: &'static str,
    help: &'static str,
    place: fn(&mut T) -> &mut Option<String>,
) -> Row<T> {
    Row { flag: Flag::new(long, metavar, FlagForm::Text, help), set: Set::Text(place) }
}

/// `value`: [`FlagForm::Item`], or [`FlagForm::Text`] if help does not say that the flag may be repeated.
pub const fn own_texts<T>(
    long: &'static str,
    metavar: &'static str,
    value: FlagForm,
    help: &'static str,
    place: fn(&mut T) -> &mut Vec<String>,
) -> Row<T> {
    Row { flag: Flag::new(long, metavar, value, help), set: Set::Texts(place) }
}

pub const fn own_seconds<T>(
    long: &'static str,
    help: &'static str,
    place: fn(&mut T) -> &mut Option<Seconds>,
) -> Row<T> {
    Row { flag: Flag::new(long, "SECONDS", FlagForm::Text, help), set: Set::Seconds(place) }
}

pub const fn own_path<T>(
    long: &'static str,
    metavar: &'static str,
    help: &'static str,
    place: fn(&mut T) -> &mut Option<PathBuf>,
) -> Row<T> {
    Row { flag: Flag::new(long, metavar, FlagForm::Text, help), set: Set::Path(place) }
}

pub const fn own_switch<T>(long: &'static str, help: &'static str, set: fn(&mut T)) -> Row<T> {
    Row { flag: Flag::new(long, "", FlagForm::Switch("true"), help), set: Set::Switch(set) }
}

pub const fn output<T>(place: fn(&mut T) -> &mut Output) -> Row<T> {
    Row { flag: OUTPUT, set: Set::Output(place) }
}

pub const fn json<T>(place: fn(&mut T) -> &mut Output) -> Row<T> {
    Row { flag: JSON, set: Set::Json(place) }
}

#[derive(Debug, Default)]
pub struct OutputArgs {
    pub output: Output,
}

impl OutputArgs {
    pub const FLAGS: &[Row<OutputArgs>] =
        &[output(|to: &mut OutputArgs| &mut to.output).begins("Output"), json(|to| &mut to.output)];
}

pub const fn agent<T>(help: &'static str, place: fn(&mut T) -> &mut Option<String>) -> Row<T> {
    own_text("agent", "AGENT", help, place).short('a').default(DEFAULT)
}

pub(super) const OUTPUT: Flag = Flag {
    values: Output::WORDS,
    default: Output::WORDS[0],
    ..Flag::new("output", "MODE", FlagForm::Text, "cli for a person, json for a program")
};

pub(super) const JSON: Flag = Flag::new("json", "", FlagForm::Switch("true"), "the same as --output json");

impl Flag {
    pub(super) const fn new(long: &'static str, metavar: &'static str, value: FlagForm, help: &'static str) -> Flag {
        let values = &[] as &[&str];
        Flag {
            long,
            other_names: values,
            short: None,
            metavar,
            value,
            field: None,
            group: None,
            help,
            more: "",
            values,
            default: "",
            also: "",
        }
    }
}

/// Makes a method for each property of a flag: its name, the property with the type of its argument, and the new value.
macro_rules! setters {
    ($($name:ident($property:ident: $argument:ty) = $value:expr;)*) => {
        impl<T> Row<T> {
            $(pub const fn $name(mut self, $property: $argument) -> Row<T> {
                self.flag.$property = $value;
                self
            })*
        }
    };
}

setters! {
    named(long: &'static str) = long;
    also_named(other_names: &'static [&'static str]) = other_names;
    short(short: char) = Some(short);
    begins(group: &'static str) = Some(group);
    values(values: &'static [&'static str]) = values;
    default(default: &'static str) = default;
    also(also: &'static str) = also;
    more(more: &'static str) = more;
}
