//! JSON that is read before its fields are known, with every key that an object names twice.
//!
//! The usual reader keeps the last value of such a key. Whoever wrote the document may have meant the first one.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Duplicates that are told at once: a document with more of them needs no longer list.
pub const DUPLICATES_MAX: usize = 100;

/// A document, and what is doubtful about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// What it says; of a key that stands twice the first value.
    pub value: Value,
    /// The places of keys that stand there again, such as `routes[0].rps`, at most [`DUPLICATES_MAX`].
    pub duplicates: Vec<String>,
}

/// Reads a whole document.
///
/// # Errors
/// It is no JSON, or is nested deeper than 127 levels.
pub fn read(json: &[u8]) -> Result<Read, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let mut walk = Walk { place: String::new(), duplicates: Vec::new() };
    let value = Node(&mut walk).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Read { value, duplicates: walk.duplicates })
}

/// Where the reader is.
struct Walk {
    place: String,
    duplicates: Vec<String>,
}

impl Walk {
    /// Reads what is at `part` of the present place.
    fn at<T>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.place.len();
        self.place.push_str(part);
        let value = read(self);
        self.place.truncate(length);
        value
    }
}

struct Node<'w>(&'w mut Walk);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) =
            self.0.at(&format!("[{}]", list.len()), |walk| items.next_element_seed(Node(walk)))?
        {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let dot = if self.0.place.is_empty() { "" } else { "." };
            let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
            let value = self.0.at(&format!("{dot}{shown}"), |walk| {
                if object.contains_key(&name) && walk.duplicates.len() < DUPLICATES_MAX {
                    walk.duplicates.push(walk.place.clone());
                }
                fields.next_value_seed(Node(walk))
            })?;
            object.entry(name).or_insert(value);
        }
        Ok(Value::Object(object))
    }
}

/// Longer than any name that is known.
const NAME_CHARS_SHOWN: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_that_stand_twice() {
        let table: [(&str, &[&str]); 7] = [
            (r#"{"a":1,"b":1}"#, &[]),
            (r#"{"a":1,"a":1}"#, &["a"]),
            (r#"{"a":1,"\u0061":2,"a":3}"#, &["a", "a"]),
            (r#"{"a":{"b":1},"c":{"b":1}}"#, &[]),
            (r#"{"a":[{"b":1},{"b":1,"b":2}],"a":0}"#, &["a[1].b", "a"]),
            (r#"[{"b":1,"b":2}]"#, &["[0].b"]),
            (r#"{"":1,"":2}"#, &[""]),
        ];
        for (text, expected) in table {
            assert_eq!(read(text.as_bytes()).unwrap().duplicates, expected, "{text}");
        }
        assert_eq!(read(br#"{"a":1,"a":2}"#).unwrap().value, serde_json::json!({"a": 1}));
        let many = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1000));
        assert_eq!(read(many.as_bytes()).unwrap().duplicates.len(), DUPLICATES_MAX);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "[1,]", "{} x", "nul", "[1e999]", &"[".repeat(60_000)] {
            assert!(read(text.as_bytes()).is_err(), "{text:.20}");
        }
    }

    proptest! {
        /// Where no key stands twice it reads what the usual reader reads.
        #[test]
        fn others_are_read_as_usual(text in "[{}\\[\\]:, \"a-c0-9.e-]{0,60}") {
            match (read(text.as_bytes()), serde_json::from_slice::<Value>(text.as_bytes())) {
                (Ok(read), Ok(value)) if read.duplicates.is_empty() => prop_assert_eq!(read.value, value),
                (read, usual) => prop_assert_eq!(read.is_ok(), usual.is_ok()),
            }
        }
    }
}
