//! Conditions in bytecode: random expressions have the value that the tree they were made from has, and no bytes at all
//! make them panic or go on for ever.

use events::condition::operations::*;
use events::condition::{Condition, Sight, Trouble};
use proptest::prelude::*;

/// Registers whose values tell their numbers, and memory whose bytes tell their addresses, but for the first page.
struct Made;

impl Sight for Made {
    fn register(&self, number: u16) -> Option<u64> {
        (number < 17).then(|| register(number))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        (0..).zip(into.iter_mut()).for_each(|(at, byte)| *byte = memory(address.wrapping_add(at)));
        address >= 4096
    }
}

fn register(number: u16) -> u64 {
    u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn memory(address: u64) -> u8 {
    (address.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 56) as u8
}

#[derive(Clone, Debug)]
enum Tree {
    Number(u64),
    Register(u16),
    Read(u32, Box<Tree>),
    One(u8, Box<Tree>),
    Part(bool, u8, Box<Tree>),
    Two(u8, Box<Tree>, Box<Tree>),
    /// One of two, by a third.
    Choice(Box<[Tree; 3]>),
}

const BINARY: [u8; 16] = [
    ADD,
    SUB,
    MUL,
    DIV_SIGNED,
    DIV_UNSIGNED,
    REM_SIGNED,
    REM_UNSIGNED,
    LSH,
    RSH_SIGNED,
    RSH_UNSIGNED,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    EQUAL,
    LESS_SIGNED,
    LESS_UNSIGNED,
];

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Tree::Number),
        (0u64..300).prop_map(Tree::Number),
        (0u16..17).prop_map(Tree::Register),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (0u32..4, boxed()).prop_map(|(log, of)| Tree::Read(log, of)),
            (prop::sample::select(vec![LOG_NOT, BIT_NOT]), boxed())
                .prop_map(|(o, of)| Tree::One(o, of)),
            (any::<bool>(), 1u8..=64, boxed()).prop_map(|(s, bits, of)| Tree::Part(s, bits, of)),
            (prop::sample::select(BINARY.to_vec()), boxed(), boxed())
                .prop_map(|(o, a, b)| Tree::Two(o, a, b)),
            [inner.clone(), inner.clone(), inner].prop_map(|all| Tree::Choice(Box::new(all))),
        ]
    })
}

fn write(tree: &Tree, code: &mut Vec<u8>) {
    match tree {
        Tree::Number(value) => {
            let bytes = value.to_be_bytes();
            let log =
                (0..4).find(|log| log == &3 || value >> (8 << log) == 0).expect("eight bytes do");
            code.push(CONST8 + log as u8);
            code.extend(&bytes[8 - (1 << log)..]);
        }
        Tree::Register(number) => {
            code.push(REG);
            code.extend(number.to_be_bytes());
        }
        Tree::Read(log, of) => {
            write(of, code);
            code.push(REF8 + *log as u8);
        }
        Tree::One(operation, of) => {
            write(of, code);
            code.push(*operation);
        }
        Tree::Part(signed, bits, of) => {
            write(of, code);
            code.extend([if *signed { EXT } else { ZERO_EXT }, *bits]);
        }
        Tree::Two(operation, a, b) => {
            write(a, code);
            write(b, code);
            // Things that change nothing, so that they are met, too.
            code.extend([SWAP, SWAP, DUP, POP, PICK, 0, POP, *operation]);
        }
        Tree::Choice(all) => {
            let [which, yes, no] = &**all;
            write(which, code);
            code.push(IF_GOTO);
            let to_yes = code.len();
            code.extend([0, 0]);
            write(no, code);
            code.push(GOTO);
            let to_end = code.len();
            code.extend([0, 0]);
            patch(code, to_yes);
            write(yes, code);
            patch(code, to_end);
        }
    }
}

fn patch(code: &mut [u8], at: usize) {
    let here = u16::try_from(code.len()).expect("short");
    code[at..at + 2].copy_from_slice(&here.to_be_bytes());
}

