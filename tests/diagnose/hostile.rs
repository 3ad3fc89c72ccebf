//! Logs that are no logs: an answer or an error, in bounded memory and linear time.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use mambapatch::kernels::diagnose::diagnose;
use mambapatch::kernels::facts::Facts;
use proptest::prelude::*;

/// A pattern, again and again.
struct Endless<'a> {
    pattern: &'a [u8],
    at: usize,
    left: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.left);
        for byte in &mut buffer[..length] {
            *byte = self.pattern[self.at % self.pattern.len()];
            self.at += 1;
        }
        self.left -= length;
        Ok(length)
    }
}

fn time(pattern: &str, bytes: usize) -> Duration {
    let began = Instant::now();
    let log = Endless { pattern: pattern.as_bytes(), at: 0, left: bytes };
    let diagnosis = diagnose(log, &Facts::default()).expect("a log");
    assert!(diagnosis.causes.len() < 60);
    began.elapsed()
}

/// Beginnings of what the rules look for, which must not make them look again and again.
const BEGINNINGS: [&str; 8] = [
    "x",
    "nvcc fatal \n",
    "Killed Killed nvcc ",
    "The detected CUDA version (%s) mismatches the version that was used to compilePyTorch ",
    "causal_conv1d_fwd(): incompatible function arguments. (arg0: ",
    "undefined symbol: _ZN3c10torchCheckFail",
    "a\n",
    "\u{1b}[31m\r\u{0}error: ",
];

#[test]
fn time_grows_with_the_log_and_no_faster() {
    for pattern in BEGINNINGS {
        let (small, large) = (time(pattern, 200_000), time(pattern, 800_000));
        assert!(large < small * 12 + Duration::from_millis(500), "{pattern:?}: {small:?}, {large:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..5000), beginning in 0..4_usize) {
        let beginning: &[u8] = [&b"\x1f\x8b\x08"[..], &b"\xff\xfe"[..], &b"\xfe\xff"[..], b""][beginning];
        // An error is as good as an answer.
        let _ = diagnose(&[beginning, &bytes].concat()[..], &Facts::default());
    }

    #[test]
    fn a_cause_is_found_wherever_it_lies(before in 0..80_usize, length in 0..4000_usize, after in 0..50_usize) {
        let line = "y".repeat(length) + "\n";
        let log = line.repeat(before) + "nvcc fatal   : Unsupported gpu architecture 'compute_53'\n" + &line.repeat(after);
        let diagnosis = diagnose(log.as_bytes(), &Facts::default()).expect("a log");
        prop_assert_eq!(&diagnosis.causes[0].id, "D01");
        prop_assert_eq!(diagnosis.causes[0].hit.line, before + 1);
    }
}
