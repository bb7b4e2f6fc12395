//! Frames of WebSocket: where they begin and end does not depend on how they arrive, and a message goes on as a whole or
//! not at all.

use penstock_transports::http::websocket::{FrameError, FrameScanner, FrameStep};

/// What frames begin with.
pub const DICTIONARY: &[&str] =
    &["\u{1}", "\u{2}", "\u{9}", "\u{a}", "\0", "\u{7e}", "\u{7f}", "\u{7e}\0\u{7e}", "\u{7f}\0\0\0\0\0\u{1}\0\0"];

/// Checks the properties for one input. Its first byte says who sends, which messages go on, and whether extensions
/// were agreed on.
pub fn frames(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let whole = carried(how, bytes, bytes.len().max(1));
    for size in [1, 2, 3, 7] {
        assert_eq!(carried(how, bytes, size), whole, "in pieces of {size}");
    }
    if how & 4 == 0 {
        // What goes on is a beginning of what came, when nothing is left out and nothing follows the end.
        assert!(bytes.starts_with(&whole.0));
    }
    // What went on once goes on again.
    if whole.1.is_none() {
        let again = carried(how & !4, &whole.0, 5);
        assert_eq!(again, (whole.0, None));
    }
}

/// What goes on when the bytes come in pieces, and the error at the end.
fn carried(how: u8, bytes: &[u8], size: usize) -> (Vec<u8>, Option<FrameError>) {
    let mut scanner = FrameScanner::new(how & 1 != 0, how & 2 != 0, 1 << 20);
    let (mut waiting, mut out) = (Vec::new(), Vec::new());
    // Every second message is left out.
    let mut messages = 0_u32;
    for piece in bytes.chunks(size) {
        waiting.extend_from_slice(piece);
        loop {
            let mut admits = |frame: penstock_engine::websocket::Frame| {
                assert!(frame.bytes >= 2);
                messages += u32::from(frame.begins);
                how & 4 == 0 || messages % 2 == 1
            };
            let taken = match scanner.step(&waiting, &mut admits) {
                Ok(FrameStep::More) => break,
                Ok(FrameStep::Drop(count)) => count,
                Ok(FrameStep::Pass(count)) => {
                    out.extend_from_slice(&waiting[..count]);
                    count
                }
                Err(error) => return (out, Some(error)),
            };
            assert!(taken > 0);
            waiting.drain(..taken);
        }
        // A header is at most fourteen bytes, so no more than that ever waits.
        assert!(waiting.len() < 14);
    }
    (out, None)
}
