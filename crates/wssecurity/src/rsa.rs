//! Operations with RSA keys: the only ones here with secret-dependent timing.
//!
//! The exponentiation runs in constant time (`crypto-bigint`) on blinded input, with its result checked against faults. The
//! paddings of decryption are removed without a branch or an index that depends on the plaintext, and a PKCS #1 v1.5
//! padding that does not hold yields a random key in place of an error, so that the failure shows only where any wrong key
//! shows it (RFC 3218 §2.3.2, implicit rejection).

use std::sync::{Mutex, PoisonError};

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd, Resize};
use der::asn1::{OctetStringRef, UintRef};
use der::{Decode, Reader, SliceReader};
use ring::rand::{SecureRandom, SystemRandom};

use crate::algorithm::{Digest, KeyTransport};
use crate::refusal::Refusal;

/// Shorter moduli are broken, longer ones would let a certificate buy much work.
const MODULUS_BITS: std::ops::RangeInclusive<u32> = 1024..=8192;

/// Random bytes.
pub(crate) fn random(count: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; count];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Refusal::check())?;
    Ok(bytes)
}

/// A public key.
#[derive(Debug, Clone)]
pub(crate) struct PublicKey {
    modulus: BoxedMontyParams,
    exponent: BoxedUint,
    /// Bytes of the modulus, and so of a signature or ciphertext.
    pub(crate) bytes: usize,
}

impl PublicKey {
    /// From `RSAPublicKey` of PKCS #1.
    pub(crate) fn from_der(der: &[u8]) -> Option<PublicKey> {
        let mut reader = SliceReader::new(der).ok()?;
        let (modulus, exponent) = reader
            .sequence(|inner| {
                let modulus = UintRef::decode(inner)?;
                let exponent = UintRef::decode(inner)?;
                Ok::<_, der::Error>((modulus.as_bytes().to_vec(), exponent.as_bytes().to_vec()))
            })
            .ok()?;
        PublicKey::new(&modulus, &exponent)
    }

    fn new(modulus: &[u8], exponent: &[u8]) -> Option<PublicKey> {
        let bits = u32::try_from(modulus.len()).ok()?.checked_mul(8)?;
        // A longer exponent is an attack on the time of verification.
        if !MODULUS_BITS.contains(&bits) || exponent.is_empty() || exponent.len() > 5 {
            return None;
        }
        let modulus_number = BoxedUint::from_be_slice(modulus, bits).ok()?;
        let modulus_odd: Option<Odd<BoxedUint>> = Odd::new(modulus_number).into();
        let exponent = BoxedUint::from_be_slice_vartime(exponent);
        Some(PublicKey { modulus: BoxedMontyParams::new_vartime(modulus_odd?), exponent, bytes: modulus.len() })
    }

    fn bits(&self) -> u32 {
        self.modulus.bits_precision()
    }

    /// `number ^ e mod n`.
    fn power(&self, number: &BoxedUint) -> BoxedUint {
        BoxedMontyForm::new(number.clone(), &self.modulus)
            .pow_bounded_exp(&self.exponent, self.exponent.bits())
            .retrieve()
    }

    /// Encrypts a key for the owner of this one.
    pub(crate) fn encrypt(&self, transport: KeyTransport, key: &[u8]) -> Result<Vec<u8>, Refusal> {
        let block = match transport {
            KeyTransport::RsaOaep => pad_oaep(self.bytes, key)?,
            KeyTransport::Rsa15 => pad_v15(self.bytes, key)?,
        };
        let number = BoxedUint::from_be_slice(&block, self.bits()).map_err(|_| Refusal::check())?;
        Ok(self.octets(&self.power(&number)))
    }

    fn octets(&self, number: &BoxedUint) -> Vec<u8> {
        let all = number.to_be_bytes();
        all[all.len() - self.bytes..].to_vec()
    }
}

