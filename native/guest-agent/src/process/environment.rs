//! The environment of a process, in layers: the sandbox's, the user's, defaults, the request's, the marker.

use std::collections::BTreeMap;

use crate::users::User;

pub const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Inherited by every descendant, and how a tree is found again after `setsid` and reparenting.
pub const MARKER: &str = "SANDGLASS_PROCESS_ID";

pub fn build(
    identity: &BTreeMap<String, String>,
    user: &User,
    request: &BTreeMap<String, String>,
    tty: bool,
    process_id: &str,
) -> BTreeMap<String, String> {
    let mut env = identity.clone();
    for (name, value) in [
        ("HOME", &user.home),
        ("USER", &user.name),
        ("LOGNAME", &user.name),
        ("SHELL", &user.shell),
    ] {
        env.insert(name.to_owned(), value.clone());
    }
    let terminal = tty.then_some(("TERM", "xterm-256color"));
    for (name, value) in [("PATH", PATH_DEFAULT), ("LANG", "C.UTF-8")]
        .into_iter()
        .chain(terminal)
    {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    env.extend(request.iter().map(|(name, value)| (name.clone(), value.clone())));
    env.insert(MARKER.to_owned(), process_id.to_owned());
    env
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::build;
    use crate::users::Accounts;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_request_wins_over_the_user_over_the_sandbox() {
        let root = Accounts::default().resolve("root").unwrap();
        let env = build(
            &map(&[("HOME", "/x"), ("A", "1"), ("PATH", "/bin")]),
            &root,
            &map(&[("A", "2"), ("USER", "me")]),
            true,
            "pr1",
        );
        let expected = map(&[
            ("A", "2"),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            ("LOGNAME", "root"),
            ("PATH", "/bin"),
            ("SANDGLASS_PROCESS_ID", "pr1"),
            ("SHELL", "/bin/sh"),
            ("TERM", "xterm-256color"),
            ("USER", "me"),
        ]);
        assert_eq!(env, expected);
    }
}
