//! Space that is given back, and space that is not there.

use super::*;

fn file_len(env: &TestEnv) -> usize {
    let files = env.disk.files();
    let file = files.iter().find(|(name, _)| name == "g1/store");
    file.map_or(0, |(_, content)| content.len())
}

/// Rows go, but for a few everywhere, those at the end of the file among them: it becomes shorter.
#[test]
fn the_file_becomes_shorter_when_rows_go() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    store.advance(Lsn(1)).unwrap();
    let mut lsn = 1;
    let mut apply = |changes: &[Change<'_>]| {
        lsn += 1;
        store.apply(Lsn(lsn), changes).unwrap();
        store.release(Lsn(lsn), usize::MAX).unwrap();
    };
    const ROWS: u64 = 30_000;
    let keys: Vec<[u8; 8]> = (0..ROWS).map(u64::to_be_bytes).collect();
    for keys in keys.chunks(100) {
        let rows: Vec<_> = keys.iter().map(|key| put(T, key, &[7; 500])).collect();
        apply(&rows);
    }
    checkpoint(&store);
    let loaded = file_len(&env);
    let (pages, free) = store.file_space();
    assert_eq!(pages, loaded as u64);
    assert!(free < pages / 4, "{free} of {pages} bytes are free");
    let gone: Vec<_> = keys.iter().filter(|key| key[7] % 64 != 63).collect();
    for keys in gone.chunks(100) {
        let rows: Vec<_> = keys.iter().map(|key| delete(T, &key[..])).collect();
        apply(&rows);
    }
    for round in 0..6u8 {
        apply(&[put(T, &keys[63], &[round; 500])]);
        checkpoint(&store);
    }
    let left = file_len(&env);
    assert!(left < loaded / 3, "{left} bytes of {loaded} are left");
    let report = check(&*env.disk, "g1", OWNER, &mut |_, _, _| Ok(())).unwrap();
    assert_eq!(report.trees[&T], ROWS - gone.len() as u64);
    let store = open(&env.restart());
    for (number, key) in keys.iter().enumerate() {
        let expected = (number % 64 == 63).then_some(500);
        let found = value(&store, T, key, u64::MAX).map(|row| row.len());
        assert_eq!(found, expected, "row {number}");
    }
}

/// Rows that only change need little more space than they have, however long they do, with much
/// memory and with hardly any: a checkpoint begins before there are many old blocks.
#[test]
fn changes_do_not_make_the_file_much_longer() {
    for cache in [CACHE_PAGES, 4_000] {
        let env = TestEnv::new();
        let store = open_with_cache(&env, OWNER, cache).unwrap();
        store.create_tree(Lsn(1), T).unwrap();
        store.advance(Lsn(1)).unwrap();
        let mut random = Random::new(5);
        const ROWS: u64 = 60_000;
        let (mut loaded, mut longest, mut checkpoints) = (0, 0, 0);
        let mut begun: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
        for lsn in 2..5 * ROWS {
            let next = random.below(ROWS as usize) as u64;
            let key = (if lsn < ROWS + 2 { lsn } else { next }).to_be_bytes();
            let row = [lsn as u8; 400];
            store.apply(Lsn(lsn), &[put(T, &key, &row)]).unwrap();
            store.release(Lsn(lsn.saturating_sub(20)), 10).unwrap();
            if lsn == ROWS + 1 {
                begun = None;
                store.discard_checkpoint();
                checkpoint(&store);
                loaded = file_len(&env);
            }
            if begun.is_none() && store.outgrows(25) {
                let store = store.clone();
                checkpoints += 1;
                begun = Some(Box::pin(async move {
                    store.start_checkpoint(Vec::new()).unwrap();
                    assert!(store.write_checkpoint(25).await.unwrap());
                    assert!(store.publish_checkpoint().await.unwrap());
                }));
            }
            if let Some(future) = begun.as_mut().filter(|_| lsn % 16 == 0) {
                let mut cx = Context::from_waker(Waker::noop());
                if future.as_mut().poll(&mut cx).is_ready() {
                    begun = None;
                    longest = longest.max(file_len(&env));
                }
            }
        }
        assert!(checkpoints > 20, "{checkpoints} checkpoints");
        assert!(
            longest < loaded / 2 * 3,
            "{longest} bytes, and {loaded} after the load, with {cache} pages in memory"
        );
    }
}
