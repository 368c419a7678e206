//! The machine, fed by hand: what browsers send, in any cut, and what none may.

use super::fields::read as read_fields;
use super::http3::{Fault, Happened, Http3, Limits, PASSED_OVER_BYTES_MAX, REQUESTS_MAX, Uni, UniHead};
use super::*;
use data_encoding::HEXLOWER;

const GREASE: u64 = 0x21 + 0x1f * 7;
const UNLIMITED: Limits = Limits { bytes: u64::MAX, streams: u64::MAX };

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    tlv::put(&mut bytes, kind, payload);
    bytes
}

fn settings(pairs: &[(u64, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (setting, value) in pairs {
        varint::put(&mut payload, *setting);
        varint::put(&mut payload, *value);
    }
    frame(FRAME_SETTINGS, &payload)
}

/// A field without any compression.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x27];
    match u8::try_from(name.len()).unwrap().checked_sub(7) {
        Some(rest) => bytes.push(rest),
        None => bytes[0] = 0x20 | u8::try_from(name.len()).unwrap(),
    }
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(u8::try_from(value.len()).unwrap());
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let fields: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    [&[0, 0], &fields[..]].concat()
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(FRAME_HEADERS, &section(fields))
}

const CONNECT: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":scheme", "https"),
    (":protocol", "webtransport"),
    (":path", "/wt"),
    (":authority", "localhost:7700"),
    ("origin", "https://game.example"),
];

fn connect() -> Vec<u8> {
    headers(&CONNECT)
}

fn request() -> Request {
    Request { authority: "localhost:7700".into(), origin: Some("https://game.example".into()) }
}

/// A machine whose control stream is known.
fn listening() -> Http3 {
    let mut http3 = Http3::default();
    assert_eq!(http3.begin(&mut UniHead::default(), 0), Ok(Some(Uni::Control)));
    http3
}

/// A machine with a session of the id 0.
fn session(pairs: &[(u64, u64)]) -> Http3 {
    let mut http3 = listening();
    http3.control(&settings(pairs)).unwrap();
    http3.open(0).unwrap();
    http3.request(&connect()).unwrap();
    assert_eq!(http3.poll_event(), Some(Happened::Asked(request())));
    assert_eq!(http3.admit().unwrap().0, 0);
    http3
}

fn data(capsules: &[(u64, &[u8])]) -> Vec<u8> {
    frame(FRAME_DATA, &capsules.iter().flat_map(|(kind, payload)| frame(*kind, payload)).collect::<Vec<u8>>())
}

/// Each browser looks for its own setting: these bytes are what they were tried with.
#[test]
fn what_this_end_says_are_these_bytes() {
    let settings = "08013301 80ffd27701 ab60374201 c0000000c671706a01 94e9cd2901 ac7cf00001 \
                    6b61d000000000000000 6b64d000000000000000 6b65d000000000000000";
    assert_eq!(HEXLOWER.encode(&greeting()), format!("00043f{settings}").replace(' ', ""));
    let draft = "2715 7365632d776562747261 6e73706f72742d6874747033 2d6472616674 07 64726166743032";
    assert_eq!(HEXLOWER.encode(&answer(200)), format!("012e 0000 5f0903 323030 {draft}").replace(' ', ""));
    assert_eq!(HEXLOWER.encode(&close(5, "bye")), "000a684307000000056279 65".replace(' ', ""));
}

#[test]
fn a_request_is_asked_once_settings_and_headers_are_there_in_any_cut_and_order() {
    let (control, connect) = (settings(&[(0x33, 1), (GREASE, 5)]), connect());
    for cut in 1..connect.len() {
        for control_first in [true, false] {
            let mut http3 = listening();
            if control_first {
                control.iter().for_each(|byte| http3.control(&[*byte]).unwrap());
            }
            http3.open(0).unwrap();
            connect.chunks(cut).for_each(|chunk| http3.request(chunk).unwrap());
            if !control_first {
                assert_eq!(http3.poll_event(), None, "SETTINGS have the limits");
                assert_eq!(http3.admit(), None);
                http3.control(&control).unwrap();
            }
            assert_eq!(http3.poll_event(), Some(Happened::Asked(request())));
            assert_eq!(http3.admit(), Some((0, UNLIMITED)));
            assert_eq!(http3.poll_event(), None);
        }
    }
}

