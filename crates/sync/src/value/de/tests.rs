use super::super::to_value;
use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Id(u32);

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Order {
    Stop,
    Aim(f32),
    Move(i16, i16),
    Fire { at: Id, shells: u8 },
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Tank {
    name: String,
    pos: Vec<Point>,
    heading: f64,
    badge: Option<char>,
    orders: Vec<Order>,
    hits: BTreeMap<u8, i64>,
    unit: (),
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Point {
    x: f32,
    y: f32,
}

fn tank() -> Tank {
    Tank {
        name: "Ada".to_owned(),
        pos: vec![Point { x: 1.0, y: -2.5 }; 3],
        heading: 0.1,
        badge: Some('é'),
        orders: vec![Order::Stop, Order::Aim(0.3), Order::Move(1, -2), Order::Fire { at: Id(7), shells: 2 }],
        hits: [(1, -1), (20, 2)].into(),
        unit: (),
    }
}

#[test]
fn types_come_back() {
    let value = to_value(&tank()).unwrap();
    let bytes = value.encode(1_000).unwrap();
    assert_eq!(from_value::<Tank>(&Value::decode(bytes).unwrap()).unwrap(), tank());
    assert_eq!(
        value.field("orders").unwrap().to_string(),
        r#"["Stop",{"Aim":0.30000001192092896},{"Move":[1,-2]},{"Fire":{"at":7,"shells":2}}]"#
    );
    assert_eq!(value.field("hits").unwrap().to_string(), r#"{"1":-1,"20":2}"#);
}

#[test]
fn errors_say_where() {
    let mut value = to_value(&tank()).unwrap();
    let Value::Map(map) = &mut value else { unreachable!() };
    let Some(Value::List(points)) = map.get_mut("pos") else { unreachable!() };
    let Value::Map(point) = &mut points[2] else { unreachable!() };
    point.insert("x", "far");
    let error = from_value::<BTreeMap<String, Tank>>(&Value::Map({
        let mut outer = Map::new();
        outer.insert("tank", value.clone());
        outer
    }))
    .unwrap_err();
    assert_eq!(error.to_string(), "tank.pos[2].x: expected a number, found text");

    fn says<T: DeserializeOwned + core::fmt::Debug>(value: impl Into<Value>) -> String {
        from_value::<T>(&value.into()).unwrap_err().to_string()
    }
    assert_eq!(says::<u8>(300), "expected u8, found integer `300`");
    assert_eq!(says::<i32>(1.0), "expected a whole number, found a number");
    assert_eq!(says::<Point>(Map::new()), "missing field `x`");
    assert_eq!(says::<(u8, u8)>(vec![1.into(); 3]), "expected a list of 2, found a list of 3");
    assert_eq!(
        says::<Order>("Rest"),
        "unknown variant `Rest`, expected one of `Stop`, `Aim`, `Move`, `Fire`"
    );
}

#[test]
fn numbers_keep_their_kinds() {
    assert_eq!(from_value::<f32>(&Value::Int(3)).unwrap(), 3.0);
    assert_eq!(from_value::<f64>(&Value::Float(0.5)).unwrap(), 0.5);
    assert!(from_value::<f32>(&Value::Float(1e300)).is_err());
    assert_eq!(to_value(&u64::MAX).unwrap_err().kind(), &ValueErrorKind::IntTooLarge { value: u64::MAX });
    assert_eq!(to_value(&1i128).unwrap_err().kind(), &ValueErrorKind::Wide);
    assert_eq!(from_value::<u128>(&Value::Int(1)).unwrap_err().kind(), &ValueErrorKind::Wide);
    let error = to_value(&[1.0, f64::NAN]).unwrap_err();
    assert_eq!(error.to_string(), "[1]: a number must be finite");
    let error = to_value(&Order::Aim(f32::INFINITY)).unwrap_err();
    assert_eq!(error.to_string(), "Aim: a number must be finite");
}

#[test]
fn keys_of_maps_are_text_or_spell_something() {
    let by_point = [((1, 2), 3)].into_iter().collect::<BTreeMap<_, _>>();
    assert_eq!(to_value(&by_point).unwrap_err().kind(), &ValueErrorKind::KeyNotText);
    let by_bool: BTreeMap<bool, u8> = [(true, 1), (false, 2)].into();
    assert_eq!(from_value::<BTreeMap<bool, u8>>(&to_value(&by_bool).unwrap()).unwrap(), by_bool);
    let by_id: BTreeMap<String, u8> = [("x".to_owned(), 1)].into();
    assert!(from_value::<BTreeMap<i32, u8>>(&to_value(&by_id).unwrap()).is_err());
}

#[test]
fn depth_is_bounded_before_anything_is_encoded() {
    #[derive(Serialize)]
    struct Nest(Option<Vec<Nest>>);
    let nest = |depth| (0..depth).fold(Nest(None), |inner, _| Nest(Some(vec![inner])));
    assert!(to_value(&nest(32)).is_ok());
    assert_eq!(to_value(&nest(33)).unwrap_err().kind(), &ValueErrorKind::TooDeep);
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    assert!(serde_json::from_str::<Value>(&deep).unwrap_err().to_string().contains("too deeply"));
}

#[test]
fn a_value_reads_and_prints_json() {
    let text = r#"{"a":[1,-2.5,null,true],"b":"x"}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    assert!(serde_json::from_str::<Value>(r#"{"a":1,"a":2}"#).is_err());
    assert!(serde_json::from_str::<Value>("18446744073709551615").is_err());
}

#[test]
fn bytes_stay_bytes() {
    let value = Value::Bytes(Bytes::from_static(b"abc"));
    assert_eq!(from_value::<Value>(&value).unwrap(), value);
    assert_eq!(from_value::<Vec<u8>>(&value).unwrap_err().to_string(), "expected a list, found bytes");
    assert_eq!(to_value(&value).unwrap(), value);
}

proptest! {
    #[test]
    fn a_value_is_itself_through_serde(value in super::super::wire::tests::values()) {
        prop_assert_eq!(&to_value(&value).unwrap(), &value);
        prop_assert_eq!(&from_value::<Value>(&value).unwrap(), &value);
    }
}
