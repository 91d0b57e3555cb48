//! How a specification is written.
//!
//! ```text
//! # Prose: what is tried, and what it shows.
//! levels: read committed, serializable
//!
//! once
//!   create table skew (k int primary key, v int);
//! before
//!   delete from skew; insert into skew values (1, 10), (2, 20);
//! session a
//!   read: begin isolation level $level; select sum(v) from skew
//!   write: update skew set v = 0 where k = 1
//!   commit: commit
//! session b
//!   …
//! final
//!   select * from skew order by k
//! ```
//!
//! `once` runs first of all, `before` before each interleaving, `final` after it. A step is a line:
//! its name, a colon, statements. `$level` becomes each of the levels in turn; without it the
//! specification runs once. All interleavings of the sessions' steps are tried; `at most: N` sets
//! another bound on their number than the usual one; `alone` says that nothing else may run on the
//! server; and `only` lists chosen ones instead, one a
//! line, each step written `session.step`.

/// More interleavings than this are a mistake, unless the specification says otherwise.
const INTERLEAVINGS_MAX: usize = 300;

/// One session's steps.
#[derive(Clone, Debug)]
pub struct Actor {
    pub name: String,
    /// Name and statements.
    pub steps: Vec<(String, String)>,
}

/// A specification, at one level.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file's name, and the level's where there are several.
    pub name: String,
    pub once: String,
    pub before: String,
    pub last: String,
    pub actors: Vec<Actor>,
    /// Each the sessions whose next step comes.
    pub interleavings: Vec<Vec<usize>>,
    pub is_serializable: bool,
    /// Nothing else may run on the server meanwhile.
    pub alone: bool,
}

#[derive(Default)]
struct Draft {
    levels: Vec<String>,
    at_most: Option<usize>,
    alone: bool,
    once: String,
    before: String,
    last: String,
    actors: Vec<Actor>,
    only: Vec<String>,
}

enum Part {
    Once,
    Before,
    Last,
    Steps,
    Only,
}

/// The specifications of a file, one for each level.
///
/// # Panics
/// When it is not written as it should be.
pub fn parse(file: &str, text: &str) -> Vec<Spec> {
    let mut draft = Draft::default();
    let mut part = None;
    for line in text.lines() {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if !line.starts_with(' ') {
            part = draft.heading(file, words);
            continue;
        }
        let add = |to: &mut String| {
            to.push_str(words);
            to.push('\n');
        };
        match part.as_ref().unwrap_or_else(|| panic!("{file}: {line}")) {
            Part::Once => add(&mut draft.once),
            Part::Before => add(&mut draft.before),
            Part::Last => add(&mut draft.last),
            Part::Only => draft.only.push(words.to_owned()),
            Part::Steps => {
                let step = words.split_once(": ");
                let (name, sql) = step.unwrap_or_else(|| panic!("{file}: {line}"));
                let actor = draft.actors.last_mut().expect("a session");
                actor.steps.push((name.to_owned(), sql.to_owned()));
            }
        }
    }
    draft.finish(file)
}

impl Draft {
    fn heading(&mut self, file: &str, words: &str) -> Option<Part> {
        if let Some(levels) = words.strip_prefix("levels: ") {
            self.levels = levels.split(", ").map(str::to_owned).collect();
            return None;
        }
        if let Some(most) = words.strip_prefix("at most: ") {
            self.at_most = Some(most.parse().expect("a number"));
            return None;
        }
        if let Some(name) = words.strip_prefix("session ") {
            self.actors.push(Actor {
                name: name.to_owned(),
                steps: Vec::new(),
            });
            return Some(Part::Steps);
        }
        if words == "alone" {
            self.alone = true;
            return None;
        }
        Some(match words {
            "once" => Part::Once,
            "before" => Part::Before,
            "final" => Part::Last,
            "only" => Part::Only,
            _ => panic!("{file}: what is {words}?"),
        })
    }

