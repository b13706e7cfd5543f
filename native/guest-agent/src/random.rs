//! Randomness from the kernel, for ids.

use std::io;

/// Fills `bytes`. The calls used here ask for fewer than 256 bytes, which the kernel never splits.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: the pointer and length are those of a live slice.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(got) == Ok(bytes.len()) {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// 32 hexadecimal digits.
pub fn hex_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// `pr` and 16 characters of `[a-z2-7]`.
pub fn process_id() -> io::Result<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    let letters = bytes
        .iter()
        .filter_map(|byte| ALPHABET.get(usize::from(byte & 31)).copied())
        .map(char::from);
    Ok("pr".chars().chain(letters).collect())
}
