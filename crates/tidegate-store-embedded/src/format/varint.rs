//! Unsigned LEB128 and the zigzag mapping, as in Protocol Buffers.

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Takes a value off the front of `bytes`; nothing if it is cut off or longer than ten bytes.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The signed distance from `base` to `value` (modulo 2^64), small for both directions.
pub(crate) fn zigzag_from(base: u64, value: u64) -> u64 {
    let distance = value.wrapping_sub(base).cast_signed();
    ((distance << 1) ^ (distance >> 63)).cast_unsigned()
}

/// Undoes [`zigzag_from`].
pub(crate) fn unzigzag_from(base: u64, zigzag: u64) -> u64 {
    base.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips(base: u64, value: u64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            put(&mut bytes, zigzag_from(base, value));
            bytes.extend(&rest);
            let mut left = bytes.as_slice();
            prop_assert_eq!(take(&mut left).map(|zigzag| unzigzag_from(base, zigzag)), Some(value));
            prop_assert_eq!(left, rest.as_slice());
        }
    }

    #[test]
    fn endless_and_cut_values_are_refused() {
        for bytes in [&[][..], &[0x80], &[0xff; 12]] {
            assert_eq!(take(&mut &*bytes), None, "{bytes:x?}");
        }
    }
}
