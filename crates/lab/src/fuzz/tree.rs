//! A statement as a tree of pieces, so that it can be written and made smaller.
//!
//! ```text
//! select ⟨abs(⟨-1⟩ : int4) : int4⟩⟨, 2⟩? from t ⟨where ⟨a > ⟨0⟩⟩⟩?
//! ```
//! A value may be replaced by any value of its type inside it, or by a constant; what is optional
//! (`?`) may go. Whether what is left still means something is the servers' affair: the shrinker
//! asks them.

/// What may become of a piece when a statement is made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value of the type with that OID.
    Value(u32),
    /// It may be left out.
    Optional,
    /// Neither.
    Fixed,
}

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// What may become of it.
    pub kind: Kind,
    /// What it is made of, in order.
    pub parts: Vec<Part>,
}

/// A part of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is written.
    Text(String),
    /// A piece in turn.
    Piece(Tree),
}

/// Where a piece is: which part of each piece on the way to it.
pub type Path = Vec<usize>;

impl Tree {
    /// An empty piece.
    pub fn new(kind: Kind) -> Tree {
        Tree {
            kind,
            parts: Vec::new(),
        }
    }

    /// A piece of nothing but text.
    pub fn of(kind: Kind, text: impl Into<String>) -> Tree {
        Tree::new(kind).text(text)
    }

    /// The same with text at its end.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Tree {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// The same with a piece at its end.
    #[must_use]
    pub fn piece(mut self, piece: Tree) -> Tree {
        self.parts.push(Part::Piece(piece));
        self
    }

    /// The same with pieces at its end, separated by `separator`; all but the first may be left out.
    #[must_use]
    pub fn list(mut self, pieces: Vec<Tree>, separator: &str) -> Tree {
        for (place, piece) in pieces.into_iter().enumerate() {
            self = match place {
                0 => self.piece(piece),
                _ => self.piece(Tree::of(Kind::Optional, separator).piece(piece)),
            };
        }
        self
    }

    /// The statement as it is sent.
    pub fn sql(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(word) => text.push_str(word),
                Part::Piece(piece) => piece.write(text),
            }
        }
    }

    /// The places of all pieces, outer ones first.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, path: &mut Path, paths: &mut Vec<Path>) {
        paths.push(path.clone());
        for (place, part) in self.parts.iter().enumerate() {
            if let Part::Piece(piece) = part {
                path.push(place);
                piece.collect(path, paths);
                path.pop();
            }
        }
    }

    /// The piece at a place.
    pub fn at(&self, path: &[usize]) -> Option<&Tree> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        match self.parts.get(*first)? {
            Part::Piece(piece) => piece.at(rest),
            Part::Text(_) => None,
        }
    }

    /// The same tree with another piece at a place.
    #[must_use]
    pub fn with(&self, path: &[usize], other: &Tree) -> Tree {
        let mut changed = self.clone();
        let mut at = &mut changed;
        for place in path {
            match at.parts.get_mut(*place) {
                Some(Part::Piece(piece)) => at = piece,
                _ => return changed,
            }
        }
        *at = other.clone();
        changed
    }

    /// What might take the place of this piece, most promising first.
    pub fn smaller(&self, constant: impl Fn(u32) -> Vec<String>) -> Vec<Tree> {
        match self.kind {
            Kind::Fixed => Vec::new(),
            Kind::Optional if self.parts.is_empty() => Vec::new(),
            Kind::Optional => vec![Tree::new(Kind::Optional)],
            Kind::Value(of) => {
                let inner = self.paths().into_iter().skip(1);
                let inner = inner.filter_map(|path| self.at(&path));
                let mut all: Vec<Tree> = inner
                    .filter(|piece| piece.kind == self.kind)
                    .cloned()
                    .collect();
                let own = self.sql();
                let constants = constant(of).into_iter();
                // A constant does not become another one that is no shorter.
                let constants = constants.filter(|text| text.len() < own.len());
                all.extend(constants.map(|text| Tree::of(self.kind, text)));
                all
            }
        }
    }
}

/// Makes a statement smaller as long as `still` says of what is left that it shows the same, with at
/// most so many questions.
pub fn shrink(
    tree: &Tree,
    questions_max: usize,
    constant: impl Fn(u32) -> Vec<String>,
    mut still: impl FnMut(&Tree) -> bool,
) -> Tree {
    let mut best = tree.clone();
    let mut questions = 0;
    'again: loop {
        for path in best.paths() {
            let Some(piece) = best.at(&path) else {
                continue;
            };
            for smaller in piece.smaller(&constant) {
                if questions == questions_max {
                    return best;
                }
                questions += 1;
                let candidate = best.with(&path, &smaller);
                if candidate.sql().len() < best.sql().len() && still(&candidate) {
                    best = candidate;
                    continue 'again;
                }
            }
        }
        return best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes() {
        let value = |text: &str| Tree::of(Kind::Value(23), text);
        let product = Tree::new(Kind::Value(23))
            .text("(")
            .piece(value("12345"))
            .text(" * ")
            .piece(value("x"))
            .text(")");
        let tree = Tree::of(Kind::Fixed, "select ")
            .list(vec![value("777"), product], ", ")
            .piece(Tree::of(Kind::Optional, " limit 5"));
        let constant = |_| vec!["0".to_owned()];
        let smallest = shrink(&tree, 100, constant, |tree| tree.sql().contains('x'));
        assert_eq!(smallest.sql(), "select 0, x");
    }
}