/// A private key with two primes.
pub(crate) struct PrivateKey {
    public: PublicKey,
    modulus: NonZero<BoxedUint>,
    p: BoxedMontyParams,
    q: BoxedMontyParams,
    q_number: BoxedUint,
    exponent_p: BoxedUint,
    exponent_q: BoxedUint,
    /// `q ^ -1 mod p`.
    coefficient: BoxedUint,
    blinding: Mutex<Blinding>,
}

/// `r ^ e` and `r ^ -1`, squared after each use, so that every input is blinded by another number.
struct Blinding {
    factor: BoxedUint,
    inverse: BoxedUint,
}

impl PrivateKey {
    /// From `PrivateKeyInfo` of PKCS #8 or `RSAPrivateKey` of PKCS #1.
    pub(crate) fn from_der(der: &[u8]) -> Option<PrivateKey> {
        if let Some(inner) = pkcs8_content(der) {
            return PrivateKey::from_pkcs1(&inner);
        }
        PrivateKey::from_pkcs1(der)
    }

    fn from_pkcs1(der: &[u8]) -> Option<PrivateKey> {
        let mut reader = SliceReader::new(der).ok()?;
        // version, n, e, d, p, q, d mod (p-1), d mod (q-1), q^-1 mod p
        let numbers: Vec<Vec<u8>> = reader
            .sequence(|inner| {
                let mut numbers = Vec::with_capacity(9);
                for _ in 0..9 {
                    numbers.push(UintRef::decode(inner)?.as_bytes().to_vec());
                }
                Ok::<_, der::Error>(numbers)
            })
            .ok()?;
        let [_, n, e, _, p, q, dp, dq, inverse] = &*numbers else { return None };
        let public = PublicKey::new(n, e)?;
        let prime = |bytes: &[u8]| -> Option<BoxedMontyParams> {
            let bits = u32::try_from(bytes.len()).ok()? * 8;
            let odd: Option<Odd<BoxedUint>> = Odd::new(BoxedUint::from_be_slice(bytes, bits).ok()?).into();
            Some(BoxedMontyParams::new(odd?))
        };
        let (p, q_params) = (prime(p)?, prime(q)?);
        let number = |bytes: &[u8], bits: u32| BoxedUint::from_be_slice(bytes, bits).ok();
        let modulus: Option<NonZero<BoxedUint>> = NonZero::new(number(n, public.bits())?).into();
        let modulus = modulus?;
        let blinding = Mutex::new(Blinding::new(&public, &modulus)?);
        Some(PrivateKey {
            exponent_p: number(dp, p.bits_precision())?,
            exponent_q: number(dq, q_params.bits_precision())?,
            coefficient: number(inverse, p.bits_precision())?,
            q_number: number(q, q_params.bits_precision())?,
            p,
            q: q_params,
            modulus,
            public,
            blinding,
        })
    }

    /// `number ^ d mod n`, blinded, by the Chinese remainder theorem, checked.
    fn power(&self, number: &BoxedUint) -> Result<BoxedUint, Refusal> {
        if number >= self.modulus.as_ref() {
            return Err(Refusal::check());
        }
        let (factor, inverse) = self.blinding.lock().unwrap_or_else(PoisonError::into_inner).next(&self.modulus);
        let blinded = number.mul_mod(&factor, &self.modulus);
        let of_p = reduced(&blinded, &self.p)?.pow(&self.exponent_p);
        let of_q = reduced(&blinded, &self.q)?.pow(&self.exponent_q).retrieve();
        let difference = &of_p - &reduced(&of_q, &self.p)?;
        let height = (&BoxedMontyForm::new(self.coefficient.clone(), &self.p) * &difference).retrieve();
        let bits = self.public.bits();
        let product = height.concatenating_mul(&self.q_number).try_resize(bits).ok_or_else(Refusal::check)?;
        let found = of_q.try_resize(bits).ok_or_else(Refusal::check)?.wrapping_add(&product);
        // A fault in one half would give the factors away (Boneh, DeMillo, Lipton).
        if self.public.power(&found) != blinded {
            return Err(Refusal::check());
        }
        Ok(found.mul_mod(&inverse, &self.modulus))
    }

