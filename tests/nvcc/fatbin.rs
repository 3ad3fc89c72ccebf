//! Which code an object holds for GPUs, read from the records that nvcc puts into it.

const MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();

/// `sm_120` for machine code, `compute_120` for PTX; sorted, each once.
pub fn codes(object: &[u8]) -> Vec<String> {
    let mut codes: Vec<String> = records(object).flat_map(entries).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// The body of each record: magic, version (16 bits), size of the header (16 bits), size of the body (64 bits).
fn records(object: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = object.windows(4).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
    starts.filter_map(|(start, _)| {
        let record = &object[start..];
        let (header, size) = (number(record, 6, 2)?, number(record, 8, 8)?);
        record.get(header..header.checked_add(size)?)
    })
}

/// Kind (16 bits: 1 PTX, 2 machine code), 16 bits, size of the header, size of the payload (64 bits), …, architecture.
fn entries(mut body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((next, code)) = entry(body) {
        found.push(code);
        body = next;
    }
    found
}

fn entry(body: &[u8]) -> Option<(&[u8], String)> {
    let kind = match number(body, 0, 2)? {
        1 => "compute",
        2 => "sm",
        _ => return None,
    };
    let arch = number(body, 28, 4)?;
    let next = number(body, 4, 4)?.checked_add(number(body, 8, 8)?)?;
    Some((body.get(next..)?, format!("{kind}_{arch}")))
}

/// A number, the least byte first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + length)?;
    usize::try_from(bytes.iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))).ok()
}
