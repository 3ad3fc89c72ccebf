//! Commits as mails, as `git format-patch` writes them and `git am` takes them.
//!
//! Where a diff holds carriage returns or very long lines, the mail is quoted-printable: `git am` gives back every byte
//! without a flag, where it would take a carriage return at the end of a plain line for a fault of the mail.

use crate::checkout::git::CommitPatch;

/// The longest line that mail may hold, without its end.
const LONGEST: usize = 990;

/// Which mail of how many.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// From 1.
    pub number: usize,
    /// All of them.
    pub total: usize,
}

/// The name of the file of a patch, as git gives it: `0001-Compile-for-more-GPU-architectures.patch`.
pub fn file_name(subject: &str, place: Place) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "._".contains(letter) { letter } else { '-' };
    let words: String = subject.chars().map(plain).collect();
    let words = words.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    let short: String = words.chars().take(52).collect();
    format!("{:04}-{}.patch", place.number, short.trim_end_matches(['.', '-']))
}

/// The mail of a commit; `base` is the commit that the series stands on.
pub fn mail(patch: &CommitPatch, place: Place, base: &str) -> Vec<u8> {
    let mut body = format!("{}\n---\n{}\n", patch.body.trim_end(), patch.stat.trim_end()).into_bytes();
    body.push(b'\n');
    body.extend_from_slice(&patch.diff);
    body.extend_from_slice(
        format!("-- \nmambapatch {}\n\nbase-commit: {base}\n", env!("CARGO_PKG_VERSION")).as_bytes(),
    );
    let quoted =
        patch.diff.contains(&b'\r') || body.split(|byte| *byte == b'\n').any(|line| line.len() > LONGEST);
    let encoding = if quoted { "quoted-printable" } else { "8bit" };
    let numbers = if place.total > 1 { format!(" {}/{}", place.number, place.total) } else { String::new() };
    let head = format!(
        "From {} Mon Sep 17 00:00:00 2001\nFrom: {} <{}>\nDate: {}\nSubject: [PATCH{numbers}] {}\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: {encoding}\n\n",
        patch.commit,
        name(&patch.author.name),
        patch.author.email,
        date(patch.time),
        words(&patch.subject),
    );
    let mut mail = head.into_bytes();
    mail.extend(if quoted { quoted_printable(&body) } else { body });
    mail
}

/// A name as a header holds it.
fn name(name: &str) -> String {
    if name.is_ascii() && name.contains(|letter| "()<>@,:;\\\".[]".contains(letter)) {
        return format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    }
    words(name)
}

/// A text as a header holds it: letters beyond ASCII as encoded words (RFC 2047).
fn words(text: &str) -> String {
    if text.is_ascii() {
        return text.to_string();
    }
    let mut words = vec![String::new()];
    for letter in text.chars() {
        let encoded = match letter {
            ' ' => "_".to_string(),
            letter if letter.is_ascii_alphanumeric() => letter.to_string(),
            letter => letter.to_string().bytes().map(|byte| format!("={byte:02X}")).collect(),
        };
        if words.last().is_some_and(|word| word.len() + encoded.len() > 60) {
            words.push(String::new());
        }
        words.last_mut().into_iter().for_each(|word| word.push_str(&encoded));
    }
    words.iter().map(|word| format!("=?UTF-8?q?{word}?=")).collect::<Vec<_>>().join(" ")
}