    /// Signs with PKCS #1 v1.5 padding, RFC 8017 §8.2.1.
    pub(crate) fn sign(&self, digest: Digest, message: &[u8]) -> Result<Vec<u8>, Refusal> {
        let mut info = digest_prefix(digest).to_vec();
        info.extend(digest.hash(message));
        let fill =
            self.public.bytes.checked_sub(info.len() + 3).filter(|fill| *fill >= 8).ok_or_else(Refusal::check)?;
        let mut block = vec![0, 1];
        block.resize(2 + fill, 0xff);
        block.push(0);
        block.extend(info);
        let number = BoxedUint::from_be_slice(&block, self.public.bits()).map_err(|_| Refusal::check())?;
        Ok(self.public.octets(&self.power(&number)?))
    }

    /// Decrypts a key that has one of these lengths; without a good padding a random key of the first.
    pub(crate) fn decrypt(
        &self,
        transport: KeyTransport,
        message: &[u8],
        lengths: &[usize],
    ) -> Result<Vec<u8>, Refusal> {
        if message.len() != self.public.bytes {
            return Err(Refusal::check());
        }
        let number = BoxedUint::from_be_slice(message, self.public.bits()).map_err(|_| Refusal::check())?;
        let block = self.public.octets(&self.power(&number)?);
        let longest = lengths.iter().max().copied().unwrap_or_default();
        let mut key = random(longest)?;
        let mut length = lengths.first().copied().unwrap_or_default();
        for candidate in lengths {
            let (good, found) = match transport {
                KeyTransport::RsaOaep => unpad_oaep(&block, *candidate)?,
                KeyTransport::Rsa15 => unpad_v15(&block, *candidate)?,
            };
            for (byte, found) in key.iter_mut().zip(found) {
                *byte = (found & good) | (*byte & !good);
            }
            let wide = 0_usize.wrapping_sub(usize::from(good & 1));
            length = (candidate & wide) | (length & !wide);
        }
        key.truncate(length);
        Ok(key)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PrivateKey({} bytes)", self.public.bytes)
    }
}

impl Blinding {
    fn new(public: &PublicKey, modulus: &NonZero<BoxedUint>) -> Option<Blinding> {
        let bytes = random(public.bytes).ok()?;
        let number = BoxedUint::from_be_slice(&bytes, public.bits()).ok()?.rem(modulus);
        let inverse: Option<BoxedUint> = number.invert_mod(modulus).into();
        Some(Blinding { factor: public.power(&number), inverse: inverse? })
    }

    /// The pair for one use.
    fn next(&mut self, modulus: &NonZero<BoxedUint>) -> (BoxedUint, BoxedUint) {
        let next = Blinding {
            factor: self.factor.mul_mod(&self.factor, modulus),
            inverse: self.inverse.mul_mod(&self.inverse, modulus),
        };
        let used = std::mem::replace(self, next);
        (used.factor, used.inverse)
    }
}

/// A number modulo a prime.
fn reduced(number: &BoxedUint, prime: &BoxedMontyParams) -> Result<BoxedMontyForm, Refusal> {
    let remainder = number.rem(prime.modulus().as_nz_ref());
    let remainder = remainder.try_resize(prime.bits_precision()).ok_or_else(Refusal::check)?;
    Ok(BoxedMontyForm::new(remainder, prime))
}

/// `PrivateKeyInfo ::= SEQUENCE { version, algorithm, OCTET STRING { RSAPrivateKey } … }`, RFC 5958.
fn pkcs8_content(der: &[u8]) -> Option<Vec<u8>> {
    let mut reader = SliceReader::new(der).ok()?;
    reader
        .sequence(|inner| {
            UintRef::decode(inner)?;
            inner.tlv_bytes()?;
            let content = <&OctetStringRef>::decode(inner)?.as_bytes().to_vec();
            while !inner.is_finished() {
                inner.tlv_bytes()?;
            }
            Ok::<_, der::Error>(content)
        })
        .ok()
}

