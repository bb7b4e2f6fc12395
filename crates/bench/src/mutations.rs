//! Inputs that went wrong in a few places, for tests of the readers. The same ones every time.

/// Mutations tried of each seed.
const TRIES: u32 = 3_000;

/// Calls `check` with mutations of the seeds, and a position at which to cut each in two.
pub fn each(seeds: &[&str], mut check: impl FnMut(&[u8], usize)) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        // xorshift64: enough to choose places with.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit.max(1) as u64).unwrap_or(0)
    };
    for seed in seeds {
        for _ in 0..TRIES {
            let mut bytes = seed.as_bytes().to_vec();
            for _ in 0..=below(4) {
                let at = below(bytes.len());
                match below(5) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, u8::try_from(below(256)).unwrap_or(0)),
                    2 if at < bytes.len() => bytes[at] = b"\r\n:;\"<>&{}[]=0f \0\xff"[below(18)],
                    3 if at < bytes.len() => drop(bytes.remove(at)),
                    _ => {
                        let copied = bytes[at.min(bytes.len())..].to_vec();
                        bytes.extend_from_slice(&copied);
                    }
                }
            }
            let split = below(bytes.len() + 1);
            check(&bytes, split);
        }
    }
}
