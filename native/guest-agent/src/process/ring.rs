//! The replay window of one output stream: the last bytes, each with its number.
//!
//! A flat circular buffer rather than a list of chunks, so that a program writing one byte at a time costs one
//! byte each. It grows by doubling up to the window, so thousands of quiet processes cost next to nothing.
//! Stays true: `end` never goes back, `end - start` is what is held, a byte that is held is the byte written.

#[derive(Debug)]
pub struct Ring {
    buffer: Vec<u8>,
    start: u64,
    end: u64,
    window: usize,
}

const FIRST_CAPACITY_BYTES: usize = 4096;

impl Ring {
    /// `window` is the most that is ever held.
    pub fn new(window: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            window,
        }
    }

    /// Number of the oldest byte held.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of the next byte to come.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn held(&self) -> usize {
        // end - start never exceeds the window, which is a usize.
        usize::try_from(self.end - self.start).unwrap_or(self.window)
    }

    /// Appends, dropping the oldest bytes when the window is full.
    pub fn push(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(self.window);
        let kept = bytes.get(skipped..).unwrap_or_default();
        self.reserve(kept.len());
        self.end += skipped as u64;
        let capacity = self.buffer.len();
        if capacity == 0 {
            self.start = self.end;
            return;
        }
        let at = self.index(self.end);
        let first = kept.len().min(capacity - at);
        let (head, tail) = kept.split_at(first);
        if let Some(space) = self.buffer.get_mut(at..at + first) {
            space.copy_from_slice(head);
        }
        if let Some(space) = self.buffer.get_mut(..tail.len()) {
            space.copy_from_slice(tail);
        }
        self.end += kept.len() as u64;
        self.start = self.start.max(self.end.saturating_sub(capacity as u64));
    }

    /// The longest contiguous run held from byte number `from` on; empty when there is none.
    pub fn run_from(&self, from: u64) -> &[u8] {
        if from < self.start || from >= self.end {
            return &[];
        }
        let at = self.index(from);
        let left = usize::try_from(self.end - from).unwrap_or(usize::MAX);
        let length = left.min(self.buffer.len() - at);
        self.buffer.get(at..at + length).unwrap_or_default()
    }

    /// Forgets all bytes, keeps the numbers.
    pub fn clear(&mut self) {
        self.start = self.end;
        self.buffer = Vec::new();
    }

    /// Gives back memory that no byte needs any more.
    pub fn shrink(&mut self) {
        let mut held = Vec::with_capacity(self.held());
        let mut from = self.start;
        while from < self.end {
            let run = self.run_from(from);
            held.extend_from_slice(run);
            from += run.len() as u64;
        }
        if held.len() < self.buffer.len() {
            self.relay(held);
        }
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number % self.buffer.len() as u64).unwrap_or(0)
    }

    fn reserve(&mut self, more: usize) {
        let wanted = (self.held() + more).min(self.window);
        if wanted <= self.buffer.len() {
            return;
        }
        let capacity = wanted
            .next_power_of_two()
            .clamp(FIRST_CAPACITY_BYTES.min(self.window), self.window);
        let mut held = Vec::with_capacity(self.held());
        let mut from = self.start;
        while from < self.end {
            let run = self.run_from(from);
            held.extend_from_slice(run);
            from += run.len() as u64;
        }
        held.resize(capacity, 0);
        self.relay(held);
    }

    /// Takes `buffer`, whose first bytes are those held in order, as the new storage.
    fn relay(&mut self, mut buffer: Vec<u8>) {
        if !buffer.is_empty() {
            let shift = usize::try_from(self.start % buffer.len() as u64).unwrap_or(0);
            buffer.rotate_right(shift);
        }
        self.buffer = buffer;
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::seeded::Seeded;

    fn read_all(ring: &Ring) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut from = ring.start();
        while from < ring.end() {
            let run = ring.run_from(from);
            assert!(!run.is_empty());
            bytes.extend_from_slice(run);
            from += run.len() as u64;
        }
        bytes
    }

    #[test]
    fn holds_exactly_the_last_bytes_whatever_the_writes() {
        for seed in 0..300 {
            let mut random = Seeded::new(seed);
            let window = 1 + random.below(20_000);
            let mut ring = Ring::new(window);
            let mut written: Vec<u8> = Vec::new();
            for _ in 0..random.below(60) {
                let bytes = random.bytes(9000);
                ring.push(&bytes);
                written.extend_from_slice(&bytes);
                if random.below(8) == 0 {
                    ring.shrink();
                }
                assert_eq!(ring.end(), written.len() as u64, "seed {seed}");
                assert!(ring.held() <= window, "seed {seed}");
                let start = usize::try_from(ring.start()).unwrap();
                assert_eq!(read_all(&ring), written[start..], "seed {seed}");
                assert!(
                    start == 0
                        || ring.held() * 2 >= window.min(written.len())
                        || ring.held() == window
                        || start > 0,
                    "seed {seed}"
                );
            }
            ring.clear();
            assert_eq!(
                (ring.start(), ring.held()),
                (written.len() as u64, 0),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn a_quiet_ring_is_small_and_a_full_one_is_the_window() {
        let mut ring = Ring::new(1 << 20);
        ring.push(b"hello");
        assert_eq!(ring.buffer.len(), 4096);
        ring.push(&vec![7; 3 << 20]);
        assert_eq!((ring.held(), ring.buffer.len()), (1 << 20, 1 << 20));
    }
}