/// `DigestInfo` up to the digest, RFC 8017 §9.2.
fn digest_prefix(digest: Digest) -> &'static [u8] {
    match digest {
        Digest::Sha1 => b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
        Digest::Sha256 => b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20",
        Digest::Sha512 => b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40",
    }
}

const SHA1_BYTES: usize = 20;

fn pad_oaep(size: usize, key: &[u8]) -> Result<Vec<u8>, Refusal> {
    let fill = size.checked_sub(key.len() + 2 * SHA1_BYTES + 2).ok_or_else(Refusal::check)?;
    let mut data = Digest::Sha1.hash(b"");
    data.resize(SHA1_BYTES + fill, 0);
    data.push(1);
    data.extend_from_slice(key);
    let mut seed = random(SHA1_BYTES)?;
    mask(&mut data, &seed);
    mask(&mut seed, &data);
    Ok([&[0][..], &seed, &data].concat())
}

fn pad_v15(size: usize, key: &[u8]) -> Result<Vec<u8>, Refusal> {
    let fill = size.checked_sub(key.len() + 3).filter(|fill| *fill >= 8).ok_or_else(Refusal::check)?;
    let mut block = vec![0, 2];
    while block.len() < 2 + fill {
        block.extend(random(fill)?.into_iter().filter(|byte| *byte != 0));
    }
    block.truncate(2 + fill);
    block.push(0);
    block.extend_from_slice(key);
    Ok(block)
}

/// MGF1 with SHA-1, RFC 8017 §B.2.1, onto `target`.
fn mask(target: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in target.chunks_mut(SHA1_BYTES).enumerate() {
        let mut context = ring::digest::Context::new(Digest::Sha1.ring());
        context.update(seed);
        context.update(&(counter as u32).to_be_bytes());
        for (byte, other) in chunk.iter_mut().zip(context.finish().as_ref()) {
            *byte ^= other;
        }
    }
}

/// All bits set when the bytes are equal, none otherwise.
fn equal(one: u8, two: u8) -> u8 {
    let different = u16::from(one ^ two);
    // 0 borrows from the upper byte, anything else does not.
    (different.wrapping_sub(1) >> 8) as u8
}

/// Removes OAEP around a key whose length is known: every byte is checked in constant time.
fn unpad_oaep(block: &[u8], length: usize) -> Result<(u8, Vec<u8>), Refusal> {
    let size = block.len();
    let at = size.checked_sub(length).filter(|at| *at >= 2 * SHA1_BYTES + 2).ok_or_else(Refusal::check)?;
    let mut seed = block[1..=SHA1_BYTES].to_vec();
    let mut data = block[1 + SHA1_BYTES..].to_vec();
    mask(&mut seed, &data);
    mask(&mut data, &seed);
    let mut good = equal(block[0], 0);
    let label = Digest::Sha1.hash(b"");
    let fill = at - 2 - 2 * SHA1_BYTES;
    let expected = label.into_iter().chain(std::iter::repeat_n(0, fill)).chain([1]);
    for (found, wanted) in data.iter().zip(expected) {
        good &= equal(*found, wanted);
    }
    Ok((good, data[data.len() - length..].to_vec()))
}

/// Removes PKCS #1 v1.5 around a key whose length is known.
fn unpad_v15(block: &[u8], length: usize) -> Result<(u8, Vec<u8>), Refusal> {
    let at = block.len().checked_sub(length).filter(|at| *at >= 11).ok_or_else(Refusal::check)?;
    let mut good = equal(block[0], 0) & equal(block[1], 2) & equal(block[at - 1], 0);
    for byte in &block[2..at - 1] {
        good &= !equal(*byte, 0);
    }
    Ok((good, block[at..].to_vec()))
}
