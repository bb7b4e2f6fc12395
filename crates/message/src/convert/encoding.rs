//! Content-Encoding: what was done to the bytes on top of their media type.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::BodyError;

/// Unfolded at once, within a tenth of a millisecond.
const PIECE_BYTES: usize = 32 << 10;

/// The bytes without their encodings, the last applied first. `limit_bytes` bounds what they unfold to.
pub(super) fn decode(bytes: &Bytes, encodings: &str, limit_bytes: usize) -> Result<Bytes, BodyError> {
    let mut bytes = bytes.clone();
    for encoding in encodings.rsplit(',').map(str::trim).filter(|encoding| !encoding.is_empty()) {
        bytes = match encoding.to_ascii_lowercase().as_str() {
            "identity" => continue,
            "gzip" | "x-gzip" => unfold(MultiGzDecoder::new(&bytes[..]), encoding, limit_bytes)?,
            // RFC 9110 §8.4.1.2 means zlib; some peers send the bare stream.
            "deflate" => match bytes.first() {
                Some(first) if first & 0x0F == 8 => unfold(ZlibDecoder::new(&bytes[..]), encoding, limit_bytes)?,
                _ => unfold(DeflateDecoder::new(&bytes[..]), encoding, limit_bytes)?,
            },
            other => {
                return Err(BodyError::Malformed(format!(
                    "the body's content encoding `{other}` cannot be read; `gzip` and `deflate` can"
                )));
            }
        };
    }
    Ok(bytes)
}

fn unfold(reader: impl Read, encoding: &str, limit_bytes: usize) -> Result<Bytes, BodyError> {
    let mut out = Vec::new();
    let mut reader = reader;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match reader.read(&mut piece) {
            Ok(0) => return Ok(out.into()),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(BodyError::Malformed(format!("the body is not valid `{encoding}`: {error}"))),
        };
        if out.len() + read > limit_bytes {
            return Err(BodyError::TooLarge { limit_bytes });
        }
        penstock_budget::pause();
        penstock_budget::make_room(&mut out, read);
        out.extend_from_slice(&piece[..read]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn encodings_come_off_in_reverse_and_within_the_limit() {
        let plain = vec![b'a'; 10_000];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&plain).unwrap();
        let gzip = Bytes::from(gzip.finish().unwrap());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&gzip).unwrap();
        let both = Bytes::from(zlib.finish().unwrap());
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(&plain).unwrap();
        let bare = Bytes::from(bare.finish().unwrap());

        assert_eq!(decode(&gzip, "gzip", 10_000).unwrap(), plain);
        assert_eq!(decode(&both, "gzip, deflate", 10_000).unwrap(), plain);
        assert_eq!(decode(&bare, "deflate", 10_000).unwrap(), plain);
        assert_eq!(decode(&gzip, "gzip", 9_999), Err(BodyError::TooLarge { limit_bytes: 9_999 }));
        assert!(decode(&gzip, "br", 10_000).is_err());
        assert!(decode(&gzip.slice(..20), "gzip", 10_000).is_err());
    }
}