/// The value as 128 bits have it, cut back to 64 at each step.
fn value(tree: &Tree) -> Result<u64, Trouble> {
    let cut = |wide: i128| wide as u64;
    Ok(match tree {
        Tree::Number(value) => *value,
        Tree::Register(number) => register(*number),
        Tree::Read(log, of) => {
            let address = value(of)?;
            if address < 4096 {
                return Err(Trouble::Memory(address));
            }
            (0..1u64 << log)
                .rev()
                .fold(0, |all, at| all << 8 | u64::from(memory(address.wrapping_add(at))))
        }
        Tree::One(LOG_NOT, of) => u64::from(value(of)? == 0),
        Tree::One(_, of) => u64::MAX - value(of)?,
        Tree::Part(signed, bits, of) => {
            let modulus = 1i128 << bits;
            let rest = i128::from(value(of)?) % modulus;
            cut(if *signed && 2 * rest >= modulus { rest - modulus } else { rest })
        }
        Tree::Two(operation, a, b) => {
            let (a, b) = (value(a)?, value(b)?);
            let (wide_a, wide_b) = (i128::from(a), i128::from(b));
            let (signed_a, signed_b) = (i128::from(a as i64), i128::from(b as i64));
            let divides = [DIV_SIGNED, DIV_UNSIGNED, REM_SIGNED, REM_UNSIGNED].contains(operation);
            if divides && b == 0 {
                return Err(Trouble::Zero);
            }
            let power = || 1i128 << b.min(64);
            match *operation {
                ADD => cut(wide_a + wide_b),
                SUB => cut(wide_a - wide_b),
                MUL => a.wrapping_mul(b),
                DIV_SIGNED => cut(signed_a / signed_b),
                DIV_UNSIGNED => cut(wide_a / wide_b),
                REM_SIGNED => cut(signed_a % signed_b),
                REM_UNSIGNED => cut(wide_a % wide_b),
                LSH if b > 63 => 0,
                LSH => a.wrapping_mul(power() as u64),
                RSH_SIGNED => cut(signed_a.div_euclid(power())),
                RSH_UNSIGNED => cut(wide_a / power()),
                BIT_AND => a & b,
                BIT_OR => a | b,
                BIT_XOR => a ^ b,
                EQUAL => u64::from(a == b),
                LESS_SIGNED => u64::from(signed_a < signed_b),
                _ => u64::from(wide_a < wide_b),
            }
        }
        Tree::Choice(all) => {
            let [which, yes, no] = &**all;
            if value(which)? != 0 { value(yes)? } else { value(no)? }
        }
    })
}

proptest! {
    #[test]
    fn bytecode_has_the_value_of_its_tree(tree in trees()) {
        let mut code = Vec::new();
        write(&tree, &mut code);
        code.push(END);
        prop_assert_eq!(Condition(code).value(&Made), value(&tree));
    }

    #[test]
    fn no_bytes_hang_or_panic(code in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Condition(code).value(&Made);
    }
}

#[test]
fn what_is_no_condition_is_refused() {
    let rows: [(&[u8], Trouble); 8] = [
        (&[], Trouble::Cut),
        (&[CONST8], Trouble::Cut),
        (&[END], Trouble::Stack),
        (&[CONST8, 1, ADD, END], Trouble::Stack),
        (&[GOTO, 0, 0], Trouble::Endless),
        (&[CONST8, 1, EXT, 65, END], Trouble::Bits(65)),
        (&[REG, 0, 99, END], Trouble::Register(99)),
        // `tracev`, which would write.
        (&[CONST8, 1, CONST8, 1, 0x2e, END], Trouble::Operation(0x2e)),
    ];
    for (code, trouble) in rows {
        assert_eq!(Condition(code.to_vec()).value(&Made), Err(trouble), "{code:x?}");
        assert!(Condition(code.to_vec()).holds(&Made), "what cannot be told stops");
    }
    // `a b c` becomes `c a b`.
    for (pops, value) in [(0, 2), (1, 1), (2, 3)] {
        let mut rotated = vec![CONST8, 1, CONST8, 2, CONST8, 3, ROT];
        rotated.extend(std::iter::repeat_n(POP, pops));
        rotated.push(END);
        assert_eq!(Condition(rotated).value(&Made), Ok(value));
    }
}