    fn finish(self, file: &str) -> Vec<Spec> {
        let interleavings = match self.only.is_empty() {
            true => self.all(file),
            false => self
                .only
                .iter()
                .map(|line| self.chosen(file, line))
                .collect(),
        };
        let levels = match self.levels.is_empty() {
            true => vec![String::new()],
            false => self.levels.clone(),
        };
        let at = |level: &String| {
            let put = |sql: &String| sql.replace("$level", level);
            let actors = self.actors.iter().map(|actor| Actor {
                name: actor.name.clone(),
                steps: actor
                    .steps
                    .iter()
                    .map(|(name, sql)| (name.clone(), put(sql)))
                    .collect(),
            });
            let actors: Vec<_> = actors.collect();
            let mut steps = actors.iter().flat_map(|actor| &actor.steps);
            Spec {
                name: format!("{file} {level}").trim().to_owned(),
                once: self.once.clone(),
                before: self.before.clone(),
                last: self.last.clone(),
                is_serializable: steps.any(|(_, sql)| sql.contains("level serializable")),
                actors,
                alone: self.alone,
                interleavings: interleavings.clone(),
            }
        };
        levels.iter().map(at).collect()
    }

    fn all(&self, file: &str) -> Vec<Vec<usize>> {
        let counts: Vec<usize> = self.actors.iter().map(|a| a.steps.len()).collect();
        let most = self.at_most.unwrap_or(INTERLEAVINGS_MAX);
        let mut all = Vec::new();
        extend(&mut Vec::new(), &counts, most, &mut all);
        assert!(
            all.len() <= most,
            "{file}: more than {most} interleavings of {counts:?} steps"
        );
        all
    }

    fn chosen(&self, file: &str, line: &str) -> Vec<usize> {
        let mut done = vec![0; self.actors.len()];
        let chosen = line.split_whitespace().map(|step| {
            let found = self.actors.iter().position(|actor| {
                let next = actor.name.clone() + ".";
                step.starts_with(&next)
            });
            let actor = found.unwrap_or_else(|| panic!("{file}: whose step is {step}?"));
            let next = &self.actors[actor].steps[done[actor]].0;
            assert!(
                step.ends_with(&format!(".{next}")),
                "{file}: {step} in {line}"
            );
            done[actor] += 1;
            actor
        });
        chosen.collect()
    }
}

/// Adds every continuation of `prefix`, stopping beyond `most`.
fn extend(prefix: &mut Vec<usize>, left: &[usize], most: usize, all: &mut Vec<Vec<usize>>) {
    if left.iter().all(|left| *left == 0) {
        all.push(prefix.clone());
    }
    for (actor, count) in left.iter().enumerate() {
        if *count > 0 && all.len() <= most {
            let mut left = left.to_vec();
            left[actor] -= 1;
            prefix.push(actor);
            extend(prefix, &left, most, all);
            prefix.pop();
        }
    }
}

#[test]
fn all_interleavings_are_found() {
    let text = "levels: read committed, serializable\nonce\n  create\nsession a\n  x: 1 $level\n  \
                y: 2\nsession b\n  z: 3\nfinal\n  select\n";
    let specs = parse("some", text);
    assert_eq!(specs.len(), 2);
    assert_eq!(specs[0].actors[0].steps[0].1, "1 read committed");
    assert_eq!(
        specs[1].interleavings,
        [vec![0, 0, 1], vec![0, 1, 0], vec![1, 0, 0]]
    );
    let only = text.to_owned() + "only\n  b.z a.x a.y\n";
    assert_eq!(parse("some", &only)[0].interleavings, [vec![1, 0, 0]]);
}

#[test]
#[should_panic(expected = "more than 2 interleavings")]
fn too_many_interleavings_are_a_mistake() {
    parse(
        "some",
        "at most: 2\nsession a\n  x: 1\n  y: 2\nsession b\n  z: 3\n",
    );
}
