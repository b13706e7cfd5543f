//! A small seeded generator for tests: one number reproduces a run. Each test crate uses a part of it.
#![allow(dead_code)]

pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// xorshift64*.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From zero to below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or(0) % bound.max(1)
    }

    /// Fewer than `bound` bytes.
    pub fn bytes(&mut self, bound: usize) -> Vec<u8> {
        let length = self.below(bound);
        (0..length).map(|_| self.next().to_le_bytes()[3]).collect()
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }
}
