//! Users of the guest: a name, a uid, or uid:gid, looked up in the guest's own `/etc/passwd` and `/etc/group`.
//!
//! The files are looked at each time, since programs inside add users, and read again when they changed: a look costs
//! two calls, reading them ten. They are read by hand, since a static libc has no NSS.
//! They belong to the guest, so they are read as hostile input: regular files only, bounded, broken lines skipped.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::files::directory::status_at;
use crate::sync::LockAnyway;

const ACCOUNT_FILE_MAX_BYTES: u64 = 4 << 20;
/// `setgroups` takes no more than this.
const GROUPS_MAX: usize = 1024;
/// Never a user: the kernel reads it as "leave as it is".
const NO_ID: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups, `gid` included.
    pub groups: Vec<u32>,
    pub home: String,
    pub shell: String,
}

/// The two account files, as text.
#[derive(Debug, Default)]
pub struct Accounts {
    passwd: String,
    group: String,
}

struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
    shell: &'a str,
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// What changes whenever a file does; `None` for one that is not there.
type Version = Option<[i64; 7]>;

/// The files as they were read last.
static READ: Mutex<Option<([Version; 2], Arc<Accounts>)>> = Mutex::new(None);

impl Accounts {
    /// The guest's files as they are now; one that is missing counts as empty.
    pub fn read() -> Arc<Self> {
        // Looked at first: a change while they are read is found at the next look.
        let versions = [version_of(PASSWD), version_of(GROUP)];
        let mut read = READ.locked();
        if let Some((known, accounts)) = read.as_ref() {
            if *known == versions {
                return Arc::clone(accounts);
            }
        }
        let accounts = Arc::new(Self {
            passwd: read_small(PASSWD),
            group: read_small(GROUP),
        });
        // What a user may not read looks empty, and must not be remembered as that.
        // SAFETY: a plain read.
        if unsafe { libc::geteuid() } == 0 {
            *read = Some((versions, Arc::clone(&accounts)));
        }
        accounts
    }

    pub fn new(passwd: &str, group: &str) -> Self {
        Self {
            passwd: passwd.to_owned(),
            group: group.to_owned(),
        }
    }

    pub fn resolve(&self, wanted: &str) -> Outcome<User> {
        if let Some((uid, gid)) = wanted.split_once(':') {
            let (Some(uid), Some(gid)) = (parse_id(uid), parse_id(gid)) else {
                return Err(unknown());
            };
            let mut user = self.by_uid(uid);
            user.gid = gid;
            user.groups = vec![gid];
            return Ok(user);
        }
        if let Some(account) = self.accounts().find(|account| account.name == wanted) {
            return Ok(self.user_of(&account));
        }
        if let Some(uid) = parse_id(wanted) {
            return Ok(self.by_uid(uid));
        }
        // An image without accounts still has its root.
        if wanted == "root" {
            Ok(self.by_uid(0))
        } else {
            Err(unknown())
        }
    }

    pub fn user_name(&self, uid: u32) -> Option<&str> {
        self.accounts()
            .find(|account| account.uid == uid)
            .map(|account| account.name)
    }

    pub fn group_name(&self, gid: u32) -> Option<&str> {
        self.groups()
            .find(|(_, candidate, _)| *candidate == gid)
            .map(|(name, _, _)| name)
    }

    fn by_uid(&self, uid: u32) -> User {
        if let Some(account) = self.accounts().find(|account| account.uid == uid) {
            return self.user_of(&account);
        }
        let home = if uid == 0 { "/root" } else { "/" };
        let name = if uid == 0 {
            "root".to_owned()
        } else {
            uid.to_string()
        };
        // A uid that nobody named gets a group of its own number, never root's.
        User {
            name,
            uid,
            gid: uid,
            groups: vec![uid],
            home: home.to_owned(),
            shell: "/bin/sh".to_owned(),
        }
    }

    fn user_of(&self, account: &Account<'_>) -> User {
        let mut groups = vec![account.gid];
        for (_, gid, members) in self.groups() {
            let member = members.split(',').any(|name| name == account.name);
            if member && !groups.contains(&gid) && groups.len() < GROUPS_MAX {
                groups.push(gid);
            }
        }
        let or = |text: &str, default: &str| {
            if text.starts_with('/') {
                text.to_owned()
            } else {
                default.to_owned()
            }
        };
        User {
            name: account.name.to_owned(),
            uid: account.uid,
            gid: account.gid,
            groups,
            home: or(account.home, "/"),
            shell: or(account.shell, "/bin/sh"),
        }
    }

    fn accounts(&self) -> impl Iterator<Item = Account<'_>> {
        self.passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let uid = parse_id(fields.nth(1)?)?;
            let gid = parse_id(fields.next()?)?;
            let home = fields.nth(1)?;
            let shell = fields.next().unwrap_or_default();
            (!name.is_empty()).then_some(Account {
                name,
                uid,
                gid,
                home,
                shell,
            })
        })
    }

    fn groups(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.group.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let gid = parse_id(fields.nth(1)?)?;
            Some((name, gid, fields.next().unwrap_or_default()))
        })
    }
}

fn parse_id(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != NO_ID)
}

fn unknown() -> GuestError {
    GuestError::new(
        ErrorCode::UserNotFound,
        "The user is not known in this sandbox; name one of /etc/passwd, a uid, or uid:gid.",
    )
}

fn version_of(path: &str) -> Version {
    let status = status_at(Path::new(path), true).ok()?;
    Some([
        status.st_dev.cast_signed(),
        status.st_ino.cast_signed(),
        status.st_size,
        status.st_mtime,
        status.st_mtime_nsec,
        status.st_ctime,
        status.st_ctime_nsec,
    ])
}

fn read_small(path: &str) -> String {
    let Ok(file) = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
    else {
        return String::new();
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return String::new();
    }
    let mut bytes = Vec::new();
    if file.take(ACCOUNT_FILE_MAX_BYTES).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::Accounts;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nana:x:1000:1000::/home/ana:\nbob:x:-1:5::/:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nana:x:1000:\nwheel:x:10:root,ana\nvideo:x:44:ana\n";

    #[test]
    fn resolves_names_uids_and_pairs() {
        let accounts = Accounts::new(PASSWD, GROUP);
        let ana = accounts.resolve("ana").unwrap();
        assert_eq!(
            (
                ana.uid,
                ana.gid,
                ana.groups,
                ana.home.as_str(),
                ana.shell.as_str()
            ),
            (1000, 1000, vec![1000, 10, 44], "/home/ana", "/bin/sh")
        );
        assert_eq!(accounts.resolve("1000").unwrap().name, "ana");
        let pair = accounts.resolve("1000:7").unwrap();
        assert_eq!((pair.uid, pair.gid, pair.groups), (1000, 7, vec![7]));
        let stranger = accounts.resolve("4242").unwrap();
        assert_eq!((stranger.gid, stranger.name.as_str()), (4242, "4242"));
    }

    #[test]
    fn refuses_what_is_nobody() {
        let accounts = Accounts::new(PASSWD, GROUP);
        for wanted in ["", "bob2", "-1", "4294967295", "1:", ":1", "1:-1", "+5"] {
            assert_eq!(
                accounts
                    .resolve(wanted)
                    .map_err(|error| error.code.name())
                    .map(|_| ()),
                Err("user_not_found"),
                "{wanted}"
            );
        }
    }

    #[test]
    fn root_is_there_without_accounts() {
        assert_eq!(Accounts::default().resolve("root").unwrap().uid, 0);
    }
}