#[test]
fn frames_of_unknown_types_are_passed_over_everywhere() {
    let unknown = frame(GREASE, b"anything");
    let mut http3 = listening();
    http3.control(&[&settings(&[])[..], &unknown, &frame(7, &[0]), &unknown].concat()).unwrap();
    http3.open(0).unwrap();
    http3.request(&[&unknown[..], &connect(), &unknown].concat()).unwrap();
    assert!(matches!(http3.poll_event(), Some(Happened::Asked(_))));
}

#[test]
fn other_requests_get_404_and_four_are_all() {
    let get = headers(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "x")]);
    let elsewhere = headers(&[
        (":method", "CONNECT"),
        (":scheme", "https"),
        (":protocol", "webtransport"),
        (":path", "/other"),
        (":authority", "x"),
    ]);
    let mut http3 = listening();
    http3.control(&settings(&[])).unwrap();
    for number in 0..REQUESTS_MAX {
        http3.open(4 * u64::from(number)).unwrap();
        http3.request(if number.is_multiple_of(2) { &get } else { &elsewhere }).unwrap();
        assert_eq!(http3.poll_event(), Some(Happened::Refused(404)));
        assert_eq!(http3.admit(), None);
        http3.request_ended().unwrap();
    }
    assert_eq!(http3.open(16), Err(Fault::TooManyRequests));
}

#[test]
fn a_refused_client_may_ask_again() {
    let mut http3 = listening();
    http3.control(&settings(&[])).unwrap();
    http3.open(0).unwrap();
    http3.request(&connect()).unwrap();
    assert!(http3.refuse());
    assert!(!http3.refuse());
    http3.open(4).unwrap();
    http3.request(&connect()).unwrap();
    assert_eq!(http3.admit(), Some((4, UNLIMITED)));
    assert_eq!(http3.open(8), Err(Fault::Bidirectional), "there is one session");
}

#[test]
fn a_session_ends_by_a_capsule_a_fin_or_a_reset() {
    let close = close(5, "misbehaved");
    for cut in 1..close.len() {
        let mut http3 = session(&[]);
        close.chunks(cut).for_each(|chunk| http3.request(chunk).unwrap());
        let closed = Happened::Closed { code: 5, reason: b"misbehaved".to_vec() };
        assert_eq!(http3.poll_event(), Some(closed));
        http3.request_ended().unwrap();
        assert_eq!(http3.poll_event(), None);
    }
    let mut http3 = session(&[]);
    http3.request_ended().unwrap();
    assert_eq!(http3.poll_event(), Some(Happened::Closed { code: 0, reason: Vec::new() }));
    assert!(session(&[]).request_reset());
    let mut http3 = session(&[]);
    http3.request(&close[..4]).unwrap();
    assert_eq!(http3.request_ended(), Err(Fault::Truncated));
}

#[test]
fn a_peer_that_names_limits_has_them_and_raises_them() {
    let mut http3 = session(&[(SETTING_INITIAL_MAX_DATA, 100), (SETTING_INITIAL_MAX_STREAMS_UNI, 2)]);
    assert_eq!(http3.limits(), Some(Limits { bytes: 100, streams: 2 }));
    let mut number = Vec::new();
    varint::put(&mut number, 4_000);
    http3.request(&data(&[(0x190b_4d3d, &number), (GREASE, b"x"), (0x190b_4d40, &[7])])).unwrap();
    assert_eq!(http3.limits(), Some(Limits { bytes: 4_000, streams: 7 }));
    // Lower limits, and those of streams that this end never opens, change nothing.
    http3.request(&data(&[(0x190b_4d3d, &[1]), (0x190b_4d40, &[1]), (0x190b_4d3f, &[63])])).unwrap();
    assert_eq!(http3.limits(), Some(Limits { bytes: 4_000, streams: 7 }));
    assert_eq!(session(&[(SETTING_INITIAL_MAX_DATA, 0)]).limits(), Some(UNLIMITED));
    assert_eq!(http3.request(&data(&[(0x190b_4d3d, &[0x40])])), Err(Fault::Capsule));
}

