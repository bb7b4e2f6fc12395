//! Whole messages, unmasked, for decisions by content; and texts as frames.

use penstock_engine::clock;

use super::frame::{self, CLOSE, CONTINUATION, FrameError, TEXT};

/// The largest message that is read. A query may have 1 MiB, and its escapes in JSON several times that.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Reads the messages that one side sends. No extension may have been agreed on.
#[derive(Debug)]
pub struct MessageReader {
    from_client: bool,
    /// What has come of a message that is not at its end.
    begun: Option<Vec<u8>>,
    /// Whether the frame that closes has passed.
    closed: bool,
}

/// What stands at the start of the bytes at hand.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageStep {
    /// No whole frame: more must be read.
    More,
    /// So many bytes that are a control frame, which goes on.
    Control(usize),
    /// So many bytes that are nothing to anybody yet: a piece of a message, or what comes behind the end.
    Nothing(usize),
    /// So many bytes that end a message, and its text.
    Text(usize, String),
}

impl MessageReader {
    /// Before the first frame of one side.
    pub fn new(from_client: bool) -> MessageReader {
        MessageReader { from_client, begun: None, closed: false }
    }

    /// Says what stands at the start of `bytes`.
    pub fn step(&mut self, bytes: &[u8]) -> Result<MessageStep, FrameError> {
        if bytes.is_empty() {
            return Ok(MessageStep::More);
        }
        if self.closed {
            // RFC 6455 §5.5.1: nothing follows the frame that closes.
            return Ok(MessageStep::Nothing(bytes.len()));
        }
        let begun_bytes = self.begun.as_ref().map_or(0, Vec::len);
        let room = (MESSAGE_BYTES_MAX - begun_bytes) as u64;
        let Some(head) = frame::head(bytes, self.from_client, false, room)? else { return Ok(MessageStep::More) };
        match (head.opcode, &self.begun) {
            (CLOSE.., _) | (CONTINUATION, Some(_)) | (TEXT, None) => {}
            (CONTINUATION, None) | (_, Some(_)) => return Err(FrameError::Order),
            (_, None) => return Err(FrameError::Binary),
        }
        // Bounded by the room above.
        let frame_bytes = head.bytes as usize;
        let Some(payload) = bytes.get(head.header_bytes..frame_bytes) else { return Ok(MessageStep::More) };
        if head.opcode >= CLOSE {
            self.closed = head.opcode == CLOSE;
            return Ok(MessageStep::Control(frame_bytes));
        }
        let mut text = self.begun.take().unwrap_or_default();
        text.extend_from_slice(payload);
        if self.from_client {
            let mask = &bytes[head.header_bytes - 4..head.header_bytes];
            text[begun_bytes..].iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        }
        if !head.is_last {
            self.begun = Some(text);
            return Ok(MessageStep::Nothing(frame_bytes));
        }
        let text = String::from_utf8(text).map_err(|_| FrameError::Text)?;
        Ok(MessageStep::Text(frame_bytes, text))
    }

    /// Whether nothing may follow.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// A text as a frame. A client's frames are masked, so ours to a backend is.
pub(super) fn text_frame(text: &str, masked: bool) -> Vec<u8> {
    frame_of(TEXT, text.as_bytes(), masked)
}

/// A frame that closes. `reason` has at most 123 bytes.
pub(super) fn close_frame(code: u16, reason: &str, masked: bool) -> Vec<u8> {
    let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
    frame_of(CLOSE, &payload, masked)
}

fn frame_of(opcode: u8, payload: &[u8], masked: bool) -> Vec<u8> {
    let mask_bit = if masked { 0x80 } else { 0 };
    let mut frame = Vec::with_capacity(payload.len() + 14);
    frame.push(0x80 | opcode);
    match payload.len() {
        short @ 0..=125 => frame.push(mask_bit | short as u8),
        middle @ 126..=0xffff => {
            frame.push(mask_bit | 126);
            frame.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            frame.push(mask_bit | 127);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    let mask = if masked { (clock::random() as u32).to_be_bytes() } else { [0; 4] };
    if masked {
        frame.extend_from_slice(&mask);
    }
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of a message of a client, masked with what is not nothing.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = frame_of(TEXT, payload, true);
        frame[0] = first;
        frame
    }

    /// Feeds bytes in pieces; the texts, the bytes of control frames, and the error at the end.
    fn fed(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>, Option<FrameError>) {
        let (mut reader, mut waiting) = (MessageReader::new(true), Vec::new());
        let (mut texts, mut controls) = (Vec::new(), Vec::new());
        for part in bytes.chunks(piece) {
            waiting.extend_from_slice(part);
            loop {
                let count = match reader.step(&waiting) {
                    Ok(MessageStep::More) => break,
                    Ok(MessageStep::Nothing(count)) => count,
                    Ok(MessageStep::Control(count)) => {
                        controls.extend_from_slice(&waiting[..count]);
                        count
                    }
                    Ok(MessageStep::Text(count, text)) => {
                        texts.push(text);
                        count
                    }
                    Err(error) => return (texts, controls, Some(error)),
                };
                waiting.drain(..count);
            }
        }
        (texts, controls, None)
    }

    #[test]
    fn messages_are_whole_however_they_arrive() {
        let ping = masked(0x89, b"p");
        let close = masked(0x88, &1000_u16.to_be_bytes());
        let long = "l".repeat(70_000);
        let parts = [
            masked(0x81, b"one"),
            masked(0x01, b"t\xc3"),
            ping.clone(),
            masked(0x00, b""),
            masked(0x80, b"\xa4"),
            masked(0x81, long.as_bytes()),
            masked(0x81, b""),
            close.clone(),
            masked(0x81, b"behind the end"),
        ];
        let all = parts.concat();
        for piece in [1, 2, 3, 7, 64, all.len()] {
            let expected = vec!["one".to_owned(), "t\u{e4}".to_owned(), long.clone(), String::new()];
            assert_eq!(fed(&all, piece), (expected, [&ping[..], &close[..]].concat(), None), "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_text_ends_the_connection() {
        let room = MESSAGE_BYTES_MAX as u64;
        let large = [&[0x81, 0xff][..], &(room + 1).to_be_bytes()].concat();
        let in_pieces = [masked(0x01, b"12345"), [&[0x80, 0xff][..], &(room - 4).to_be_bytes()].concat()].concat();
        for (bytes, error) in [
            (masked(0x82, b"{}"), FrameError::Binary),
            (masked(0x81, b"\xff"), FrameError::Text),
            (masked(0x80, b"x"), FrameError::Order),
            ([masked(0x01, b"x"), masked(0x81, b"x")].concat(), FrameError::Order),
            (masked(0xc1, b"x"), FrameError::Reserved),
            (large, FrameError::TooLarge),
            (in_pieces, FrameError::TooLarge),
        ] {
            assert_eq!(fed(&bytes, 1024).2, Some(error));
        }
        assert_eq!((FrameError::Binary.close_code(), FrameError::Text.close_code()), (1003, 1007));
    }

    #[test]
    fn frames_to_clients_are_not_masked() {
        assert_eq!(text_frame("hi", false), b"\x81\x02hi");
        assert_eq!(close_frame(4001, "no", false), b"\x88\x04\x0f\xa1no");
        let text = "x".repeat(0x1_0000);
        assert_eq!(text_frame(&text, false)[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(text_frame(&text, true).len(), 14 + text.len());
    }
}
