//! Mutations of the seeds, without a fuzzing engine.
//!
//! `cargo run --release -- TARGET [--seconds 60] [--start N]`: every input is a function of its number, so a failure is
//! found again with `--start` and the number printed.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use penstock_fuzz::{TARGETS, Target};

/// Longer inputs find nothing that shorter ones do not, only later.
const INPUT_BYTES_MAX: usize = 4096;
/// No input may take longer; hanging is a failure too.
const INPUT_TIME_MAX: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str, default: u64| -> Result<u64, std::num::ParseIntError> {
        let found = arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
        found.map_or(Ok(default), |text| text.parse())
    };
    let (seconds, start) = (value("--seconds", 60)?, value("--start", 0)?);
    let name = arguments.first().map_or("", String::as_str);
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("a target is needed, one of: {}", names.join(", ")).into());
    };
    let seeds = seeds(target)?;
    let mut out = std::io::stdout().lock();
    let (begun, mut number) = (Instant::now(), start);
    for seed in &seeds {
        (target.check)(seed);
    }
    while begun.elapsed() < Duration::from_secs(seconds) {
        let input = input(number, &seeds, target.dictionary);
        let before = Instant::now();
        if std::panic::catch_unwind(|| (target.check)(&input)).is_err() {
            writeln!(out, "failed at number {number}:\n{}", String::from_utf8_lossy(&input))?;
            return Err(format!("again with --start {number}").into());
        }
        if before.elapsed() > INPUT_TIME_MAX {
            return Err(format!("input {number} took {:?}", before.elapsed()).into());
        }
        number += 1;
    }
    writeln!(out, "{name}: {} inputs from {} seeds, no failure", number - start, seeds.len())?;
    Ok(())
}

fn seeds(target: &Target) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let own = root.join(target.name);
    let folder = if own.is_dir() { own } else { root.join("xml") };
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    paths.sort_by_key(std::fs::DirEntry::file_name);
    Ok(paths.iter().map(|entry| std::fs::read(entry.path())).collect::<Result<_, _>>()?)
}

/// The input with this number.
fn input(number: u64, seeds: &[Vec<u8>], dictionary: &[&str]) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, seeds, dictionary, &mut random);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dictionary: &[&str], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(16)).min(bytes.len());
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => bytes.truncate(at),
        4 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        5 => bytes.insert(at, random.below(256) as u8),
        _ => {
            let word = dictionary[random.below(dictionary.len())];
            bytes.splice(at..at, word.bytes());
        }
    }
}

/// A small generator; the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }
}
