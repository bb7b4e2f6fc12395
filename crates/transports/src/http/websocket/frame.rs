//! Where frames begin and end, from their headers alone: RFC 6455 §5.

use std::fmt;

use penstock_engine::websocket::Frame;

pub(super) const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
pub(super) const CLOSE: u8 = 8;

/// Payload of a control frame, RFC 6455 §5.5.
const CONTROL_BYTES_MAX: u64 = 125;

/// Reads the frames that one side sends.
#[derive(Debug)]
pub struct FrameScanner {
    from_client: bool,
    /// Whether an extension was agreed on, which gives a meaning to the reserved bits.
    extended: bool,
    frame_bytes_max: u64,
    /// What is still to come of the current frame, its header included.
    left: u64,
    /// Whether the current frame goes on.
    passes: bool,
    /// Whether the message goes on that has begun and not ended.
    message: Option<bool>,
    /// Whether the current frame, or the last one, is the one that closes.
    closing: bool,
}

/// What becomes of the bytes at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameStep {
    /// So many go on.
    Pass(usize),
    /// So many are left out.
    Drop(usize),
    /// There is no whole header: more must be read.
    More,
}

/// Why what was sent is no frame that may come now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A reserved bit is set and no extension was agreed on.
    Reserved,
    /// A kind of frame that does not exist.
    Opcode,
    /// A client that does not mask, or a backend that does.
    Mask,
    /// A length that is written with more bytes than it needs, or that is negative.
    Length,
    /// A control frame in pieces or with too large a payload.
    Control,
    /// A message inside a message, or a piece of none.
    Order,
    /// A larger frame, or message where those are read, than is let through.
    TooLarge,
    /// A text that is not UTF-8.
    Text,
    /// A message that is no text where texts are read.
    Binary,
}

impl FrameError {
    /// The close code for the sender of the frame, RFC 6455 §7.4.1.
    pub fn close_code(self) -> u16 {
        match self {
            FrameError::TooLarge => 1009,
            FrameError::Text => 1007,
            FrameError::Binary => 1003,
            _ => 1002,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            FrameError::Reserved => "a reserved bit is set",
            FrameError::Opcode => "the kind of the frame does not exist",
            FrameError::Mask => "the frame is masked the wrong way round",
            FrameError::Length => "the length of the frame is written wrongly",
            FrameError::Control => "a control frame is in pieces or too large",
            FrameError::Order => "the frame does not belong to a message",
            FrameError::TooLarge => "the frame is too large",
            FrameError::Text => "the text is not UTF-8",
            FrameError::Binary => "the message is not text",
        })
    }
}

impl std::error::Error for FrameError {}

/// The header of a frame.
pub(super) struct Head {
    pub opcode: u8,
    pub is_last: bool,
    /// Of the frame, its header included.
    pub bytes: u64,
    /// Of the header, with the mask at its end when there is one.
    pub header_bytes: usize,
}

impl FrameScanner {
    /// Before the first frame of one side. `extended` says whether an extension was agreed on.
    pub fn new(from_client: bool, extended: bool, frame_bytes_max: u64) -> FrameScanner {
        FrameScanner { from_client, extended, frame_bytes_max, left: 0, passes: true, message: None, closing: false }
    }

