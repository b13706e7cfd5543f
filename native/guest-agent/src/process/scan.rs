//! `/proc`, read as it is: one line per process.

use std::fs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLine {
    pub pid: i32,
    pub state: char,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub cpu_ticks: u64,
    pub resident_pages: u64,
}

impl ProcessLine {
    /// Over, and only waiting for its parent to look.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Every process visible now. One that ends while it is read is left out.
pub fn all() -> Vec<ProcessLine> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let pid: i32 = name.to_str()?.parse().ok()?;
            parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
        })
        .collect()
}

/// The value of one name in a process's environment.
pub fn environment_value(pid: i32, name: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|pair| {
        pair.strip_prefix(name.as_bytes())?
            .strip_prefix(b"=")
            .map(<[u8]>::to_vec)
    })
}

/// The second field is the program's name in parentheses and may hold anything, so the rest starts after the last
/// closing one.
fn parse(stat: &[u8]) -> Option<ProcessLine> {
    let text = String::from_utf8_lossy(stat);
    let (head, rest) = text.rsplit_once(')')?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i64>().ok());
    let small = |index: usize| number(index).and_then(|value| i32::try_from(value).ok());
    let count = |index: usize| {
        number(index)
            .and_then(|value| u64::try_from(value).ok())
            .unwrap_or(0)
    };
    Some(ProcessLine {
        pid,
        state: fields.first()?.chars().next()?,
        parent: small(1)?,
        group: small(2)?,
        session: small(3)?,
        cpu_ticks: count(11) + count(12),
        resident_pages: count(21),
    })
}

#[cfg(test)]
mod tests {
    use super::{ProcessLine, parse};

    #[test]
    fn reads_a_line_whatever_the_name() {
        let line = b"42 (a) R 1 (x)) S 7 40 41 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 99 1000 25 0";
        let expected = ProcessLine {
            pid: 42,
            state: 'S',
            parent: 7,
            group: 40,
            session: 41,
            cpu_ticks: 7,
            resident_pages: 25,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b"garbage"), None);
        assert_eq!(parse(b"1 (x) S"), None);
    }

    #[test]
    fn finds_itself() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(super::all().iter().any(|line| line.pid == me && !line.is_dead()));
    }
}