#[test]
fn streams_are_told_apart_by_their_beginning() {
    let begin = |http3: &mut Http3, bytes: &[u8]| {
        let mut head = UniHead::default();
        let mut kind = Ok(None);
        for byte in bytes {
            assert_eq!(kind, Ok(None));
            kind = http3.begin(&mut head, *byte);
        }
        kind
    };
    let mut http3 = session(&[]);
    let (stream, datagram) = prefixes(0);
    assert_eq!((&stream[..], &datagram[..]), (&[0x40, 0x54, 0][..], &[0][..]));
    assert_eq!(begin(&mut http3, &stream), Ok(Some(Uni::Session(0))));
    assert_eq!(begin(&mut http3, &[0x40, 0x54, 4]), Err(Fault::OtherSession));
    assert_eq!(begin(&mut http3, &[0x40, 0x54, 1]), Err(Fault::OtherSession));
    assert_eq!(begin(&mut http3, &[2]), Ok(Some(Uni::Qpack)));
    assert_eq!(begin(&mut http3, &[3]), Ok(Some(Uni::Qpack)));
    assert_eq!(begin(&mut http3, &[2]), Err(Fault::SecondStream));
    assert_eq!(begin(&mut http3, &[0]), Err(Fault::SecondStream));
    assert_eq!(begin(&mut http3, &[1]), Err(Fault::Push));
    // Integers need not be in their shortest form.
    assert_eq!(begin(&mut http3, &[0xc0, 0, 0, 0, 0, 0, 0, 0x54, 0x80, 0, 0, 0]), Ok(Some(Uni::Session(0))));
    assert_eq!(begin(&mut http3, &[0x21]), Ok(Some(Uni::Unknown)));
    assert_eq!(begin(&mut Http3::default(), &stream), Ok(Some(Uni::Session(0))), "it overtook the request");
}

#[test]
fn frames_where_they_must_not_be_are_faults() {
    let control = |bytes: &[u8]| listening().control(bytes);
    let first = settings(&[]);
    assert_eq!(control(&frame(GREASE, b"")), Err(Fault::SettingsPlace));
    assert_eq!(control(&[first.clone(), first.clone()].concat()), Err(Fault::SettingsPlace));
    assert_eq!(control(&settings(&[(0x33, 1), (0x33, 1)])), Err(Fault::Settings));
    assert_eq!(control(&frame(FRAME_SETTINGS, &[0x33])), Err(Fault::Settings));
    for kind in [FRAME_DATA, FRAME_HEADERS, 2, 5, 6, 8, 9] {
        assert_eq!(control(&[first.clone(), frame(kind, b"")].concat()), Err(Fault::Frame), "{kind}");
    }
    let asked = |bytes: &[u8]| {
        let mut http3 = listening();
        http3.control(&first).unwrap();
        http3.open(0).unwrap();
        http3.request(bytes)
    };
    for kind in [FRAME_DATA, FRAME_SETTINGS, 2, 5, 6, 8, 9] {
        assert_eq!(asked(&frame(kind, b"")), Err(Fault::Frame), "{kind}");
    }
    assert_eq!(asked(&[connect(), connect()].concat()), Err(Fault::Frame));
    assert_eq!(asked(&[0x40, 0x41, 0]), Err(Fault::Bidirectional));
}

