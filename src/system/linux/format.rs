//! Whether the kernel can run a program file. With glibc, `exec` passes every file that the kernel refuses to a shell, so
//! this must be known before.

use std::fs::File;
use std::io::{ErrorKind, Read};

/// The size of the largest ELF header, in bytes.
const HEADER: usize = 64;

/// Says yes if the file cannot be read: the kernel then decides.
pub(crate) fn is_executable(mut program: File) -> bool {
    let mut header = Vec::new();
    match program.by_ref().take(HEADER as u64).read_to_end(&mut header) {
        Ok(_) => {}
        Err(error) => return error.kind() != ErrorKind::UnexpectedEof,
    }
    if header.starts_with(b"#!") {
        return true;
    }
    let size = program.metadata().map_or(u64::MAX, |meta| meta.len());
    Elf::read(&header).is_some_and(|elf| elf.runs_here(size)) || (header.len() > 1 && runs_other_formats())
}

/// Whether interpreters of other formats are registered, such as emulators: the kernel then decides.
fn runs_other_formats() -> bool {
    let entries = std::fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name != "register" && name != "status")
}

/// The fields of an ELF header that the kernel checks.
struct Elf {
    kind: u16,
    machine: u16,
    /// The size of an entry of the table of program headers, the size that the file's class requires, and the position and
    /// length of the table.
    entry: u16,
    entry_of_class: u16,
    table: u64,
    entries: u16,
}

impl Elf {
    /// `None`: this is not the header of an ELF file in this machine's byte order.
    fn read(header: &[u8]) -> Option<Elf> {
        const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
        if !header.starts_with(b"\x7fELF") || header.get(5) != Some(&ORDER) {
            return None;
        }
        let short = |at: usize| Some(u16::from_ne_bytes(header.get(at..at + 2)?.try_into().ok()?));
        let (table, entry_at, entry_of_class) = match header.get(4)? {
            1 => (u64::from(u32::from_ne_bytes(header.get(28..32)?.try_into().ok()?)), 42, 32),
            2 => (u64::from_ne_bytes(header.get(32..40)?.try_into().ok()?), 54, 56),
            _ => return None,
        };
        let (kind, machine) = (short(16)?, short(18)?);
        Some(Elf { kind, machine, entry: short(entry_at)?, entry_of_class, table, entries: short(entry_at + 2)? })
    }

    fn runs_here(&self, size: u64) -> bool {
        const EXECUTABLE: u16 = 2;
        const SHARED: u16 = 3;
        // The processor's own number, and those of its 32-bit programs.
        let machines: &[u16] = match std::env::consts::ARCH {
            "x86_64" => &[62, 3, 6],
            "aarch64" => &[183, 40],
            _ => &[],
        };
        let end = self.table.checked_add(u64::from(self.entry) * u64::from(self.entries));
        matches!(self.kind, EXECUTABLE | SHARED)
            && (machines.is_empty() || machines.contains(&self.machine))
            && self.entries > 0
            && self.entry == self.entry_of_class
            && end.is_some_and(|end| end <= size)
    }
}

#[cfg(test)]
mod tests {
    use super::{is_executable, runs_other_formats};
    use std::fs::File;
    use std::path::Path;

    #[test]
    fn programs_of_this_machine_run_and_damaged_or_foreign_ones_do_not() {
        let own = std::env::current_exe().unwrap();
        for program in [own.as_path(), Path::new("/bin/sh"), Path::new(".ci/run")] {
            assert!(is_executable(File::open(program).unwrap()), "{}", program.display());
        }
        let whole = std::fs::read(&own).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let runs = |bytes: &[u8]| {
            let file = folder.path().join("program");
            std::fs::write(&file, bytes).unwrap();
            is_executable(File::open(file).unwrap())
        };
        assert!(runs(&whole[..4096]), "the kernel reads no more than the headers");
        assert!(!runs(b"") && !runs(b"\x7f"));
        let mut foreign = whole[..4096].to_vec();
        foreign[18] = 22;
        for refused in [&whole[..20], &whole[..63], &whole[..100], &foreign, b"echo hi\n", b"\x01\xff\necho hi\n"] {
            assert_eq!(runs(refused), runs_other_formats(), "{:?}", &refused[..refused.len().min(20)]);
        }
    }
}
