//! A log as lines: unpacked, decoded, without colours and the margins that pip, uv, docker and CI put before a line.
//! Memory is bounded, whatever the log is.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::LazyLock;

use flate2::read::MultiGzDecoder;
use regex::Regex;

/// A longer line is cut into pieces of this length.
const LONGEST: u64 = 64 << 10;
/// What lies behind this is not read.
const MOST: u64 = 1 << 30;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TextError(#[from] pub io::Error);

/// Hands each line to `each`, with its number from 1. True where the log was longer than what is read.
pub fn lines(log: impl Read, each: &mut dyn FnMut(usize, &str)) -> Result<bool, TextError> {
    let mut reader = decoded(log)?.take(MOST);
    let (mut number, mut line) = (1, Vec::new());
    loop {
        line.clear();
        let length = (&mut reader).take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(reader.limit() == 0);
        }
        let text = String::from_utf8_lossy(&line);
        // A progress bar writes over its own line.
        text.trim_end_matches(['\n', '\r']).split('\r').for_each(|part| each(number, &clean(part)));
        number += usize::from(line.ends_with(b"\n"));
    }
}

/// Without colours, control characters and margins.
pub fn clean(line: &str) -> String {
    static MARGIN: LazyLock<Regex> = LazyLock::new(|| {
        let docker = r"#\d+\s+\d+\.\d+\s+";
        let actions = r"\d{4}-\d\d-\d\dT[\d:.]+Z?\s+";
        Regex::new(&format!(r"^(?:{docker}|{actions})?[\s│|]*(?:[×╰─>]+\s*)*"))
            .unwrap_or_else(|e| panic!("{e}"))
    });
    let plain = anstream::adapter::strip_str(line).to_string();
    let plain: String = plain.chars().filter(|letter| !letter.is_control() || *letter == '\t').collect();
    MARGIN.replace(&plain, "").trim_end().to_string()
}

/// Gzip is unpacked, UTF-16 (as PowerShell writes it) becomes UTF-8.
fn decoded<'a>(log: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut log = BufReader::new(log);
    let log: Box<dyn BufRead + 'a> = match log.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(MultiGzDecoder::new(log))),
        _ => Box::new(log),
    };
    let mut log = log;
    match *log.fill_buf()? {
        [0xff, 0xfe, ..] => Ok(Box::new(BufReader::new(Utf16 { log, high: None, big: false }))),
        [0xfe, 0xff, ..] => Ok(Box::new(BufReader::new(Utf16 { log, high: None, big: true }))),
        _ => Ok(log),
    }
}

/// UTF-16 as UTF-8, read piece by piece.
struct Utf16<R> {
    log: R,
    high: Option<u16>,
    big: bool,
}

impl<R: BufRead> Utf16<R> {
    fn unit(&mut self) -> io::Result<Option<u16>> {
        let mut pair = [0; 2];
        match self.log.read_exact(&mut pair) {
            Ok(()) if self.big => Ok(Some(u16::from_be_bytes(pair))),
            Ok(()) => Ok(Some(u16::from_le_bytes(pair))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length + 4 <= buffer.len() {
            let Some(unit) = self.unit()? else { break };
            let units = self.high.take().into_iter().chain([unit]);
            if (0xd800..0xdc00).contains(&unit) {
                self.high = Some(unit);
                continue;
            }
            for letter in char::decode_utf16(units).map(|letter| letter.unwrap_or('\u{fffd}')) {
                if length + letter.len_utf8() <= buffer.len() {
                    length += letter.encode_utf8(&mut buffer[length..]).len();
                }
            }
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        super::lines(bytes, &mut |number, text| lines.push((number, text.to_string()))).expect("readable");
        lines
    }

    #[test]
    fn colours_and_margins_go() {
        for (line, text) in [
            ("\u{1b}[31mnvcc fatal\u{1b}[0m   : x", "nvcc fatal   : x"),
            ("      │ error: x  ", "error: x"),
            ("  ╰─> [12 lines of output]", "[12 lines of output]"),
            ("  × python setup.py egg_info did not run", "python setup.py egg_info did not run"),
            ("#12 34.56 nvcc fatal : x", "nvcc fatal : x"),
            ("2025-06-01T10:00:00.1234567Z error: x", "error: x"),
            ("a\u{0}b\u{8}", "ab"),
            ("", ""),
        ] {
            assert_eq!(clean(line), text, "{line}");
        }
    }

    #[test]
    fn packed_and_wide_logs_are_read() {
        let text = "one\r\ntwo: 应 𝄞\nbar 10%\rbar 100%";
        let wanted = [(1, "one"), (2, "two: 应 𝄞"), (3, "bar 10%"), (3, "bar 100%")];
        let wanted: Vec<_> = wanted.iter().map(|(number, text)| (*number, text.to_string())).collect();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).expect("packed");
        let little: Vec<u8> =
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> =
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        for bytes in [text.as_bytes().to_vec(), packed.finish().expect("packed"), little, big] {
            let read: Vec<_> = read(&bytes)
                .into_iter()
                .map(|(n, text)| (n, text.trim_start_matches('\u{feff}').to_string()))
                .collect();
            assert_eq!(read, wanted);
        }
    }

    #[test]
    fn long_lines_come_in_pieces_and_bytes_need_not_be_text() {
        let long = vec![b'x'; 3 * LONGEST as usize];
        assert_eq!(read(&long).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(read(b"\xff\x00\x80\nok"), [(1, "\u{fffd}\u{fffd}".to_string()), (2, "ok".to_string())]);
        let odd = [&[0xff, 0xfe][..], &[0x00, 0xd8, 0x41, 0x00, 0x0a]].concat();
        assert!(!read(&odd).is_empty());
        assert!(lines(&[0x1f, 0x8b, 8, 0][..], &mut |_, _| {}).is_err());
    }
}