/// What is declared takes nothing: frames that are kept have a limit, before their first byte.
#[test]
fn threat_16_a_frame_that_declares_much_is_refused_at_once() {
    let declares = |kind: u64, length: u64| {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, kind);
        varint::put(&mut bytes, length);
        bytes
    };
    for length in [8 * 1024 + 1, 1 << 60] {
        let mut http3 = listening();
        http3.open(0).unwrap();
        assert_eq!(http3.request(&declares(FRAME_HEADERS, length)), Err(Fault::TooLarge));
        assert_eq!(listening().control(&declares(FRAME_SETTINGS, length)), Err(Fault::TooLarge));
        for capsule in [0x2843, 0x190b_4d3d, 0x190b_4d40] {
            let capsule = declares(capsule, length);
            assert_eq!(session(&[]).request(&frame(FRAME_DATA, &capsule)), Err(Fault::TooLarge));
        }
    }
}

/// Ten thousand frames, capsules or streams that nobody needs end the connection, whatever they are.
#[test]
fn threat_07_what_nobody_needs_is_passed_over_up_to_a_bound() {
    let unknown = frame(GREASE, &[0; 20]);
    type Feed = fn(&mut Http3, &[u8]) -> Result<(), Fault>;
    let feeds: [Feed; 4] = [
        |http3, unknown| http3.control(unknown),
        |http3, unknown| http3.request(unknown),
        |http3, unknown| http3.request(&frame(FRAME_DATA, unknown)),
        |http3, _| http3.begin(&mut UniHead::default(), 0x21).map(|_| ()),
    ];
    for feed in feeds {
        let mut http3 = session(&[]);
        let fed = (0..10_000).find_map(|fed| feed(&mut http3, &unknown).err().map(|fault| (fed, fault)));
        let (fed, fault) = fed.expect("it is bounded");
        assert_eq!(fault, Fault::TooMuch);
        assert!(fed > 500 && fed <= PASSED_OVER_BYTES_MAX / 20, "{fed}");
    }
    let mut http3 = session(&[]);
    assert_eq!(http3.pass_over(PASSED_OVER_BYTES_MAX), Ok(()));
    assert_eq!(http3.pass_over(1), Err(Fault::TooMuch));
}

/// Bytes of a field section that are none.
#[test]
fn threat_14_field_sections_with_tables_overflows_and_padding_are_refused() {
    for (what, section) in [
        ("empty", ""),
        ("half a prefix", "00"),
        ("a dynamic table", "0100"),
        ("a dynamic entry", "000080"),
        ("a dynamic name", "00004000"),
        ("an entry behind the base", "000010"),
        ("a name behind the base", "000000"),
        ("a static entry that is none", "0000ff24"),
        ("an index that overflows", "0000ffffffffffffffffffffff7f"),
        ("a length beyond the end", "00005f1d7f"),
        ("a length that overflows", "00005f1d7fffffffffffffffffff01"),
        ("no value", "00005f1d"),
        ("padding of zeros", "00005f1d8100"),
        ("padding of eight bits", "00005f1d82ffff"),
        ("the end of a string", "00005f1d84ffffffff"),
    ] {
        assert_eq!(read_fields(&hex(section)), Err(Fault::Compression), "{what}");
    }
    for (what, fields) in [
        ("no method", vec![(":path", "/wt")]),
        ("twice", vec![(":method", "CONNECT"), (":method", "CONNECT")]),
    ] {
        assert_eq!(read_fields(&section(&fields)), Err(Fault::Fields), "{what}");
    }
    assert_eq!(read_fields(&hex("00005f0081ff")), Err(Fault::Compression), "a name whose value is padding");
}

