//! Commands that change relays while they run, one a line:
//!
//! ```text
//! n1-n2 both delay=5ms bandwidth=20MB
//! * forward cut=on
//! n1-n2 back loss=1% delay=0
//! n1-n2 break
//! show
//! ```
//!
//! The first word names a relay, `*` all of them; the second a direction. What is not named stays
//! as it is; `bandwidth=off` lifts a limit. The answer to each command is one line per relay that
//! it touched, as it is now.

use std::time::Duration;

use super::{Direction, Line, Relay};

/// A relay and what commands call it.
#[derive(Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The relay.
    pub relay: Relay,
}

/// Does what a line says and returns the answer.
///
/// # Errors
/// What is wrong with the line.
pub fn run(relays: &[Named], command: &str) -> Result<String, String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (name, rest) = match words.as_slice() {
        [] => return Ok(String::new()),
        ["show"] => ("*", &words[..0]),
        [name, rest @ ..] if !rest.is_empty() => (*name, rest),
        _ => {
            return Err(format!(
                "{command}: not of the form RELAY DIRECTION NAME=VALUE"
            ))
        }
    };
    let chosen: Vec<&Named> = relays
        .iter()
        .filter(|relay| name == "*" || relay.name == name)
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = relays.iter().map(|relay| relay.name.as_str()).collect();
        return Err(format!("no relay {name}; there are {}", names.join(", ")));
    }
    match rest {
        [] => {}
        ["break"] => chosen.iter().for_each(|one| one.relay.break_connections()),
        [direction, changes @ ..] => {
            let directions = match *direction {
                "forward" => &Direction::ALL[..1],
                "back" => &Direction::ALL[1..],
                "both" => &Direction::ALL[..],
                _ => return Err(format!("{direction}: not forward, back, both or break")),
            };
            // All of it is read before any of it is done.
            parse(Line::default(), changes)?;
            for one in &chosen {
                for direction in directions {
                    let line = parse(one.relay.line(*direction), changes)?;
                    one.relay.set(*direction, line);
                }
            }
        }
    }
    let shown: Vec<String> = chosen.iter().map(|one| show(one)).collect();
    Ok(shown.join("\n"))
}

/// A line with the changes that the words ask for, such as `delay=5ms`.
///
/// # Errors
/// What is wrong with a word.
pub fn parse(mut line: Line, words: &[&str]) -> Result<Line, String> {
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word}: not of the form NAME=VALUE"))?;
        let wrong = |expected: &str| format!("{word}: {name} is {expected}");
        match name {
            "delay" => line.delay = duration(value).ok_or_else(|| wrong("a time such as 5ms"))?,
            "bandwidth" if value == "off" => line.bandwidth = None,
            "bandwidth" => {
                let bytes = bytes(value).ok_or_else(|| wrong("a rate such as 20MB, or off"))?;
                line.bandwidth = Some(bytes);
            }
            "loss" => line.loss = chance(value).ok_or_else(|| wrong("a share such as 1%"))?,
            "cut" if value == "on" => line.cut = true,
            "cut" if value == "off" => line.cut = false,
            "cut" => return Err(wrong("on or off")),
            _ => return Err(format!("{word}: not delay, bandwidth, loss or cut")),
        }
    }
    Ok(line)
}

/// A time: `0`, `200us`, `5ms`, `1.5s`.
pub fn duration(value: &str) -> Option<Duration> {
    let (number, unit) = split(value)?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "" if number == 0.0 => 0.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Bytes, per second where a rate is meant: `500kB`, `20MB`, `20MB/s`.
pub fn bytes(value: &str) -> Option<u64> {
    let (number, unit) = split(value.strip_suffix("/s").unwrap_or(value))?;
    let factor = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    let bytes = number * factor;
    (bytes >= 1.0).then_some(bytes as u64)
}

fn chance(value: &str) -> Option<f64> {
    let share = match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => value.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn split(value: &str) -> Option<(f64, &str)> {
    let digits = value
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
    let (number, unit) = value.split_at(digits.count());
    Some((number.parse().ok()?, unit))
}

fn show(named: &Named) -> String {
    let relay = &named.relay;
    let ways = Direction::ALL.map(|direction| {
        let line = relay.line(direction);
        let bandwidth = match line.bandwidth {
            Some(bytes) => format!("{:.3}MB", bytes as f64 / 1e6),
            None => "off".to_owned(),
        };
        format!(
            "{} delay={}us bandwidth={bandwidth} loss={}% cut={} bytes={}",
            match direction {
                Direction::Forward => "forward",
                Direction::Back => "back",
            },
            line.delay.as_micros(),
            line.loss * 100.0,
            if line.cut { "on" } else { "off" },
            relay.bytes(direction)
        )
    });
    format!(
        "{} {} > {}: {}",
        named.name,
        relay.address(),
        relay.target(),
        ways.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = parse(
            Line::default(),
            &["delay=1.5ms", "bandwidth=20MB/s", "loss=1%", "cut=on"],
        );
        let expected = Line {
            delay: Duration::from_micros(1_500),
            bandwidth: Some(20_000_000),
            loss: 0.01,
            cut: true,
        };
        assert_eq!(line, Ok(expected));
        let line = parse(expected, &["bandwidth=off", "cut=off", "delay=0"]);
        let loss_only = Line {
            loss: 0.01,
            ..Line::default()
        };
        assert_eq!(line, Ok(loss_only));
        for wrong in [
            "delay=5",
            "bandwidth=0MB",
            "loss=101%",
            "cut=maybe",
            "x=1",
            "cut",
        ] {
            assert!(parse(Line::default(), &[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_change_the_relays_they_name() {
        let target = "127.0.0.1:9".parse().unwrap();
        let relays = ["a", "b"].map(|name| Named {
            name: name.to_owned(),
            relay: Relay::to(target).unwrap(),
        });
        let said = run(&relays, "a forward delay=5ms").unwrap();
        assert!(said.starts_with("a 127.0.0.1:"), "{said}");
        assert!(said.contains("forward delay=5000us"), "{said}");
        assert!(said.contains("back delay=0us"), "{said}");
        assert_eq!(run(&relays, "show").unwrap().lines().count(), 2);
        run(&relays, "* both cut=on").unwrap();
        assert!(relays.iter().all(|one| one.relay.line(Direction::Back).cut));
        assert!(run(&relays, "c both cut=on").unwrap_err().contains("a, b"));
        assert!(run(&relays, "a sideways cut=on").is_err());
        assert!(run(&relays, "a").is_err());
    }
}
