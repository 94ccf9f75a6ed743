//! The sections Verify and Protect of a phase.

use super::PROTECTED_MAX;
use super::phase::{PlanPhase, Protected, task};
use crate::protocol::limits::{COMMAND_BYTES, COMMANDS};
use crate::protocol::workflow::HOME;
use crate::workflow::markdown::{FencePlace, TextLine};
use crate::workflow::violation::{Rule, Violations};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Other,
    Verify,
    Protect,
}

/// `lines`: those below the heading of the phase.
pub(super) fn read(lines: &[TextLine<'_>], phase: &mut PlanPhase, found: &mut Violations) {
    let (mut section, mut sections, mut fences) = (Section::Other, 0, 0);
    for line in lines {
        if let Some(heading) = line.heading() {
            section = match (heading.level, heading.text) {
                (3, "Verify") => Section::Verify,
                (3, "Protect") => Section::Protect,
                _ => Section::Other,
            };
            if section == Section::Verify {
                sections += 1;
                if sections > 1 {
                    let text = "Merge this section into the earlier `### Verify` of the phase.";
                    found.at(line.number, Rule::Verify, text);
                }
            }
            continue;
        }
        match (section, line.place) {
            (Section::Other, _) => {}
            (Section::Protect, _) => phase.protect.extend(protected(line, found)),
            (Section::Verify, FencePlace::Outside) => phase.manual.extend(manual(line, found)),
            (Section::Verify, FencePlace::Opens(info)) => {
                fences += 1;
                if fences > 1 {
                    found.at(line.number, Rule::Verify, "Put all commands of the phase into one fence.");
                } else if info != "sh" {
                    found.at(line.number, Rule::Verify, "Open this fence with ```sh.");
                }
            }
            (Section::Verify, FencePlace::Inside) if fences == 1 => phase.verify.extend(command(line, found)),
            (Section::Verify, FencePlace::Inside | FencePlace::Closes) => {}
        }
    }
    if phase.verify.len() > COMMANDS {
        found.absent(Rule::TooLarge, "Use at most 20 commands in a phase.");
    }
    if phase.protect.len() > PROTECTED_MAX {
        found.absent(Rule::TooLarge, "Protect at most 50 files and folders in a phase.");
    }
}

fn manual(line: &TextLine<'_>, found: &mut Violations) -> Option<String> {
    line.item()?;
    let text = line.text.strip_prefix("- Manual: ").map(str::trim).filter(|text| !text.is_empty());
    if text.is_none() {
        let text = "Write this list item as `- Manual: TEXT`, or move it out of `### Verify`.";
        found.at(line.number, Rule::Verify, text);
    }
    text.map(str::to_owned)
}

fn command(line: &TextLine<'_>, found: &mut Violations) -> Option<String> {
    let text = line.text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    if text.len() > COMMAND_BYTES {
        found.at(line.number, Rule::Command, "Shorten this command to at most 4,096 bytes.");
    } else if text.ends_with('\\') {
        found.at(line.number, Rule::Command, "Write the command in one line: a backslash does not continue it.");
    }
    Some(text.to_owned())
}

fn protected(line: &TextLine<'_>, found: &mut Violations) -> Option<Protected> {
    let item = line.item().filter(|_| task(line).is_none())?.trim();
    let entry = item.strip_prefix('`').and_then(|item| item.strip_suffix('`')).unwrap_or(item);
    let parts: Vec<&str> = entry.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if entry.starts_with('/') || entry.contains("..") {
        let text = "Name a file or folder of the project by its path from the project's folder.";
        found.at(line.number, Rule::Protect, text);
    } else if parts.iter().any(|part| *part == HOME || *part == ".git") {
        found.at(line.number, Rule::Protect, "Remove this entry: spektacular protects this folder itself.");
    } else if parts.is_empty() {
        found.at(line.number, Rule::Protect, "Name a file or a folder inside the project.");
    }
    Some(Protected { path: parts.join("/"), folder: entry.ends_with('/') })
}
