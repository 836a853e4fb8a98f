//! The hosts of a URL that names several: Sentinels, or nodes of a cluster.

use super::address::Address;

/// What the hosts are called in messages.
#[derive(Clone, Copy)]
pub(super) struct Noun {
    pub(super) singular: &'static str,
    pub(super) plural: &'static str,
}

/// Whether both lists have the same places, in any order. No place is listed twice.
pub(super) fn are_same(mine: &[Address], theirs: &[Address]) -> bool {
    mine.len() == theirs.len() && mine.iter().all(|it| theirs.contains(it))
}

/// Whether both lists have a place in common.
pub(super) fn have_one_in_common(mine: &[Address], theirs: &[Address]) -> bool {
    mine.iter().any(|it| theirs.contains(it))
}

/// Whether this is a name of 1 to `most` letters, digits, dots, hyphens and underscores.
pub(super) fn is_name(text: &str, most: usize) -> bool {
    let is_of_one = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !text.is_empty() && text.len() <= most && text.bytes().all(is_of_one)
}

/// The places in such a list, each once. An error message does not quote them.
pub(super) fn hosts(
    list: &str,
    noun: Noun,
    port: u16,
    count_max: usize,
) -> Result<Vec<Address>, String> {
    let mut places = Vec::new();
    for host in list.split(',') {
        let place = place(host, noun, port)?;
        if places.contains(&place) {
            return Err(format!("a {} is listed twice", noun.singular));
        }
        places.push(place);
    }
    if places.len() > count_max {
        return Err(format!("more than {count_max} {}", noun.plural));
    }
    Ok(places)
}

fn place(text: &str, Noun { singular: noun, .. }: Noun, default: u16) -> Result<Address, String> {
    let wrong_port = || format!("the port of a {noun} is not 1 to 65535");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if host.is_empty() {
        return Err(format!("a {noun} host is missing, or there is an extra comma"));
    }
    if host.contains(':') && !host.starts_with('[') {
        return Err(format!("write the IPv6 address of a {noun} in brackets, as in [::1]"));
    }
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port {
        None => default,
        Some(text) if is_number(text) => text.parse().map_err(|_| wrong_port())?,
        Some(_) => return Err(wrong_port()),
    };
    if port == 0 {
        return Err(wrong_port());
    }
    let wrong_host = |_| format!("the host of a {noun} is not a valid host name or IP address");
    // In a URL, the percent sign before the zone of an address is escaped.
    let zoned = host.replacen("%25", "%", 1);
    Address::of(if host.starts_with('[') { &zoned } else { host }, port).map_err(wrong_host)
}
