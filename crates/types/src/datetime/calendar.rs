//! Days to year, month and day, and back.

/// Days from 2000-01-01 back to Julian day 0 (4714-11-24 BC), the first there is.
pub const JULIAN_EPOCH: i64 = 2_451_545;
/// The first timestamp, at Julian day 0.
pub const TIMESTAMP_MIN: i64 = -JULIAN_EPOCH * super::DAY;
/// The first timestamp that is out of range: 294277-01-01.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// The first date that is out of range: 5874898-01-01.
pub const DATE_END: i64 = 2_147_483_494 - JULIAN_EPOCH;

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 2000-01-01.
const MARCH_ZERO: i64 = 730_425;

/// A date and time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fields {
    /// Astronomical: 0 is 1 BC.
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub micros: i64,
}

/// Days since 2000-01-01 of a date. Months and days need not be in range.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    // Count years from March, so that the leap day is the last of a year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let cycle = shifted.div_euclid(400);
    let of_cycle = shifted.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_cycle = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year;
    cycle * CYCLE_DAYS + day_of_cycle - MARCH_ZERO
}

/// Year, month and day of days since 2000-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + MARCH_ZERO;
    let cycle = days.div_euclid(CYCLE_DAYS);
    let day_of_cycle = days.rem_euclid(CYCLE_DAYS);
    let of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / 146_096)
        / 365;
    let of_year = day_of_cycle - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = of_cycle + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Whether a year has a leap day.
pub fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days of a month.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 0 (Sunday) to 6.
pub fn weekday(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 6).rem_euclid(7)
}

/// The ISO 8601 year and week.
pub fn iso_week(days: i64) -> (i64, i64) {
    // A week belongs to the year that has its Thursday.
    let monday = days - (weekday(days) + 6) % 7;
    let (year, _, _) = civil_from_days(monday + 3);
    let first = days_from_civil(year, 1, 1);
    (year, (monday + 3 - first) / 7 + 1)
}

/// The Monday of an ISO 8601 week.
pub fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7 + (week - 1) * 7
}

impl Fields {
    /// The fields of microseconds since 2000-01-01 00:00.
    pub fn of(micros: i64) -> Fields {
        let days = micros.div_euclid(super::DAY);
        let (year, month, day) = civil_from_days(days);
        let mut fields = Fields::of_time(micros.rem_euclid(super::DAY));
        (fields.year, fields.month, fields.day) = (year, month, day);
        fields
    }

    /// The fields of a time of day, the date left at zeros.
    pub fn of_time(micros: i64) -> Fields {
        Fields {
            hour: micros / super::HOUR,
            minute: micros / super::MINUTE % 60,
            second: micros / super::SECOND % 60,
            micros: micros % super::SECOND,
            ..Fields::default()
        }
    }

    /// The time of day in microseconds.
    pub fn time(&self) -> i64 {
        self.hour * super::HOUR
            + self.minute * super::MINUTE
            + self.second * super::SECOND
            + self.micros
    }

    /// Days since 2000-01-01.
    pub fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// Microseconds since 2000-01-01 00:00; `None` when out of range of a timestamp.
    pub fn timestamp(&self) -> Option<i64> {
        let micros = i128::from(self.days()) * i128::from(super::DAY) + i128::from(self.time());
        i64::try_from(micros)
            .ok()
            .filter(|micros| in_range(*micros))
    }
}

/// Whether a finite timestamp is in PostgreSQL's range.
pub fn in_range(micros: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&micros)
}

/// Whether a finite date is in PostgreSQL's range.
pub fn date_in_range(days: i64) -> bool {
    (-JULIAN_EPOCH..DATE_END).contains(&days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_come_back() {
        assert_eq!(days_from_civil(2000, 1, 1), 0);
        assert_eq!(days_from_civil(-4713, 11, 24), -JULIAN_EPOCH);
        assert_eq!(days_from_civil(5_874_898, 1, 1), DATE_END);
        for days in (-3_000_000..3_000_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(
                days_from_civil(year, month, day),
                days,
                "{year}-{month}-{day}"
            );
        }
    }
}