    /// Says what becomes of the bytes at the start of `bytes`, which are then behind: the longest run with one fate.
    /// `admits` is called once for each frame of a message, as [`penstock_engine::websocket::FrameGate`] is. An error
    /// comes when everything before it was taken.
    pub fn step(&mut self, bytes: &[u8], admits: &mut dyn FnMut(Frame) -> bool) -> Result<FrameStep, FrameError> {
        let (mut run, mut passes) = (0, self.passes);
        while run < bytes.len() {
            if self.left == 0 {
                match self.begin(&bytes[run..], admits) {
                    Ok(true) => {}
                    Ok(false) => break,
                    // Sent after the pending data; it was not recorded.
                    Err(_) if run > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            if run == 0 {
                passes = self.passes;
            } else if passes != self.passes {
                break;
            }
            let rest = bytes.len() - run;
            let here = usize::try_from(self.left).map_or(rest, |left| left.min(rest));
            self.left -= here as u64;
            run += here;
        }
        Ok(match run {
            0 => FrameStep::More,
            _ if passes => FrameStep::Pass(run),
            _ => FrameStep::Drop(run),
        })
    }

    /// Whether nothing may follow: the frame that closes has passed.
    pub fn is_closed(&self) -> bool {
        self.closing && self.left == 0
    }

    /// Whether a frame of another source may be inserted here.
    pub fn is_between_frames(&self) -> bool {
        self.left == 0 || !self.passes
    }

    /// Whether a message of another source may be inserted here.
    pub fn is_between_messages(&self) -> bool {
        self.is_between_frames() && self.message != Some(true)
    }

    /// Begins the frame at the start of `bytes`; `false` when its header is not complete.
    fn begin(&mut self, bytes: &[u8], admits: &mut dyn FnMut(Frame) -> bool) -> Result<bool, FrameError> {
        if self.closing {
            // RFC 6455 §5.5.1: nothing follows the frame that closes.
            (self.left, self.passes) = (bytes.len() as u64, false);
            return Ok(true);
        }
        let Some(head) = head(bytes, self.from_client, self.extended, self.frame_bytes_max)? else { return Ok(false) };
        let frame = |begins| Frame { from_client: self.from_client, begins, bytes: head.bytes };
        let passes = match (head.opcode, self.message) {
            (CLOSE.., _) => {
                self.closing = head.opcode == CLOSE;
                true
            }
            (CONTINUATION, None) | (1.., Some(_)) => return Err(FrameError::Order),
            (CONTINUATION, Some(passes)) => {
                if passes {
                    admits(frame(false));
                }
                self.message = if head.is_last { None } else { Some(passes) };
                passes
            }
            (_, None) => {
                let passes = admits(frame(true));
                self.message = if head.is_last { None } else { Some(passes) };
                passes
            }
        };
        (self.left, self.passes) = (head.bytes, passes);
        Ok(true)
    }
}

/// Reads a header, RFC 6455 §5.2; `None` when it is not complete.
pub(super) fn head(
    bytes: &[u8],
    from_client: bool,
    extended: bool,
    payload_bytes_max: u64,
) -> Result<Option<Head>, FrameError> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if first & 0x70 != 0 && !extended {
        return Err(FrameError::Reserved);
    }
    let opcode = first & 0x0f;
    if matches!(opcode, 3..=7 | 11..) {
        return Err(FrameError::Opcode);
    }
    if (second & 0x80 != 0) != from_client {
        return Err(FrameError::Mask);
    }
    let mask_bytes = if from_client { 4 } else { 0 };
    let (length_bytes, payload_bytes, least) = match second & 0x7f {
        126 => {
            let Some(length) = rest.first_chunk() else { return Ok(None) };
            (2, u64::from(u16::from_be_bytes(*length)), 126)
        }
        127 => {
            let Some(length) = rest.first_chunk() else { return Ok(None) };
            (8, u64::from_be_bytes(*length), 1 << 16)
        }
        short => (0, u64::from(short), 0),
    };
    if payload_bytes < least || payload_bytes >> 63 != 0 {
        return Err(FrameError::Length);
    }
    let is_last = first & 0x80 != 0;
    // A code of one byte is none, RFC 6455 §5.5.1.
    let is_odd = opcode == CLOSE && payload_bytes == 1;
    if opcode >= CLOSE && (!is_last || payload_bytes > CONTROL_BYTES_MAX || is_odd) {
        return Err(FrameError::Control);
    }
    // A ping between the frames of a message is no part of it.
    if opcode < CLOSE && payload_bytes > payload_bytes_max {
        return Err(FrameError::TooLarge);
    }
    if rest.len() < length_bytes + mask_bytes {
        return Ok(None);
    }
    let header_bytes = 2 + length_bytes + mask_bytes;
    Ok(Some(Head { opcode, is_last, bytes: payload_bytes + header_bytes as u64, header_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of a client with an empty mask.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..=125 => frame.push(0x80 | short as u8),
            long => {
                frame.push(0x80 | 126);
                frame.extend((long as u16).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        frame
    }

    /// Feeds bytes in pieces; what goes on, and the error at the end.
    fn fed(bytes: &[u8], piece: usize, scanner: &mut FrameScanner, admits: &[bool]) -> (Vec<u8>, Option<FrameError>) {
        let (mut waiting, mut out, mut asked) = (Vec::new(), Vec::new(), admits.iter());
        let mut decide = |frame: Frame| !frame.begins || asked.next().copied().unwrap_or(true);
        for part in bytes.chunks(piece) {
            waiting.extend_from_slice(part);
            loop {
                let count = match scanner.step(&waiting, &mut decide) {
                    Ok(FrameStep::More) => break,
                    Ok(FrameStep::Drop(count)) => count,
                    Ok(FrameStep::Pass(count)) => {
                        out.extend_from_slice(&waiting[..count]);
                        count
                    }
                    Err(error) => return (out, Some(error)),
                };
                waiting.drain(..count);
            }
        }
        (out, None)
    }

    fn client() -> FrameScanner {
        FrameScanner::new(true, false, 1 << 20)
    }

    #[test]
    fn messages_go_on_or_are_left_out_as_a_whole_however_they_arrive() {
        let (one, ping) = (masked(0x81, b"one"), masked(0x89, b"p"));
        let (begin, middle, end) = (masked(0x02, &[7; 300]), masked(0x00, b"m"), masked(0x80, b"e"));
        let close = masked(0x88, &1000_u16.to_be_bytes());
        let parts = [&one, &begin, &ping, &middle, &end, &one, &close, &one];
        let all = parts.map(Vec::as_slice).concat();
        for piece in [1, 2, 3, 5, 7, 64, all.len()] {
            let expected = [&one, &begin, &ping, &middle, &end, &one, &close].map(Vec::as_slice).concat();
            let mut scanner = client();
            assert_eq!(fed(&all, piece, &mut scanner, &[]), (expected, None), "pieces of {piece}");
            assert!(scanner.is_closed());
            let expected = [&one, &ping, &one, &close].map(Vec::as_slice).concat();
            assert_eq!(fed(&all, piece, &mut client(), &[true, false, true]), (expected, None), "pieces of {piece}");
        }
    }

    #[test]
    fn several_frames_are_one_run() {
        let frame = masked(0x81, b"one");
        let all = frame.repeat(3);
        let (mut scanner, mut asked) = (client(), 0);
        let mut admits = |frame: Frame| {
            asked += 1;
            assert_eq!(frame, Frame { from_client: true, begins: true, bytes: 9 });
            true
        };
        assert_eq!(scanner.step(&all[..22], &mut admits), Ok(FrameStep::Pass(18)));
        assert!(scanner.is_between_frames());
        assert_eq!(scanner.step(&all[18..], &mut admits), Ok(FrameStep::Pass(9)));
        assert_eq!(asked, 3);
    }

    #[test]
    fn an_invalid_frame_is_reported_after_valid_ones() {
        let good = masked(0x81, b"ok");
        for (bad, error) in [
            (vec![0xc1, 0x80], FrameError::Reserved),
            (vec![0x83, 0x80], FrameError::Opcode),
            (vec![0x8b, 0x80], FrameError::Opcode),
            (vec![0x81, 0x00], FrameError::Mask),
            (vec![0x81, 0xfe, 0, 125], FrameError::Length),
            (vec![0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], FrameError::Length),
            (vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], FrameError::Length),
            (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0], FrameError::TooLarge),
            (vec![0x09, 0x80], FrameError::Control),
            (vec![0x89, 0xfe, 0, 126], FrameError::Control),
            (vec![0x88, 0x81], FrameError::Control),
            (vec![0x80, 0x80, 0, 0, 0, 0], FrameError::Order),
        ] {
            let all = [good.as_slice(), &bad].concat();
            assert_eq!(fed(&all, all.len(), &mut client(), &[]), (good.clone(), Some(error)), "{bad:02x?}");
        }
        let nested = [masked(0x01, b"a"), masked(0x81, b"b")].concat();
        assert_eq!(fed(&nested, 100, &mut client(), &[]).1, Some(FrameError::Order));
        assert_eq!((FrameError::TooLarge.close_code(), FrameError::Mask.close_code()), (1009, 1002));
    }

    #[test]
    fn a_backend_does_not_mask_and_an_extension_may_set_bits() {
        let mut backend = FrameScanner::new(false, true, 10);
        let frame = [0xc1, 2, b'h', b'i'];
        assert_eq!(fed(&frame, 3, &mut backend, &[]), (frame.to_vec(), None));
        assert_eq!(fed(&masked(0x81, b"x"), 100, &mut backend, &[]).1, Some(FrameError::Mask));
    }
}
