//! Hash maps whose order does not depend on the process: a fixed hasher, never a random seed.

/// A hash map with a fixed hasher.
#[allow(clippy::disallowed_types)]
pub type HashMap<K, V> = std::collections::HashMap<K, V, rustc_hash::FxBuildHasher>;

/// A hash set with a fixed hasher.
#[allow(clippy::disallowed_types)]
pub type HashSet<K> = std::collections::HashSet<K, rustc_hash::FxBuildHasher>;

/// A number for these bytes, the same in every process of one version.
pub fn digest(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
