//! Checkpoints that go from one store to another.

use crate::Importer;

use super::*;

#[test]
fn a_checkpoint_can_be_exported_and_imported() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    for n in 0..3_000u64 {
        let row = vec![n as u8; 1 + (n % 500) as usize * 9];
        store
            .apply(Lsn(n + 1), &[put(T, &n.to_be_bytes(), &row)])
            .unwrap();
    }
    checkpoint(&store);
    let exporter = store.exporter();
    // The exported checkpoint stays while others are written over and over.
    for n in 0..3_000u64 {
        store
            .apply(Lsn(n + 4_000), &[delete(T, &n.to_be_bytes())])
            .unwrap();
        if n % 1_000 == 0 {
            store.release(Lsn(n + 4_000), usize::MAX).unwrap();
            checkpoint(&store);
        }
    }
    let target = TestEnv::new();
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    importer.write(&exporter.chunk(0, &[]).unwrap()).unwrap();
    assert!(importer.write(&exporter.chunk(2, &[]).unwrap()).is_err());
    drop(importer);
    let unfinished = open(&target);
    assert_eq!(unfinished.applied(), Lsn::ZERO);
    drop(unfinished);
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    for index in 0..exporter.chunks() {
        let mut chunk = exporter.chunk(index, &[]).unwrap();
        let last = chunk.len() - 1;
        chunk[last] ^= 1;
        assert_eq!(
            importer.write(&chunk).unwrap_err().class(),
            ErrorClass::User
        );
        chunk[last] ^= 1;
        importer.write(&chunk).unwrap();
    }
    block_on(importer.complete()).unwrap();
    let info = block_on(importer.finish()).unwrap();
    assert_eq!((info.lsn, &info.meta[..]), (Lsn(3_000), &b"meta"[..]));
    target.disk.crash(&mut Random::new(1));
    let copy = open(&target);
    assert_eq!(copy.checkpoint(), info);
    for n in 0..3_000u64 {
        let expected = vec![n as u8; 1 + (n % 500) as usize * 9];
        assert_eq!(value(&copy, T, &n.to_be_bytes(), 3_000), Some(expected));
    }
    check(&*target.disk, "g1", OWNER, &mut |_, _, _| Ok(())).unwrap();
}

/// Takes chunks up to `end`; the bytes that came.
fn import(importer: &mut Importer, exporter: &crate::Exporter, end: u64) -> usize {
    let mut bytes = 0;
    for index in 0..end {
        let chunk = exporter.chunk(index, &importer.having()).unwrap();
        bytes += chunk.len();
        importer.write(&chunk).unwrap();
    }
    bytes
}

#[test]
fn an_interrupted_import_goes_on_with_what_it_has() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    let row = |n: u64, version: u8| vec![version; 1 + (n % 500) as usize * 3];
    for n in 0..6_000u64 {
        let (key, row) = (n.to_be_bytes(), row(n, 1));
        store.apply(Lsn(n + 1), &[put(T, &key, &row)]).unwrap();
    }
    checkpoint(&store);
    let target = TestEnv::new();
    drop(open(&target));
    let first = store.exporter();
    let chunks = first.chunks();
    assert!(chunks > 20, "{chunks}");
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    import(&mut importer, &first, chunks * 3 / 4);
    assert_eq!(importer.pages().0, 0);
    drop((importer, first));

    // Meanwhile there is a newer checkpoint, which differs in a few pages.
    for n in 0..6_000u64 {
        if n % 600 == 0 {
            let (key, row) = (n.to_be_bytes(), row(n, 2));
            store.apply(Lsn(n + 7_000), &[put(T, &key, &row)]).unwrap();
        }
    }
    checkpoint(&store);
    // The process ends, the power fails, and one page that had come is damaged.
    let file = format!("g1/{}", "store.import");
    target.disk.damage(&file, 40 * 8192 + 77);
    drop(open(&target));
    let second = store.exporter();
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    let bytes = import(&mut importer, &second, second.chunks());
    let (kept, all) = importer.pages();
    let came = (all - kept) as usize;
    assert!(kept * 10 > all * 6 && kept < all, "{kept} of {all}");
    assert!(
        bytes < came * 8192 + all as usize * 4 + 4096,
        "{bytes} for {came}"
    );
    block_on(importer.complete()).unwrap();
    let info = block_on(importer.finish()).unwrap();
    target.disk.crash(&mut Random::new(1));
    let copy = open(&target);
    assert_eq!(copy.checkpoint(), info);
    for n in 0..6_000u64 {
        let version = if n % 600 == 0 { 2 } else { 1 };
        let found = value(&copy, T, &n.to_be_bytes(), 20_000);
        assert_eq!(found, Some(row(n, version)), "{n}");
    }
    check(&*target.disk, "g1", OWNER, &mut |_, _, _| Ok(())).unwrap();

    // What was lost with the power is fetched again.
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    import(&mut importer, &second, chunks / 2);
    drop(importer);
    target.disk.crash(&mut Random::new(2));
    let mut importer = Importer::start(target.clone(), "g1", OWNER).unwrap();
    import(&mut importer, &second, second.chunks());
    block_on(importer.complete()).unwrap();
    block_on(importer.finish()).unwrap();
    check(&*target.disk, "g1", OWNER, &mut |_, _, _| Ok(())).unwrap();

    // What nobody will finish can be removed.
    drop(Importer::start(target.clone(), "g1", OWNER).unwrap());
    assert!(base::env::Disk::list(&*target.disk, "g1")
        .unwrap()
        .contains(&"store.import".to_owned()));
    Importer::forget(&*target, "g1").unwrap();
    assert!(!base::env::Disk::list(&*target.disk, "g1")
        .unwrap()
        .contains(&"store.import".to_owned()));
    Importer::forget(&*target, "g1").unwrap();
}
