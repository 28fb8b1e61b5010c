//! Models are read back as they were written; anything else is refused, and nothing panics.

use super::*;
use crate::model::{LineKey, Role, Site, SiteKey};
use crate::uses::{Definition, Use, UseInRun};
use crate::value::Value;
use proptest::collection::vec;
use proptest::prelude::*;

fn site(function: &str, line: i32, rank: u32) -> Site {
    let line_key = LineKey { module: "prog".into(), function: function.into(), line: Some(line) };
    let key = SiteKey { line: line_key, rank };
    Site { key, file: Some("prog.c".into()), line: Some(10 + line as u32) }
}

/// A model made from reads of values and definitions.
fn model(runs: &[Vec<(u8, u64, u8)>]) -> Model {
    let mut model = Model::new("prog");
    for run in runs {
        for (at, value, definition) in run {
            let id = model.site(&site("f", i32::from(*at % 5), 0));
            let written = model.site(&site("g", i32::from(*definition % 7), 1));
            let kind = model.kind(&format!("kind {}", value % 3));
            let value = match value % 2 {
                0 => Value::Object(kind),
                _ => Value::Number { bits: *value, size: 8 },
            };
            model.point_mut(id).hypothesis(Role::Read).take(value);
            let mut used = UseInRun { count: 1, local: 1, ..UseInRun::default() };
            used.uses(written);
            model.point_mut(id).reads.get_or_insert_default().add(&used);
            let definition = Definition { count: 1, used: 1, lost: 0 };
            model.point_mut(written).writes.get_or_insert_default().merge(&definition);
            *model.executed.entry(site("f", 0, 0).key.line).or_default() += 1;
        }
        model.runs += 1;
    }
    model
}

fn runs() -> impl Strategy<Value = Vec<Vec<(u8, u64, u8)>>> {
    vec(vec((any::<u8>(), any::<u64>(), any::<u8>()), 0..12), 1..6)
}

/// With another checksum, as a file that somebody made would have it.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(body).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn what_is_no_model_is_refused_with_a_reason() {
    let bytes = write(&model(&[vec![(1, 2, 3)]]));
    assert_eq!(read(b""), Err(Refused::NotAModel));
    assert_eq!(read(b"#!/bin/sh\nexit 0\n and more of it"), Err(Refused::NotAModel));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert_eq!(read(&newer), Err(Refused::Version(9)));
    let longer = [bytes.clone(), vec![0]].concat();
    assert_eq!(read(&longer), Err(Refused::Damaged));
    for refused in [Refused::NotAModel, Refused::Version(9), Refused::Damaged] {
        assert!(refused.to_string().starts_with("is "), "{refused}");
    }
}

#[test]
fn numbers_of_sites_that_are_not_there_are_refused() {
    let mut wrong = model(&[vec![(1, 1, 1)]]);
    let used: &mut Use = wrong.points[1].reads.as_mut().expect("a read");
    used.definitions[0].site.0 = 99;
    assert_eq!(read(&write(&wrong)), Err(Refused::Damaged));
}

proptest! {
    #[test]
    fn a_model_is_read_back(runs in runs()) {
        let model = model(&runs);
        let bytes = write(&model);
        let read = read(&bytes);
        prop_assert_eq!(read.as_ref(), Ok(&model));
        prop_assert_eq!(write(&read.expect("a model")), bytes);
    }

    #[test]
    fn models_are_merged_as_if_learned_in_one_go(first in runs(), second in runs()) {
        let mut merged = model(&first);
        merged.merge(&model(&second));
        prop_assert_eq!(merged, model(&[first, second].concat()));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed(runs in runs(), at in any::<prop::sample::Index>()) {
        let bytes = write(&model(&runs));
        let cut = at.index(bytes.len());
        prop_assert!(read(&bytes[..cut]).is_err());
        let mut flipped = bytes.clone();
        flipped[cut] ^= 1 << (cut % 8);
        prop_assert!(read(&flipped).is_err(), "byte {}", cut);
    }

    #[test]
    fn any_bytes_behind_a_right_checksum_do_no_harm(
        body in vec(any::<u8>(), 0..200),
        runs in runs(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let _ = read(&sealed(&body));
        let mut real = postcard::to_allocvec(&model(&runs)).expect("plain data");
        for (at, byte) in changes {
            let at = at.index(real.len());
            real[at] = byte;
        }
        if let Ok(mut model) = read(&sealed(&real)) {
            // What is taken must be usable.
            let copy = model.clone();
            model.merge(&copy);
        }
    }
}
