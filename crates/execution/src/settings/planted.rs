//! Panics that tests plant, to see that each is the error of its statement and nothing else.
//!
//! `set planted.panic = 'bind'` has every later statement of the session panic there. Only builds
//! with debug assertions look.
//!
//! | place | where |
//! |---|---|
//! | `parse` | before the text is parsed |
//! | `bind` | on the stack that binds, with the plan half made |
//! | `exec` | behind the first row that a statement gives |
//! | `write` | behind the first row that is written |
//! | `commit` | before the commit record is made |

use super::Settings;

/// The setting that names the place.
const SETTING: &str = "planted.panic";

/// Panics if it is planted here.
pub fn panic_at(settings: &Settings, place: &str) {
    let planted = cfg!(debug_assertions) && settings.has_custom(SETTING, place);
    assert!(!planted, "planted in {place}");
}
