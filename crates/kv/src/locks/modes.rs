//! Lock modes and which of them exclude each other.

use base::engine::{AdvisoryMode, RowLock, TableLock};

/// One mode: a strength of row locks or a mode of table locks.
///
/// Rows and tables never share a lock, so one numbering serves both: 0 to 3 are the strengths of
/// row locks, 4 to 11 the modes of table locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(u8);

/// A set of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Modes(u16);

const ROW_MODES: usize = 4;
const TABLE_MODES: usize = 8;

/// PostgreSQL 15 manual, table 13.3; 1 is a conflict.
#[rustfmt::skip]
const ROW: [[u8; ROW_MODES]; ROW_MODES] = [
    //                 KS S  NKU U
    /* KeyShare */    [0, 0, 0, 1],
    /* Share */       [0, 0, 1, 1],
    /* NoKeyUpdate */ [0, 1, 1, 1],
    /* Update */      [1, 1, 1, 1],
];

/// PostgreSQL 15 manual, table 13.2; 1 is a conflict.
#[rustfmt::skip]
const TABLE: [[u8; TABLE_MODES]; TABLE_MODES] = [
    //                          AS RS RE SUE S SRE E AE
    /* AccessShare */          [0, 0, 0, 0, 0, 0, 0, 1],
    /* RowShare */             [0, 0, 0, 0, 0, 0, 1, 1],
    /* RowExclusive */         [0, 0, 0, 0, 1, 1, 1, 1],
    /* ShareUpdateExclusive */ [0, 0, 0, 1, 1, 1, 1, 1],
    /* Share */                [0, 0, 1, 1, 0, 1, 1, 1],
    /* ShareRowExclusive */    [0, 0, 1, 1, 1, 1, 1, 1],
    /* Exclusive */            [0, 1, 1, 1, 1, 1, 1, 1],
    /* AccessExclusive */      [1, 1, 1, 1, 1, 1, 1, 1],
];

/// For each mode, the modes that it excludes.
const CONFLICTS: [u16; ROW_MODES + TABLE_MODES] = conflicts();

const fn conflicts() -> [u16; ROW_MODES + TABLE_MODES] {
    let mut sets = [0; ROW_MODES + TABLE_MODES];
    let mut i = 0;
    while i < ROW_MODES {
        let mut j = 0;
        while j < ROW_MODES {
            assert!(ROW[i][j] == ROW[j][i], "conflicts are mutual");
            sets[i] |= (ROW[i][j] as u16) << j;
            j += 1;
        }
        i += 1;
    }
    i = 0;
    while i < TABLE_MODES {
        let mut j = 0;
        while j < TABLE_MODES {
            assert!(TABLE[i][j] == TABLE[j][i], "conflicts are mutual");
            sets[ROW_MODES + i] |= (TABLE[i][j] as u16) << (ROW_MODES + j);
            j += 1;
        }
        i += 1;
    }
    sets
}

impl From<RowLock> for Mode {
    fn from(strength: RowLock) -> Mode {
        Mode(strength as u8)
    }
}

impl From<TableLock> for Mode {
    fn from(mode: TableLock) -> Mode {
        Mode(ROW_MODES as u8 + mode as u8)
    }
}

impl From<AdvisoryMode> for Mode {
    fn from(mode: AdvisoryMode) -> Mode {
        match mode {
            AdvisoryMode::Shared => TableLock::Share.into(),
            AdvisoryMode::Exclusive => TableLock::Exclusive.into(),
        }
    }
}

impl Mode {
    /// The modes that this one excludes.
    pub(crate) fn conflicts(self) -> Modes {
        Modes(CONFLICTS[usize::from(self.0)])
    }

    /// As PostgreSQL names lock modes in messages.
    pub(crate) fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }
}

/// The modes as PostgreSQL names them in messages.
const NAMES: [&str; ROW_MODES + TABLE_MODES] = [
    "ForKeyShareLock",
    "ForShareLock",
    "ForNoKeyUpdateLock",
    "ForUpdateLock",
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];

/// The name of a mode.
pub(crate) fn mode_named(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

impl Modes {
    /// As a number, of which [`Modes::from_bits`] makes them again.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// What [`Modes::bits`] gave; none where it gave something else.
    pub(crate) fn from_bits(bits: u16) -> Option<Modes> {
        (u32::from(bits) >> (ROW_MODES + TABLE_MODES) == 0).then_some(Modes(bits))
    }

    /// No mode.
    pub(crate) const NONE: Modes = Modes(0);

    /// Whether the set is empty.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set with one mode more.
    #[must_use]
    pub(crate) fn with(self, mode: Mode) -> Modes {
        Modes(self.0 | 1 << mode.0)
    }

    /// The modes of the set, weakest first.
    pub(crate) fn each(self) -> impl Iterator<Item = Mode> {
        (0..CONFLICTS.len() as u8)
            .filter(move |bit| self.0 & 1 << bit != 0)
            .map(Mode)
    }

    /// The modes of either set.
    #[must_use]
    pub(crate) fn union(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// Whether the sets share a mode.
    pub(crate) fn intersects(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a holder of these modes excludes everything that `mode` would exclude.
    pub(crate) fn covers(self, mode: Mode) -> bool {
        mode.conflicts().0 & !self.conflicts().0 == 0
    }

    /// Whether a holder of `other` excludes everything that a holder of these does.
    pub(crate) fn is_within(self, other: Modes) -> bool {
        self.conflicts().0 & !other.conflicts().0 == 0
    }

    /// The modes that a holder of these excludes.
    fn conflicts(self) -> Modes {
        let excluded = (0..CONFLICTS.len())
            .filter(|bit| self.0 & 1 << bit != 0)
            .fold(0, |set, bit| set | CONFLICTS[bit]);
        Modes(excluded)
    }

    /// Whether a holder of these keeps others from holding those.
    #[cfg(test)]
    pub(crate) fn excludes(self, others: Modes) -> bool {
        self.conflicts().intersects(others)
    }
}