/// What others wrote: Chromium 156, and the encoder of web-transport-proto 0.6.3.
#[test]
fn requests_of_others_are_read() {
    let chromium = "0000d7cf508a089d5c0b8170dc75d7c351032f77742f00b95d8749c87a3f89f058d360ea4567b13f2f0e4148\
                    b782c69b07522b3d895a74a6b65692c1ca900b01315f4b8f9d29aee30c044eae05c0b86e3aebe1";
    let (authority, origin) = ("127.0.0.1:7791".to_owned(), Some("http://127.0.0.1:7791".to_owned()));
    assert_eq!(read_fields(&hex(chromium)), Ok(Some(Request { authority: authority.clone(), origin })));
    let library = "0000500e3132372e302e302e313a3737393151032f777427023a70726f746f636f6c0c776562747261\
                   6e73706f7274cfd7";
    assert_eq!(read_fields(&hex(library)), Ok(Some(Request { authority, origin: None })));
    // Chromium sets no limits.
    let settings = hex("01800100000680004000074064330180ffd27701ab60374201c000000f15e8bc959321be85");
    let mut http3 = listening();
    http3.control(&frame(FRAME_SETTINGS, &settings)).unwrap();
    assert_eq!(http3.limits(), Some(UNLIMITED));
}

/// Huffman's code against the examples of RFC 7541, appendix C.
#[test]
fn coded_strings_are_read_as_the_standard_writes_them() {
    // `:authority: www.example.com`, after a method.
    let get = hex("0000cf508cf1e3c2e5f23a6ba0ab90f4ff");
    assert_eq!(read_fields(&get), Ok(None));
    let coded = |name: &str, code: &str| {
        let own = hex(&format!("{name}{:02x}{code}", 0x80 | (code.len() / 2)));
        read_fields(&[section(&CONNECT), own].concat())
    };
    // `origin` is there already, so a second one is a fault; another name is passed over.
    assert_eq!(coded("5f4b", "f1e3c2e5f23a6ba0ab90f4ff"), Err(Fault::Fields));
    assert_eq!(coded("2178", "f1e3c2e5f23a6ba0ab90f4ff"), Ok(Some(request())));
}

/// A client without a browser: what it asks, byte by byte, and with a name whose length takes two bytes.
#[test]
fn the_request_of_a_client_without_a_browser_is_understood() {
    let golden = b"\x01\x2c\0\0\xcf\xd7\x50\x09localhost\x51\x03/wt\x27\x02:protocol\x0cwebtransport";
    assert_eq!(super::request("localhost", None), golden);
    let name = format!("{}.example:7700", "long".repeat(50));
    for (authority, origin) in [(name.as_str(), None), ("a", Some("https://game.example"))] {
        let mut http3 = listening();
        http3.control(&settings(&[])).unwrap();
        http3.open(0).unwrap();
        http3.request(&super::request(authority, origin)).unwrap();
        let asked = Request { authority: authority.into(), origin: origin.map(str::to_owned) };
        assert_eq!(http3.poll_event(), Some(Happened::Asked(asked)));
    }
}

#[test]
fn a_client_without_a_browser_hears_the_status_and_the_close_in_any_cut() {
    let said = [answer(200), frame(GREASE, b"anything"), close(6, "too slow")].concat();
    for cut in 1..=said.len() {
        let (mut answers, mut heard) = (Answers::default(), Vec::new());
        for mut piece in said.chunks(cut) {
            while !piece.is_empty() {
                heard.extend(answers.read(&mut piece).unwrap());
            }
        }
        let closed = Heard::Closed { code: 6, reason: b"too slow".to_vec() };
        assert_eq!(heard, [Heard::Status(200), closed], "{cut}");
    }
    let mut known = [&[0, 0][..], &[0xc0 | 25]].concat();
    assert_eq!(Answers::default().read(&mut &frame(FRAME_HEADERS, &known)[..]), Ok(Some(Heard::Status(200))));
    known.push(0xc0 | 28);
    assert_eq!(Answers::default().read(&mut &frame(FRAME_HEADERS, &known)[..]), Err(Fault::Fields), "twice");
    let mut large = Vec::new();
    varint::put(&mut large, FRAME_HEADERS);
    varint::put(&mut large, 1 << 60);
    assert_eq!(Answers::default().read(&mut &large[..]), Err(Fault::TooLarge));
}
