//! From tokens to a tree. Operators bind as in C.
//!
//! A bracketed type before an operand is a cast. `(x) - y` could be one too; it is taken for a
//! difference unless what is in the brackets can only be a type: it has a keyword such as
//! `struct` or `unsigned`, or ends in `*`.

use super::lexer::{Token, TokenKind, tokens};
use super::{Binary, Expression, PREFIX, SyntaxError, TypeName, Unary};
use crate::registers::Register;

/// Brackets nest no deeper: nobody writes that, and the parser recurses.
const DEEPEST: usize = 100;
/// Words that only types have. Those of the first row say nothing beyond that.
const EMPTY_WORDS: [&str; 8] =
    ["struct", "class", "union", "enum", "const", "volatile", "dyn", "mut"];
const TYPE_WORDS: [&str; 8] =
    ["unsigned", "signed", "int", "long", "short", "char", "float", "double"];

/// Reads an expression.
pub fn parse(text: &str) -> Result<Expression, SyntaxError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), depth: 0 };
    let expression = parser.binary(0)?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.error("the value ends before this")),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    end: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(TokenKind::Sign(found)) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.take(sign) { Ok(()) } else { Err(self.error(&format!("'{sign}' is missing"))) }
    }

    fn error(&self, message: &str) -> SyntaxError {
        let at = self.tokens.get(self.next).map_or(self.end, |token| token.at);
        SyntaxError { at, message: message.into() }
    }

    fn word(&mut self) -> Option<String> {
        let Some(TokenKind::Word(word)) = self.peek() else { return None };
        let word = word.clone();
        self.next += 1;
        Some(word)
    }

    fn binary(&mut self, weakest: u8) -> Result<Expression, SyntaxError> {
        let mut left = self.unary()?;
        while let Some(TokenKind::Sign(sign)) = self.peek() {
            let row = Binary::ALL.iter().find(|(_, known, _)| known == sign);
            let Some((operator, _, strength)) = row.filter(|(.., s)| *s > weakest) else { break };
            self.next += 1;
            let right = self.binary(*strength)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("brackets and operators are nested too deep"));
        }
        let result = self.prefix();
        self.depth -= 1;
        result
    }

    fn prefix(&mut self) -> Result<Expression, SyntaxError> {
        for operator in
            [Unary::Dereference, Unary::AddressOf, Unary::Minus, Unary::Not, Unary::Complement]
        {
            if self.take(operator.sign().encode_utf8(&mut [0; 4])) {
                let operand = self.unary()?;
                return Ok(match (operator, operand) {
                    (Unary::Minus, Expression::Number(number)) if number > 0 => {
                        Expression::Number(-number)
                    }
                    (Unary::Minus, Expression::Float(number)) if number.is_sign_positive() => {
                        Expression::Float(-number)
                    }
                    (operator, operand) => Expression::Unary(operator, Box::new(operand)),
                });
            }
        }
        if self.is("(")
            && let Some(cast) = self.cast()?
        {
            return Ok(cast);
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Expression, SyntaxError> {
        let mut value = self.primary()?;
        loop {
            if self.take(".") || self.take("->") {
                let name = self.word();
                let name = name.ok_or_else(|| self.error("the name of a member is missing"))?;
                value = Expression::Member(Box::new(value), name);
            } else if self.take("[") {
                let index = self.binary(0)?;
                self.expect("]")?;
                value = Expression::Index(Box::new(value), Box::new(index));
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        match self.peek() {
            Some(TokenKind::Number(number)) => {
                let number = i128::from(*number);
                self.next += 1;
                Ok(Expression::Number(number))
            }
            Some(TokenKind::Float(number)) => {
                let number = *number;
                self.next += 1;
                Ok(Expression::Float(number))
            }
            Some(TokenKind::Register(name)) => match Register::named(name) {
                Some(register) => {
                    self.next += 1;
                    Ok(Expression::Register(register))
                }
                None => Err(self.error(&format!(
                    "there is no register '${name}'; there are $rax to $r15, $rip and $xmm0 to $xmm15"
                ))),
            },
            Some(TokenKind::Word(word)) if word == "sizeof" => {
                self.next += 1;
                self.expect("(")?;
                let operand = self.binary(0)?;
                self.expect(")")?;
                Ok(Expression::SizeOf(Box::new(operand)))
            }
            Some(TokenKind::Word(_) | TokenKind::Sign("::")) => self.name(),
            Some(TokenKind::Sign("(")) => {
                self.next += 1;
                let inner = self.binary(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(TokenKind::Sign("[")) => {
                self.next += 1;
                let address = self.binary(0)?;
                self.expect(",")?;
                let size = self.binary(0)?;
                self.expect("]")?;
                Ok(Expression::Memory(Box::new(address), Box::new(size)))
            }
            _ => Err(self.error("a value is missing")),
        }
    }

    fn name(&mut self) -> Result<Expression, SyntaxError> {
        self.take("::");
        let mut name = self.part()?;
        while self.take("::") {
            name.push_str("::");
            name.push_str(&self.part()?);
        }
        Ok(Expression::Name(name))
    }

    /// One part of a qualified name, template arguments included if `::` follows them.
    fn part(&mut self) -> Result<String, SyntaxError> {
        let name = self.word().ok_or_else(|| self.error("a name is missing"))?;
        let before = self.next;
        match self.arguments() {
            Some(arguments) if self.is("::") => Ok(name + &arguments),
            _ => {
                self.next = before;
                Ok(name)
            }
        }
    }

    /// `<…>` with balanced brackets, as text.
    fn arguments(&mut self) -> Option<String> {
        if !self.is("<") {
            return None;
        }
        let mut text = String::new();
        let mut depth = 0i32;
        loop {
            match self.peek()? {
                TokenKind::Sign("<") => depth += 1,
                TokenKind::Sign(">") => depth -= 1,
                TokenKind::Sign(">>") => depth -= 2,
                _ => {}
            }
            match self.peek()? {
                TokenKind::Sign(",") => text.push_str(", "),
                TokenKind::Sign(sign) => text.push_str(sign),
                TokenKind::Word(word) => {
                    if text.ends_with(|last: char| last.is_alphanumeric()) {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
                TokenKind::Number(number) => text.push_str(&number.to_string()),
                _ => return None,
            }
            self.next += 1;
            if depth <= 0 {
                return (depth == 0).then_some(text);
            }
        }
    }

    /// A cast, if the bracket here opens one; nothing is consumed if not.
    fn cast(&mut self) -> Result<Option<Expression>, SyntaxError> {
        let before = self.next;
        self.take("(");
        if let Some((name, certain)) = self.type_name()
            && self.take(")")
            && (certain || self.starts_operand())
        {
            let operand = self.unary()?;
            return Ok(Some(Expression::Cast(name, Box::new(operand))));
        }
        self.next = before;
        Ok(None)
    }

    /// Whether what comes can only be an operand, so that brackets before it hold a type.
    fn starts_operand(&self) -> bool {
        match self.peek() {
            Some(TokenKind::Sign(sign)) => matches!(*sign, "(" | "::" | "!" | "~"),
            Some(_) => true,
            None => false,
        }
    }

    /// A type, and whether it can be nothing else.
    fn type_name(&mut self) -> Option<(TypeName, bool)> {
        let mut words: Vec<String> = Vec::new();
        let mut certain = false;
        let mut pointers = 0;
        loop {
            if self.take("*") {
                pointers += 1;
            } else if self.take("&") {
                // `&T` in Rust, `T &` in C++: both are pointers to a debugger.
                pointers += 1;
            } else if pointers > 0 && !words.is_empty() && !self.is_empty_word() {
                break;
            } else if let Some(word) = self.word() {
                certain |= TYPE_WORDS.contains(&word.as_str());
                if EMPTY_WORDS.contains(&word.as_str()) {
                    certain = true;
                    continue;
                }
                let mut name = word;
                name.push_str(&self.arguments().unwrap_or_default());
                while self.take("::") {
                    name.push_str("::");
                    name.push_str(&self.word()?);
                    name.push_str(&self.arguments().unwrap_or_default());
                }
                words.push(name);
            } else {
                break;
            }
        }
        if words.is_empty() {
            return None;
        }
        // `(*p)` and `(&x)` are values; `(T *)` is a type.
        let trailing = matches!(
            self.tokens.get(self.next.wrapping_sub(1)).map(|token| &token.kind),
            Some(TokenKind::Sign("*" | "&"))
        );
        if pointers > 0 && !trailing && !certain {
            return None;
        }
        certain |= trailing;
        Some((TypeName { name: words.join(" "), pointers }, certain))
    }

    fn is_empty_word(&self) -> bool {
        matches!(self.peek(), Some(TokenKind::Word(word)) if EMPTY_WORDS.contains(&word.as_str()))
    }
}

// The printer brackets operands of prefix operators by this order.
const _: () = assert!(PREFIX > Binary::ALL[Binary::ALL.len() - 1].2);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expressions_read_back_in_the_common_form() {
        let cases = [
            ("p->next->key", "p.next.key"),
            ("a[3].b", "a[3].b"),
            ("*p", "*p"),
            ("&x", "&x"),
            ("*p.q", "*p.q"),
            ("(*p).q", "(*p).q"),
            ("(struct foo *)p", "(foo *)p"),
            ("((struct foo*)p)->x", "((foo *)p).x"),
            ("(unsigned char)c", "(unsigned char)c"),
            ("(x) - y", "x - y"),
            ("(T) y", "(T)y"),
            ("(T *) -y", "(T *)(-y)"),
            ("a::b::c", "a::b::c"),
            ("::g", "g"),
            ("v<int>::x", "v<int>::x"),
            ("a < b", "a < b"),
            ("$rax + 0x10", "$rax + 16"),
            ("[0x1000,8]", "[4096,8]"),
            ("1 + 2 * 3 - 4", "1 + 2 * 3 - 4"),
            ("(1 + 2) * 3", "(1 + 2) * 3"),
            ("1 - (2 - 3)", "1 - (2 - 3)"),
            ("!a && b || c", "!a && b || c"),
            ("t.0.1", "t.0.1"),
            ("'a'", "97"),
            ("- -x", "-(-x)"),
            ("sizeof(*p)", "sizeof(*p)"),
        ];
        for (text, expected) in cases {
            let parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(parsed.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, at, message) in [
            ("", 0, "a value is missing"),
            ("p->", 3, "the name of a member is missing"),
            ("a[1", 3, "']' is missing"),
            ("a b", 2, "the value ends before this"),
            ("$eax", 0, "there is no register '$eax'"),
            ("a \"", 2, "'\"' has no meaning in a value"),
            ("99999999999999999999", 0, "is not a number of 64 bits"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }

    fn trees() -> impl Strategy<Value = Expression> {
        let leaf = prop_oneof![
            "[a-z][a-z0-9_]{0,4}(::[a-z]{1,3})?"
                .prop_filter("a keyword is no name", |name| {
                    !name.split("::").any(|part| {
                        EMPTY_WORDS.contains(&part)
                            || TYPE_WORDS.contains(&part)
                            || part == "sizeof"
                    })
                })
                .prop_map(Expression::Name),
            any::<i64>().prop_map(|number| Expression::Number(number.into())),
            (0u16..33).prop_map(|number| Expression::Register(Register(number))),
            (0.0f64..1e9).prop_map(Expression::Float),
        ];
        leaf.prop_recursive(6, 40, 2, |inner| {
            let boxed = inner.clone().prop_map(Box::new);
            let operators: Vec<_> = Binary::ALL.iter().map(|row| row.0).collect();
            let prefixes =
                [Unary::Dereference, Unary::AddressOf, Unary::Minus, Unary::Not, Unary::Complement];
            prop_oneof![
                (prop::sample::select(operators), boxed.clone(), boxed.clone())
                    .prop_map(|(operator, left, right)| Expression::Binary(operator, left, right)),
                (prop::sample::select(prefixes.to_vec()), boxed.clone())
                    .prop_filter("a negative number", |(operator, operand)| {
                        *operator != Unary::Minus
                            || !matches!(**operand, Expression::Number(_) | Expression::Float(_))
                    })
                    .prop_map(|(operator, operand)| Expression::Unary(operator, operand)),
                (boxed.clone(), "[a-z]{1,4}").prop_map(|(r, name)| Expression::Member(r, name)),
                (boxed.clone(), boxed.clone()).prop_map(|(a, i)| Expression::Index(a, i)),
                (boxed.clone(), boxed.clone()).prop_map(|(a, s)| Expression::Memory(a, s)),
                boxed.clone().prop_map(Expression::SizeOf),
                ("T[a-z]{0,3}", 1usize..3, boxed).prop_map(|(name, pointers, operand)| {
                    Expression::Cast(TypeName { name, pointers }, operand)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_the_same(tree in trees()) {
            let text = tree.to_string();
            prop_assert_eq!(parse(&text), Ok(tree), "{}", text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9$*&()\\[\\]<>:.,+ '-]{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_unicode_is_read_or_refused(text in ".{0,20}") {
            let _ = parse(&text);
        }
    }
}
