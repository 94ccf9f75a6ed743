//! The flags of every command, each with the function that stores its value.

use super::adhoc::{Adhoc, answer, field_of_run};
use super::agents::{AgentsArgs, Export, Open, field_of_open, filled};
use super::command::{Flag, FlagForm, Row, field, own, switch};
use super::config::ConfigArgs;
use super::{Output, Replay, one_of, text, variable};
use crate::agent::registry::DEFAULT;

const POLICY_HELP: &str = "\
POLICY is ask, allow or deny for everything, or by kind of tool: read=allow,edit=ask,*=deny.
The kinds are read, edit, delete, move, search, execute, fetch, think, agent, mcp, mode, other, and * for the rest.
JSON does as well: {\"read\":\"allow\",\"*\":\"ask\"}. It answers what the agent asks for, and is no sandbox.";

const SERVERS_HELP: &str = "\
JSON is a list of {\"name\",\"command\",\"args\",\"env\"}, or {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}.
@FILE reads it from a file.";

const OPEN_POLICY_HELP: &str = "\
It also comes from the configuration. You answer at the terminal: any POLICY but allow makes the agent ask.";

const ANSWER_HELP: &str = "\
KEY is a question's header, its text, its kind (confirm, select, text, secret, file_path) or its purpose
(permission, clarification, input), in any case. The one that says most goes first.
A permission is answered by permission=allow_once, permission=allow_always or permission=deny.
Several options are written a,b. The same key again answers the next such question; the last one stays.
An answer that does not fit is not given again. Others can read it in the process list: see --answers.";

const ANSWERS_HELP: &str = "\
It holds {\"KEY\": ANSWER}, with keys as for --answer.
An ANSWER is a value, {\"declined\":true}, {\"value_from\":{\"env\":\"NAME\"}} or {\"value_from\":{\"file\":\"PATH\"}}.
--answer goes before it.";

const CONTINUE_HELP: &str = "\
It is kept in .spektacular/local, which git ignores, at the end of every run that a prompt on the command line began.
With --output json it is kept only where there is a .spektacular already.";

/// The flags of `adhoc`.
pub const ADHOC: &[Row<Adhoc>] = &[
    own("prompt", "TEXT", FlagForm::Text, "the task").short('p').begins("The task").sets(|to, flag, value| {
        to.prompt = Some(text(flag, value)?);
        Ok(())
    }),
    own("prompt-file", "FILE", FlagForm::Text, "read the task from a file, or from stdin with -").sets(
        |to, _, value| {
            to.prompt_file = Some(value.into());
            Ok(())
        },
    ),
    field("cwd", "DIR", "the agent's working directory").short('C').sets(field_of_run),
    field("add_dirs", "DIR", "a further directory that the agent may use").sets(field_of_run),
    field("session_id", "ID", "resume this session of the agent").sets(field_of_run),
    own("continue", "", FlagForm::Switch("true"), "resume the agent's last session in this directory")
        .more(CONTINUE_HELP)
        .sets(|to, _, _| {
            to.go_on = true;
            Ok(())
        }),
    field("agent", "AGENT", "which agent to run").short('a').begins("The agent").sets(field_of_run),
    field("model", "NAME", "the model, in the agent's own words").short('m').sets(field_of_run),
    field("effort", "LEVEL", "the reasoning effort, in the agent's own words").sets(field_of_run),
    field("mode", "NAME", "the agent's own mode, in its own words")
        .more("OpenCode and Claude Code call it an agent: plan, or the name of one that you defined.")
        .sets(field_of_run),
    field("system_prompt", "TEXT", "a system prompt").sets(field_of_run),
    own("system-prompt-file", "FILE", FlagForm::Text, "read the system prompt from a file").sets(|to, _, value| {
        to.system_prompt_file = Some(value.into());
        Ok(())
    }),
    field("allowed_tools", "NAME", "a tool the agent may use, as it names it").sets(field_of_run),
    field("disallowed_tools", "NAME", "a tool the agent may not use").sets(field_of_run),
    field("mcp_servers", "JSON", "MCP servers for the agent to start").more(SERVERS_HELP).sets(field_of_run),
    field("env", "NAME=VALUE", "a variable for the agent's environment").sets(field_of_run),
    field("env_allow", "NAME", "pass only such variables on to the agent")
        .more("A * at its end stands for anything. PATH, HOME and the like are always passed on.")
        .sets(field_of_run),
    field("agent_args", "ARG", "an argument for the agent's own command line").sets(field_of_run),
    switch("raw_prompt", "true", "let the prompt be a command of the agent's")
        .more("Without it a prompt that begins with / or holds @path is taken as plain text.")
        .sets(field_of_run),
    field("permissions", "POLICY", "ask, allow, deny, or read=allow,edit=ask,*=deny")
        .more(POLICY_HELP)
        .begins("Permissions and answers")
        .sets(field_of_run),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").sets(field_of_run),
    own("answer", "KEY=VALUE", FlagForm::Pair, "the answer to a question that is yet to come").more(ANSWER_HELP).sets(
        |to, flag, value| {
            to.answers.push(answer(flag, value)?);
            Ok(())
        },
    ),
    own("answers", "FILE", FlagForm::Text, "read answers from a file of JSON").more(ANSWERS_HELP).sets(
        |to, _, value| {
            to.answers_file = Some(value.into());
            Ok(())
        },
    ),
    switch("interactive", "false", "never ask: policies and defaults answer").sets(field_of_run),
    field("question_timeout_s", "SECONDS", "how long a question waits")
        .also("; with --output cli there is no limit")
        .sets(field_of_run),
    field("on_question_timeout", "WHAT", "what an unanswered question does then").sets(field_of_run),
    field("question_markers", "BOOL", "whether questions in the text are asked").sets(field_of_run),
    switch("fail_on_denied", "true", "fail if a permission was denied for want of an answer")
        .more("The run ends with `denied`, exit 6. A denial by --permissions or by an answer does not count.")
        .sets(field_of_run),
    field("timeout_s", "SECONDS", "the whole run's limit").begins("Limits").sets(field_of_run),
    field("start_timeout_s", "SECONDS", "limit to the agent's first sign of life").sets(field_of_run),
    field("idle_timeout_s", "SECONDS", "the agent's longest silence, 0 for none").sets(field_of_run),
    field("tool_timeout_s", "SECONDS", "how long a tool may hold the idle clock").sets(field_of_run),
    field("max_turns", "N", "a budget of turns").sets(field_of_run),
    field("max_cost_usd", "USD", "a budget in US dollars").sets(field_of_run),
    own("output", "MODE", FlagForm::Text, "cli for a person, json for an orchestrator")
        .values(&["cli", "json"])
        .default("cli")
        .begins("Input and output")
        .sets(|to, flag, value| {
            to.output = Some(Output::read(flag, &value)?);
            Ok(())
        }),
    own("quiet", "", FlagForm::Switch("true"), "with cli: the final text alone").short('q').sets(|to, _, _| {
        to.quiet = true;
        Ok(())
    }),
    own("verbose", "", FlagForm::Switch("true"), "with cli: also outputs, reasoning and the search for session ids")
        .short('v')
        .sets(|to, _, _| {
            to.verbose = true;
            Ok(())
        }),
    own("input", "MODE", FlagForm::Text, "jsonl: read messages from stdin although a prompt is given")
        .values(&["jsonl"])
        .sets(|to, flag, value| {
            to.read_messages = one_of(flag, &value, &[("jsonl", true)])?;
            Ok(())
        }),
    own("on-eof", "WHAT", FlagForm::Text, "what the end of stdin does")
        .values(&["continue", "cancel"])
        .default("continue")
        .sets(|to, flag, value| {
            to.cancel_on_eof = one_of(flag, &value, &[("continue", false), ("cancel", true)])?;
            Ok(())
        }),
    field("progress", "LEVEL", "how much is told").also("; full with --output cli").sets(field_of_run),
    field("heartbeat_s", "SECONDS", "our longest silence, 0 for none").sets(field_of_run),
    field("max_frame_bytes", "BYTES", "the largest frame").sets(field_of_run),
    field("output_schema", "JSON", "a JSON Schema for a structured result")
        .more("@FILE reads it from a file.")
        .sets(field_of_run),
    field("completion_marker", "TEXT", "the text that sets completion_detected").sets(field_of_run),
    field("metadata", "JSON", "an object that comes back with the run").sets(field_of_run),
    field("secrets", "TEXT", "a value to redact; others can read it in the process list").sets(field_of_run),
    own("record", "FILE", FlagForm::Text, "record the dialogue with the agent, redacted").sets(|to, _, value| {
        to.record = Some(value.into());
        Ok(())
    }),
    own("mirror-stderr", "", FlagForm::Switch("true"), "copy the agent's stderr to ours, redacted").sets(|to, _, _| {
        to.mirror_stderr = true;
        Ok(())
    }),
    own("dry-run", "", FlagForm::Switch("true"), "show what would be started, and start nothing").sets(|to, _, _| {
        to.dry_run = true;
        Ok(())
    }),
];

const OUTPUT: Flag = own("output", "MODE", FlagForm::Text, "cli for a person, json for a program")
    .values(&["cli", "json"])
    .default("cli");
const AGENT: Flag = own("agent", "AGENT", FlagForm::Text, "which agent").short('a').default(DEFAULT);

/// The flags of `agents`.
pub const AGENTS: &[Row<AgentsArgs>] = &[
    own("all", "", FlagForm::Switch("true"), "with check: also show what is wrong with each of the others")
        .begins("Output")
        .sets(|to, _, _| {
            to.all = true;
            Ok(())
        }),
    OUTPUT.sets(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
];

/// The flags of `export`.
pub const EXPORT: &[Row<Export>] = &[
    AGENT.begins("The session").sets(|to, flag, value| {
        to.agent = Some(text(flag, value)?);
        Ok(())
    }),
    own("out", "FILE", FlagForm::Text, "write to a file, as a whole or not at all").sets(|to, _, value| {
        to.out = Some(value.into());
        Ok(())
    }),
    own("force", "", FlagForm::Switch("true"), "let --out replace a file").sets(|to, _, _| {
        to.force = true;
        Ok(())
    }),
    OUTPUT.sets(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
];

/// The flags of `open`.
pub const OPEN: &[Row<Open>] = &[
    AGENT.begins("The agent").sets(|to, flag, value| {
        to.agent = Some(text(flag, value)?);
        Ok(())
    }),
    field("model", "NAME", "the model, in the agent's own words").short('m').sets(field_of_open),
    field("mode", "NAME", "the agent's own mode, in its own words").sets(field_of_open),
    own("session", "ID", FlagForm::Text, "go on with this session of the agent").sets(|to, flag, value| {
        to.session = Some(filled(flag, value)?);
        Ok(())
    }),
    own("cwd", "DIR", FlagForm::Text, "the agent's working directory").short('C').sets(|to, _, value| {
        to.cwd = Some(value.into());
        Ok(())
    }),
    own("env", "NAME=VALUE", FlagForm::Pair, "a variable for the agent's environment").sets(|to, flag, value| {
        to.env.extend([variable(flag, value)?]);
        Ok(())
    }),
    own("agent-arg", "ARG", FlagForm::Item, "an argument for the agent's own command line").sets(|to, flag, value| {
        to.args.push(text(flag, value)?);
        Ok(())
    }),
    field("permissions", "POLICY", "ask: the agent asks for all it can; allow: for nothing")
        .more(OPEN_POLICY_HELP)
        .default("the agent's own")
        .sets(field_of_open),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").sets(field_of_open),
];

/// The flags of `config`.
pub const CONFIG: &[Row<ConfigArgs>] = &[
    own("global", "", FlagForm::Switch("true"), "work on the user's file, not on the project's")
        .begins("Configuration")
        .sets(|to, _, _| {
            to.global = true;
            Ok(())
        }),
    OUTPUT.sets(|to, flag, value| {
        to.json = Output::read(flag, &value)? == Output::Json;
        Ok(())
    }),
];

/// The flags of `replay`.
pub const REPLAY: &[Row<Replay>] = &[
    own("strict", "", FlagForm::Switch("true"), "fail where the host says something else than the recording")
        .begins("Playing")
        .sets(|to, _, _| {
            to.strict = true;
            Ok(())
        }),
    own("demo", "", FlagForm::Switch("true"), "play the recording of the demo agent").sets(|to, _, _| {
        to.demo = true;
        Ok(())
    }),
];

#[cfg(test)]
mod tests {
    use super::super::command::{GivenFlag, Goes, Row, store};
    use super::{ADHOC, AGENTS, CONFIG, EXPORT, OPEN, REPLAY};
    use std::fmt::Debug;

    /// Each flag with a value that is not the default leaves a trace.
    fn every_flag_is_stored<T: Debug + Default>(rows: &'static [Row<T>]) {
        let nothing = format!("{:?}", T::default());
        for (at, Row { flag, .. }) in rows.iter().enumerate() {
            let samples = ["json", "cancel", "NAME=a", "20000", "{}", "jsonl", "allow", "full", "true", "[]"];
            let stored = samples.iter().chain(flag.values).filter_map(|value| {
                let given = GivenFlag { at, value: (*value).into() };
                Some(format!("{:?}", store(rows, vec![given]).ok()?))
            });
            assert!(stored.into_iter().any(|read| read != nothing), "--{} is not stored", flag.long);
        }
    }

    #[test]
    fn every_flag_of_every_command_is_stored() {
        every_flag_is_stored(ADHOC);
        every_flag_is_stored(AGENTS);
        every_flag_is_stored(EXPORT);
        every_flag_is_stored(OPEN);
        every_flag_is_stored(CONFIG);
        every_flag_is_stored(REPLAY);
        assert!(ADHOC.iter().any(|row| row.flag.goes == Goes::Field("cwd")));
    }
}
