//! The flags of `chat` and of the workflows: their own, and those of `adhoc` except the ones that they decide
//! themselves.

use super::adhoc::{Adhoc, workflow_field};
use super::flags::ADHOC;
use super::row::{Flag, FlagForm, Row, part};

/// The flags of `adhoc` that no workflow has.
const LEFT_OUT: [&str; 11] = [
    "session",
    "fork",
    "raw-prompt",
    "output-schema",
    "continue",
    "name",
    "no-session",
    "conversation",
    "checkpoints",
    "turn-timeout",
    "prompt-timeout",
];

/// The flags of `adhoc` that `chat` does not have: it is a conversation with a person.
const NOT_OF_CHAT: [&str; 7] = ["conversation", "output", "json", "input", "on-eof", "signal-exit", "log-id"];

pub(crate) const CHAT: &[Row<Adhoc>] = &joined::<0, { ADHOC.len() - NOT_OF_CHAT.len() }>([], &NOT_OF_CHAT);

const YES: FlagForm = FlagForm::Switch("true");

/// A flag for the field `name` of `workflow`.
const fn of(
    name: &'static str,
    long: &'static str,
    metavar: &'static str,
    value: FlagForm,
    help: &'static str,
) -> Row<Adhoc> {
    part(name, Flag::new(long, metavar, value, help), workflow_field)
}

const fn force() -> Row<Adhoc> {
    of("force", "force", "", YES, "replace the finished file; the old one is kept")
        .more("The old file moves to .spektacular/local/old.")
}

const fn resume() -> Row<Adhoc> {
    of("continue", "continue", "", YES, "continue the draft, or the finished file").short('c')
}

const fn ignore() -> Row<Adhoc> {
    of("ignore", "ignore", "RULE", FlagForm::Item, "exclude this rule from the check")
}

const fn attempts(help: &'static str) -> Row<Adhoc> {
    of("attempts", "attempts", "N", FlagForm::Json, help).default("3")
}

const REVIEW_HELP: &str = "\
Another session reads the work once its checks have passed, under --permissions read-only. Its findings go back to the
agent as another attempt. Findings that stay open are warnings: a review neither fails nor passes a phase.
Without AGENT, the run's own agent reviews. To name an agent of your own, use =: --review=mine, or --review=AGENT:MODEL.";

const fn review() -> Row<Adhoc> {
    of("review", "review", "AGENT[:MODEL]", FlagForm::Attached, "have another session review the work")
        .more(REVIEW_HELP)
}

const fn review_rounds() -> Row<Adhoc> {
    of("review_rounds", "review-rounds", "N", FlagForm::Json, "how many times findings go back to the agent, 0 to 10")
        .default("2")
}

const AT_A_DRAFT: &str = "how many attempts the agent has at the draft, 1 to 10";

const SPEC_OWN: [Row<Adhoc>; 8] = [
    of("name", "name", "NAME", FlagForm::Text, "the name of the specification")
        .more("By default, the name is derived from the first line of the description.")
        .begins("The specification"),
    force(),
    resume(),
    of("skill", "skill", "NAME", FlagForm::Text, "begin the prompt with the agent's own command /NAME"),
    ignore(),
    attempts(AT_A_DRAFT),
    review(),
    review_rounds(),
];

const PLAN_OWN: [Row<Adhoc>; 6] =
    [force().begins("The plan"), resume(), ignore(), attempts(AT_A_DRAFT), review(), review_rounds()];

pub(crate) const SPEC: &[Row<Adhoc>] =
    &joined::<{ SPEC_OWN.len() }, { SPEC_OWN.len() + ADHOC.len() - LEFT_OUT.len() }>(SPEC_OWN, &LEFT_OUT);
pub(crate) const PLAN: &[Row<Adhoc>] =
    &joined::<{ PLAN_OWN.len() }, { PLAN_OWN.len() + ADHOC.len() - LEFT_OUT.len() }>(PLAN_OWN, &LEFT_OUT);

pub(crate) const IMPLEMENT: &[Row<Adhoc>] = &joined::<
    { IMPLEMENT_OWN.len() },
    { IMPLEMENT_OWN.len() + ADHOC.len() - LEFT_OUT.len() },
>(IMPLEMENT_OWN, &LEFT_OUT);

const VERIFY_HELP: &str = "\
Without it, you are asked for consent to the plan's commands before the first phase, unless --permissions allows execute.
Read the commands first: they come from a file. --dry-run shows them.";

const IMPLEMENT_OWN: [Row<Adhoc>; 11] = [
    attempts("how many attempts the agent has at a phase, 1 to 10").begins("The plan"),
    review(),
    review_rounds(),
    of("max_phases", "max-phases", "N", FlagForm::Json, "stop after N phases have passed"),
    of("phase_timeout_s", "phase-timeout", "SECONDS", FlagForm::Json, "limit for a phase with all its attempts and commands"),
    of("allow_verify", "allow-verify", "", YES, "consent to the plan's commands in advance")
    .more(VERIFY_HELP),
    of("accept_done", "accept-done", "", YES, "count a phase as passed if its commands pass before any work")
    .more("Without it, you are asked; in a headless run, the agent works on such a phase anyway."),
    of("verify_timeout_s", "verify-timeout", "SECONDS", FlagForm::Json, "limit for each command of the plan")
    .default("600"),
    of("commit", "commit", "", YES, "make a git commit for each phase that passes"),
    of("commit_message", "commit-message", "TEMPLATE", FlagForm::Text, "with --commit: the message of each commit")
    .more("In it, {plan}, {n}, {title} and {tasks} stand for the plan's name and the phase, as in `feat({plan}): {title}`."),
    of("allow_dirty", "allow-dirty", "", YES, "with --commit: allow changes from before the run, and leave them uncommitted"),
];

const fn joined<const OWN: usize, const ALL: usize>(own: [Row<Adhoc>; OWN], left_out: &[&str]) -> [Row<Adhoc>; ALL] {
    let mut all = [ADHOC[0]; ALL];
    let (mut at, mut to) = (0, 0);
    while at < OWN {
        all[to] = own[at];
        (at, to) = (at + 1, to + 1);
    }
    at = 0;
    while at < ADHOC.len() {
        if !is_left_out(left_out, ADHOC[at].flag.long) {
            all[to] = ADHOC[at];
            to += 1;
        }
        at += 1;
    }
    assert!(to == ALL, "a flag to leave out does not exist");
    all
}

const fn is_left_out(left_out: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < left_out.len() {
        if crate::protocol::fields::equal(left_out[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}
