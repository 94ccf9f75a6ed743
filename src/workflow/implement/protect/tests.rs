//! Tests of the protected paths: their contents, links and limits.

use super::{FILES, ProtectedState, Unread, covers, hex};
use crate::process::query::Until;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};
use tempfile::TempDir;

fn soon() -> Until {
    Until::deadline(Instant::now() + Duration::from_secs(60))
}

fn take(project: &Path, entries: &[String], until: &Until) -> Result<ProtectedState, Unread> {
    ProtectedState::read(project, entries, None, until)
}

fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("tests/deep")).unwrap();
    fs::write(folder.path().join("tests/a"), "one").unwrap();
    fs::write(folder.path().join("tests/deep/b"), "two").unwrap();
    fs::write(folder.path().join("Makefile"), "all:").unwrap();
    fs::write(folder.path().join("free"), "free").unwrap();
    folder
}

fn after(change: impl FnOnce(&Path)) -> Vec<String> {
    let folder = project();
    let entries = ["tests/".to_owned(), "Makefile".to_owned(), "absent".to_owned()];
    let before = take(folder.path(), &entries, &soon()).unwrap();
    change(folder.path());
    before.look(folder.path(), &soon()).changed
}

#[test]
fn every_kind_of_change_is_found_and_nothing_else() {
    assert_eq!(after(|_| {}), [""; 0]);
    assert_eq!(after(|at| fs::write(at.join("free"), "x").unwrap()), [""; 0]);
    assert_eq!(after(|at| fs::write(at.join("tests/deep/b"), "TWO").unwrap()), ["tests/deep/b"]);
    assert_eq!(after(|at| fs::write(at.join("tests/new"), "").unwrap()), ["tests/new"]);
    assert_eq!(after(|at| fs::write(at.join("absent"), "").unwrap()), ["absent"]);
    assert_eq!(after(|at| fs::remove_file(at.join("Makefile")).unwrap()), ["Makefile"]);
    assert_eq!(after(|at| fs::create_dir(at.join("tests/empty")).unwrap()), ["tests/empty"]);
    assert_eq!(
        after(|at| fs::remove_dir_all(at.join("tests")).unwrap()),
        ["tests", "tests/a", "tests/deep", "tests/deep/b"]
    );
    let executable = |at: &Path| fs::set_permissions(at.join("tests/a"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(after(executable), ["tests/a"]);
}

#[test]
fn a_change_behind_the_same_size_and_time_is_found() {
    let forge = |at: &Path| {
        let path = at.join("tests/a");
        let then = fs::metadata(&path).unwrap().modified().unwrap();
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all(b"ONE").unwrap();
        file.set_times(FileTimes::new().set_modified(then)).unwrap();
    };
    assert_eq!(after(forge), ["tests/a"]);
}

#[test]
fn a_link_counts_as_a_link_anywhere() {
    let swap_folder = |at: &Path| {
        fs::rename(at.join("tests"), at.join("moved")).unwrap();
        symlink("moved", at.join("tests")).unwrap();
    };
    let moved = ["moved", "moved/a", "moved/deep", "moved/deep/b"];
    assert_eq!(after(swap_folder), [&moved[..], &["tests", "tests/a", "tests/deep", "tests/deep/b"]].concat());
    let swap_file = |at: &Path| {
        fs::rename(at.join("Makefile"), at.join("moved")).unwrap();
        symlink("moved", at.join("Makefile")).unwrap();
    };
    assert_eq!(after(swap_file), ["Makefile", "moved"]);
    // A link to a folder around it protects nothing else.
    let folder = project();
    symlink("..", folder.path().join("tests/up")).unwrap();
    let before = take(folder.path(), &["tests/".to_owned()], &soon()).unwrap();
    fs::write(folder.path().join("free"), "changed").unwrap();
    assert_eq!(before.look(folder.path(), &soon()).changed, [""; 0]);
}

#[test]
fn a_change_behind_a_link_is_found() {
    let (folder, outside) = (project(), tempfile::tempdir().unwrap());
    let at = folder.path().canonicalize().unwrap();
    let shared = outside.path().canonicalize().unwrap().join("run.sh");
    fs::create_dir_all(at.join("checks")).unwrap();
    fs::write(&shared, "make test").unwrap();
    symlink("../tests/deep", at.join("checks/deep")).unwrap();
    symlink(&shared, at.join("checks/run.sh")).unwrap();
    symlink("loop", at.join("checks/loop")).unwrap();
    let take_checks = || take(&at, &["checks/".to_owned()], &soon()).unwrap();
    let before = take_checks();
    assert_eq!(before.look(&at, &soon()).changed, [""; 0]);
    let behind: Vec<String> = before.behind_links().collect();
    assert_eq!(behind, [shared.to_str().unwrap(), "tests/deep", "tests/deep/b"]);
    fs::write(&shared, "exit 0").unwrap();
    assert_eq!(before.look(&at, &soon()).changed, [shared.to_str().unwrap()]);
    let before = take_checks();
    fs::write(at.join("tests/deep/b"), "TWO").unwrap();
    assert_eq!(before.look(&at, &soon()).changed, ["tests/deep/b"]);
}

#[test]
fn a_link_on_the_way_to_the_target_counts() {
    let folder = project();
    let at = folder.path().canonicalize().unwrap();
    symlink("tests/a", at.join("way")).unwrap();
    symlink("../way", at.join("tests/link")).unwrap();
    symlink("../nowhere", at.join("tests/open")).unwrap();
    let before = take(&at, &["tests/".to_owned()], &soon()).unwrap();
    assert_eq!(before.look(&at, &soon()).changed, [""; 0]);
    // Both targets are protected already and stay as they are.
    fs::remove_file(at.join("way")).unwrap();
    symlink("tests/deep/b", at.join("way")).unwrap();
    assert_eq!(before.look(&at, &soon()).changed, ["tests/link"]);
    fs::write(at.join("nowhere"), "").unwrap();
    assert_eq!(before.look(&at, &soon()).changed, ["nowhere", "tests/link", "tests/open"]);
}

#[test]
fn behind_a_link_to_a_folder_only_the_rest_of_the_path_counts() {
    let folder = project();
    let at = folder.path().canonicalize().unwrap();
    symlink("tests", at.join("checks")).unwrap();
    let before = take(&at, &["checks/deep/".to_owned()], &soon()).unwrap();
    assert_eq!(before.behind_links().collect::<Vec<_>>(), ["tests/deep", "tests/deep/b"]);
    fs::write(at.join("tests/a"), "free").unwrap();
    assert_eq!(before.look(&at, &soon()).changed, [""; 0]);
    fs::write(at.join("tests/deep/b"), "TWO").unwrap();
    assert_eq!(before.look(&at, &soon()).changed, ["tests/deep/b"]);
    fs::remove_file(at.join("checks")).unwrap();
    symlink(".", at.join("checks")).unwrap();
    assert_eq!(before.look(&at, &soon()).changed, ["checks", "tests/deep", "tests/deep/b"]);
}

#[test]
fn entries_that_overlap_count_once_and_known_ones_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    fs::create_dir_all(at.join("many/deep")).unwrap();
    (0..FILES - 10).for_each(|n| drop(File::create(at.join("many/deep").join(n.to_string())).unwrap()));
    let mut entries = vec!["many/".to_owned(), "many/deep/".to_owned()];
    let known = take(&at, &entries, &soon()).unwrap();
    fs::write(at.join("many/deep/0"), "changed").unwrap();
    entries = vec!["many/deep/".to_owned(), "more".to_owned()];
    let state = ProtectedState::read(&at, &entries, Some(&known), &soon()).unwrap();
    assert_eq!(state.look(&at, &soon()).changed, ["many/deep/0"]);
    fs::write(at.join("more"), "").unwrap();
    assert_eq!(state.look(&at, &soon()).changed, ["many/deep/0", "more"]);
    fs::write(at.join("many/outside"), "").unwrap();
    assert_eq!(state.look(&at, &soon()).changed, ["many/deep/0", "more"]);
}

#[test]
fn protection_of_the_whole_project_excludes_folders_that_change_by_themselves() {
    let folder = project();
    fs::create_dir(folder.path().join(".spektacular")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    let before = take(folder.path(), &["./".to_owned()], &soon()).unwrap();
    fs::write(folder.path().join(".spektacular/plan.md"), "").unwrap();
    fs::write(folder.path().join(".git/index"), "").unwrap();
    assert_eq!(before.look(folder.path(), &soon()).changed, [""; 0]);
    fs::write(folder.path().join("free"), "changed").unwrap();
    assert_eq!(before.look(folder.path(), &soon()).changed, ["free"]);
}

#[test]
fn too_many_files_and_too_many_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let many = folder.path().join("many");
    fs::create_dir(&many).unwrap();
    (0..FILES).for_each(|n| drop(File::create(many.join(n.to_string())).unwrap()));
    let entries = ["many/".to_owned()];
    let before = take(folder.path(), &entries, &soon()).unwrap();
    File::create(many.join("one more")).unwrap();
    assert_eq!(before.look(folder.path(), &soon()).changed, ["many/"]);
    assert_eq!(take(folder.path(), &entries, &soon()).err(), Some(Unread::TooLarge));
    fs::create_dir(folder.path().join("deep")).unwrap();
    (0..FILES).for_each(|n| fs::create_dir(folder.path().join("deep").join(n.to_string())).unwrap());
    assert_eq!(take(folder.path(), &["deep/".to_owned()], &soon()).err(), Some(Unread::TooLarge), "folders count too");
    // A sparse file is not read.
    File::create(folder.path().join("large")).unwrap().set_len(65 << 20).unwrap();
    assert_eq!(take(folder.path(), &["large".to_owned()], &soon()).err(), Some(Unread::TooLarge));
}

#[test]
fn a_later_run_finds_the_same_differences() {
    use std::os::unix::ffi::OsStrExt;
    let folder = project();
    let odd = folder.path().join("tests").join(std::ffi::OsStr::from_bytes(b"a b\n\xff"));
    fs::write(odd, "odd").unwrap();
    symlink("../Makefile", folder.path().join("tests/link")).unwrap();
    let entries = ["tests/".to_owned()];
    let before = take(folder.path(), &entries, &soon()).unwrap();
    let later = ProtectedState::parse(&before.record()).unwrap();
    assert_eq!(later.record(), before.record());
    assert_eq!(later.look(folder.path(), &soon()).changed, [""; 0]);
    fs::write(folder.path().join("tests/a"), "ONE").unwrap();
    assert_eq!(later.look(folder.path(), &soon()).changed, ["tests/a"]);
    for text in
        ["", "1 2 3", "1 2 3 4\n61 folder", "1 2 3 4\nentry 61\nzz folder", "1 2 3 4\nentry 61\n61 what", "1 2 3 x\n"]
    {
        assert!(ProtectedState::parse(text).is_none(), "{text}");
    }
}

#[test]
fn an_abandoned_read_stops_early() {
    let folder = project();
    let entries = ["./".to_owned()];
    let over = Until::deadline(Instant::now());
    assert_eq!(take(folder.path(), &entries, &over).err(), Some(Unread::GivenUp));
}

#[test]
fn a_protected_path_covers_itself_and_its_contents() {
    let entries = ["tests/".to_owned(), "Makefile".to_owned()];
    for (path, covered) in
        [("tests/a", true), ("tests", true), ("Makefile", true), ("testsuite", false), ("src/tests/a", false)]
    {
        assert_eq!(covers(Path::new("/p"), &entries, &Path::new("/p").join(path)), covered, "{path}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_and_counts_as_changed() {
    // Root reads everything.
    let can_read_all = |path: &Path| File::open(path).is_ok();
    for name in ["tests/a", "tests/deep"] {
        let folder = project();
        let (path, entries) = (folder.path().join(name), ["tests/".to_owned()]);
        let before = take(folder.path(), &entries, &soon()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        if can_read_all(&path) {
            return;
        }
        assert!(before.look(folder.path(), &soon()).changed.contains(&name.to_owned()), "{name}");
        assert_eq!(take(folder.path(), &entries, &soon()).err(), Some(Unread::Unreadable(name.into())));
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }
    // Nor does a record say that it has not changed.
    let folder = project();
    let state = ProtectedState::parse(&format!("1 2 3 4\nentry {}\n{0} unknown", hex(b"tests/a"))).unwrap();
    assert_eq!(state.look(folder.path(), &soon()).changed, ["tests/a"]);
}

#[test]
fn a_file_that_changed_and_was_restored_has_another_stamp() {
    let (folder, entries) = (project(), ["tests/".to_owned()]);
    let before = take(folder.path(), &entries, &soon()).unwrap();
    let look = || before.look(folder.path(), &soon());
    let (path, first) = (folder.path().join("tests/a"), look());
    assert!(first.stamps.differences(&look().stamps).is_empty());
    // Restored with its time, in place and by a rename.
    let restore = |other: &Path| {
        let then = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(other, "ONE").unwrap();
        fs::write(other, "one").unwrap();
        File::options().write(true).open(other).unwrap().set_modified(then).unwrap();
        fs::rename(other, &path).unwrap();
    };
    for other in [&folder.path().join("free"), &path] {
        let then = look();
        let tick = fs::metadata(&path).unwrap();
        // Times of files have the grain of the kernel's clock.
        while crate::system::file_tick() <= UNIX_EPOCH + changed_at(&tick) {}
        restore(other);
        let now = look();
        assert!(now.changed.is_empty(), "the content is the same");
        assert!(then.stamps.differences(&now.stamps).contains(&"tests/a".to_owned()));
    }
    // A folder that makes room for another one for a while.
    let then = look();
    let moved = folder.path().join("moved");
    while crate::system::file_tick() <= UNIX_EPOCH + changed_at(&fs::metadata(folder.path().join("tests")).unwrap()) {}
    fs::rename(folder.path().join("tests"), &moved).unwrap();
    fs::rename(&moved, folder.path().join("tests")).unwrap();
    let now = look();
    assert_eq!((now.changed.len(), then.stamps.differences(&now.stamps)), (0, vec!["tests".to_owned()]));
}

fn changed_at(file: &fs::Metadata) -> Duration {
    Duration::new(file.ctime().unsigned_abs(), u32::try_from(file.ctime_nsec()).unwrap())
}
