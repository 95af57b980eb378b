//! Numbers as words.

/// `1 host`, `3 hosts`: a noun that takes an `s`.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    // A number that is larger than any is not one.
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// `is` for one, `are` for any other number.
pub fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        assert_eq!(counted(1_usize, "host"), "1 host");
        assert_eq!(counted(0_u32, "GPU"), "0 GPUs");
        assert_eq!(counted(21_u64, "reboot"), "21 reboots");
        assert_eq!([are(0), are(1), are(2)], ["are", "is", "are"]);
    }
}