/// Bytes as quoted-printable (RFC 2045); a newline stays one.
fn quoted_printable(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut length) = (Vec::new(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        let ends = bytes.get(at + 1).is_none_or(|next| *next == b'\n');
        let piece = match byte {
            b'\n' => {
                out.push(b'\n');
                length = 0;
                continue;
            }
            b' ' | b'\t' if ends => format!("={byte:02X}"),
            b'=' => "=3D".to_string(),
            b' '..=b'~' | b'\t' => char::from(*byte).to_string(),
            _ => format!("={byte:02X}"),
        };
        if length + piece.len() > 75 {
            out.extend_from_slice(b"=\n");
            length = 0;
        }
        // A line that begins like this would begin the next mail of a mailbox.
        let piece = if length == 0 && *byte == b'F' { "=46".to_string() } else { piece };
        length += piece.len();
        out.extend_from_slice(piece.as_bytes());
    }
    out
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time as mail writes it: `Thu, 1 Jan 1970 00:00:00 +0000`.
pub fn date((seconds, offset): (i64, i32)) -> String {
    let local = seconds + i64::from(offset) * 60;
    let (days, clock) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let sign = if offset < 0 { '-' } else { '+' };
    format!(
        "{}, {day} {} {year} {:02}:{:02}:{:02} {sign}{:02}{:02}",
        DAYS[days.rem_euclid(7) as usize],
        MONTHS[month],
        clock / 3600,
        clock / 60 % 60,
        clock % 60,
        offset.abs() / 60,
        offset.abs() % 60,
    )
}

/// The time of a mail, as [`date`] wrote it.
pub fn time_of(mail: &[u8]) -> Option<(i64, i32)> {
    let text = String::from_utf8_lossy(mail);
    let line =
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("Date: "))?;
    let words: Vec<&str> = line.split([' ', ':']).collect();
    let [_, day, month, year, hours, minutes, seconds, zone] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)?;
    let clock = hours.parse::<i64>().ok()? * 3600
        + minutes.parse::<i64>().ok()? * 60
        + seconds.parse::<i64>().ok()?;
    let (sign, zone) = zone.split_at_checked(1)?;
    let zone: i32 = zone.parse().ok()?;
    let offset = (zone / 100 * 60 + zone % 100) * if sign == "-" { -1 } else { 1 };
    let days = days_of((year.parse().ok()?, month, day.parse().ok()?));
    Some((days * 86_400 + clock - i64::from(offset) * 60, offset))
}

/// Year, month (from 0) and day of a day since 1970. The year is taken to begin in March, so that a leap day ends it.
fn civil(days: i64) -> (i64, usize, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, (march + 2) % 12);
    (year + era * 400 + i64::from(month < 2), month as usize, day)
}

/// The day since 1970 of a date; what [`civil`] takes back.
fn days_of((year, month, day): (i64, usize, i64)) -> i64 {
    let year = year - i64::from(month < 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march = (month as i64 + 10) % 12;
    let of_year = (153 * march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read_back() {
        assert_eq!(date((0, 0)), "Thu, 1 Jan 1970 00:00:00 +0000");
        assert_eq!(date((951_827_696, 90)), "Tue, 29 Feb 2000 14:04:56 +0130");
        assert_eq!(date((1_700_000_000, -480)), "Tue, 14 Nov 2023 14:13:20 -0800");
        for seconds in (0..4_000_000_000).step_by(86_399 * 7) {
            for offset in [0, 345, -210] {
                let mail = format!("From: x\nDate: {}\n\nDate: no\n", date((seconds, offset)));
                assert_eq!(time_of(mail.as_bytes()), Some((seconds, offset)), "{mail}");
            }
        }
        assert_eq!(time_of(b"Date: tomorrow\n\n"), None);
    }

    #[test]
    fn headers_hold_every_name() {
        assert_eq!(name("Some One"), "Some One");
        assert_eq!(name("Doe, \"J\""), "\"Doe, \\\"J\\\"\"");
        assert_eq!(words("Zoë B"), "=?UTF-8?q?Zo=C3=AB_B?=");
        assert_eq!(words(&"ö".repeat(12)).split(' ').count(), 2);
    }

    #[test]
    fn files_are_named_as_git_names_them() {
        let place = Place { number: 2, total: 12 };
        assert_eq!(
            file_name("[Build] Use no CUB names, ever.", place),
            "0002-Build-Use-no-CUB-names-ever.patch"
        );
        assert_eq!(file_name(&"ab ".repeat(40), place).len(), "0002-".len() + 52 + ".patch".len());
    }

    #[test]
    fn quoted_lines_are_short_and_keep_what_mail_loses() {
        assert_eq!(quoted_printable(b"a=b \r\n\xff"), b"a=3Db =0D\n=FF");
        assert_eq!(quoted_printable(b"From x \nb"), b"=46rom x=20\nb");
        let long = quoted_printable(&[b'x'; 200]);
        assert!(long.split(|byte| *byte == b'\n').all(|line| line.len() <= 76));
    }
}
