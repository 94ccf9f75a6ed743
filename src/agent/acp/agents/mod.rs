//! The built-in agents that speak ACP. To add one that was tried, write a file like the others and name it in `agents!`;
//! to add one from its documentation, write a row in [`UNTESTED`].

use super::profile::{GENERIC, Profile};
use crate::agent::Program;
use crate::agent::built_in::BuiltIn;

macro_rules! agents {
    ($($(#[$only:meta])? $module:ident,)*) => {
        $($(#[$only])? pub(crate) mod $module;)*

        static TRIED: &[(&BuiltIn, &Profile)] = &[$($(#[$only])? (&$module::ENTRY, &$module::PROFILE)),*];
    };
}

agents! {
    claude_acp,
    cline,
    codex_acp,
    copilot,
    droid,
    gemini,
    hermes,
    kilo,
    kimi,
    opencode,
    openhands,
    pi_acp,
    qwen,
    #[cfg(test)]
    sample,
    vibe,
}

fn all() -> impl Iterator<Item = (&'static BuiltIn, &'static Profile)> {
    TRIED.iter().copied().chain(UNTESTED.iter().map(|entry| (entry, &GENERIC)))
}

pub(crate) fn entries() -> impl Iterator<Item = &'static BuiltIn> {
    all().map(|(entry, _)| entry)
}

/// The profile for the program with this file name, or else for the agent of this name, whose program may be a wrapper.
pub(crate) fn find_profile(program: &Program, name: &str) -> &'static Profile {
    let program = match program {
        Program::Command(command) => command.rsplit('/').next().unwrap_or_default(),
        Program::Myself => "",
    };
    let started = all().find(|(agent, _)| agent.command == Some(program));
    let known = started.or_else(|| all().find(|(agent, _)| agent.name == name));
    known.map_or(&GENERIC, |(_, profile)| profile)
}

/// The names, commands and packages are those of the ACP registry of 2026-08-20, of acpx 0.19.1, and of the agents' own
/// documentation.
static UNTESTED: &[BuiltIn] = &[
    BuiltIn {
        aliases: &["amp-acp"],
        command: Some("amp-acp"),
        args: &[],
        version: None,
        ..BuiltIn::program("amp", "Amp", "see https://ampcode.com and its adapter amp-acp")
    },
    BuiltIn {
        command: Some("agy_acp_server.par"),
        args: &["--uid="],
        version: None,
        ..BuiltIn::program("antigravity", "Google Antigravity", "see https://antigravity.google")
    },
    BuiltIn {
        // Measured on 0.36.0: it opens a session only with an account.
        args: &["--acp"],
        env: &[("AUGMENT_DISABLE_AUTO_UPDATE", "1")],
        package: Some("@augmentcode/auggie@0.36.0"),
        ..BuiltIn::program("auggie", "Auggie", "npm install -g @augmentcode/auggie")
    },
    BuiltIn {
        // `agent_args` names the file of the agent.
        aliases: &["docker-agent"],
        command: Some("docker"),
        args: &["agent", "serve", "acp"],
        // Docker may lack this part of it.
        version: Some("agent version"),
        ..BuiltIn::program("cagent", "Docker Agent", "see https://github.com/docker/cagent")
    },
    BuiltIn::program("code-assistant", "Code Assistant", "see https://github.com/stippi/code-assistant"),
    BuiltIn {
        command: Some("cortex"),
        args: &["acp", "serve"],
        ..BuiltIn::program(
            "cortex-code",
            "Cortex Code",
            "see https://docs.snowflake.com/en/user-guide/cortex-code/cortex-code",
        )
    },
    BuiltIn {
        command: Some("corust-agent-acp"),
        args: &[],
        version: None,
        ..BuiltIn::program("corust-agent", "Corust Agent", "see https://github.com/Corust-ai/corust-agent-release")
    },
    BuiltIn { command: Some("cursor-agent"), ..BuiltIn::program("cursor", "Cursor", "see https://cursor.com/cli") },
    BuiltIn::program("devin", "Devin", "see https://devin.ai"),
    BuiltIn { package: Some("dimcode@0.5.7"), ..BuiltIn::program("dimcode", "DimCode", "npm install -g dimcode") },
    BuiltIn {
        args: &["--acp"],
        package: Some("dirac-cli@0.3.0"),
        ..BuiltIn::program("dirac", "Dirac", "npm install -g dirac-cli")
    },
    // Measured: it opens a session; nothing else was tried.
    BuiltIn::program("fast-agent", "fast-agent", "pip install fast-agent-mcp"),
    BuiltIn::program("fx", "fx", "see its documentation"),
    BuiltIn {
        args: &[],
        version: None,
        package: Some("glm-acp-agent@1.5.0"),
        ..BuiltIn::program("glm-acp-agent", "GLM Agent", "npm install -g glm-acp-agent")
    },
    BuiltIn::program("goose", "Goose", "see https://github.com/block/goose"),
    BuiltIn {
        aliases: &["grok-build"],
        args: &["agent", "stdio"],
        ..BuiltIn::program("grok", "Grok Build", "see https://x.ai")
    },
    BuiltIn { args: &["serve", "acp"], ..BuiltIn::program("harn", "Harn", "see https://harnlang.com") },
    BuiltIn {
        args: &["--experimental-acp"],
        ..BuiltIn::program("iflow", "iFlow", "npm install -g @iflow-ai/iflow-cli")
    },
    BuiltIn {
        args: &["--acp=true"],
        package: Some("@jetbrains/junie@3110.7.0"),
        ..BuiltIn::program("junie", "Junie", "npm install -g @jetbrains/junie")
    },
    BuiltIn { command: Some("kiro-cli-chat"), ..BuiltIn::program("kiro", "Kiro", "see https://kiro.dev/cli") },
    BuiltIn::program("mcode", "MCode", "see its documentation"),
    BuiltIn::program("mux", "Mux", "see https://mux.coder.com"),
    BuiltIn {
        package: Some("@compass-ai/nova@1.0.44"),
        ..BuiltIn::program("nova", "Nova", "npm install -g @compass-ai/nova")
    },
    // It passes the session on to a gateway of its own, which must run.
    BuiltIn::program("openclaw", "OpenClaw", "npm install -g openclaw"),
    BuiltIn { aliases: &["poolside"], ..BuiltIn::program("pool", "Poolside", "see https://poolside.ai") },
    BuiltIn {
        // Measured on 1.1.52: it opens a session only with an account.
        command: Some("qodercli"),
        args: &["--acp"],
        package: Some("@qoder-ai/qodercli@1.1.52"),
        ..BuiltIn::program("qoder", "Qoder CLI", "npm install -g @qoder-ai/qodercli")
    },
    BuiltIn::program("raxol", "Raxol", "see https://github.com/Hydepwns/raxol"),
    BuiltIn {
        args: &[],
        package: Some("@smbcloud/sigit@1.5.12"),
        ..BuiltIn::program("sigit", "siGit Code", "npm install -g @smbcloud/sigit")
    },
    BuiltIn::program("stakpak", "Stakpak", "see https://github.com/stakpak/agent"),
    BuiltIn {
        command: Some("traecli"),
        args: &["acp", "serve"],
        ..BuiltIn::program("trae", "Trae", "see https://docs.trae.ai/cli")
    },
    BuiltIn::program("zeroclaw", "ZeroClaw", "see https://github.com/zeroclaw-labs/zeroclaw"),
];
