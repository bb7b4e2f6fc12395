//! Symmetric encryption of XML Encryption 1.1 §5.2: CBC with the padding of XML Encryption, and GCM.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{AesGcm, Nonce};
use cbc::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use des::TdesEde3;

use crate::algorithm::DataEncryption;
use crate::refusal::Refusal;
use crate::rsa::random;

/// Encrypts: the initialization vector, then the ciphertext.
pub(crate) fn encrypt(method: DataEncryption, key: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Refusal> {
    match method {
        DataEncryption::TripleDes => encrypt_cbc::<TdesEde3>(key, plaintext),
        DataEncryption::Aes128Cbc => encrypt_cbc::<Aes128>(key, plaintext),
        DataEncryption::Aes192Cbc => encrypt_cbc::<Aes192>(key, plaintext),
        DataEncryption::Aes256Cbc => encrypt_cbc::<Aes256>(key, plaintext),
        DataEncryption::Aes128Gcm => encrypt_gcm::<AesGcm<Aes128, U12>>(key, plaintext),
        DataEncryption::Aes192Gcm => encrypt_gcm::<AesGcm<Aes192, U12>>(key, plaintext),
        DataEncryption::Aes256Gcm => encrypt_gcm::<AesGcm<Aes256, U12>>(key, plaintext),
    }
}

/// Undoes [`encrypt`].
pub(crate) fn decrypt(method: DataEncryption, key: &[u8], message: &[u8]) -> Result<Vec<u8>, Refusal> {
    match method {
        DataEncryption::TripleDes => decrypt_cbc::<TdesEde3>(key, message),
        DataEncryption::Aes128Cbc => decrypt_cbc::<Aes128>(key, message),
        DataEncryption::Aes192Cbc => decrypt_cbc::<Aes192>(key, message),
        DataEncryption::Aes256Cbc => decrypt_cbc::<Aes256>(key, message),
        DataEncryption::Aes128Gcm => decrypt_gcm::<AesGcm<Aes128, U12>>(key, message),
        DataEncryption::Aes192Gcm => decrypt_gcm::<AesGcm<Aes192, U12>>(key, message),
        DataEncryption::Aes256Gcm => decrypt_gcm::<AesGcm<Aes256, U12>>(key, message),
    }
}

fn encrypt_cbc<C: BlockCipherEncrypt + KeyInit>(key: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Refusal> {
    let size = C::block_size();
    let vector = random(size)?;
    let mut encryptor = cbc::Encryptor::<C>::new_from_slices(key, &vector).map_err(|_| Refusal::check())?;
    // XML Encryption §5.2: only the last byte of the padding means something.
    let padding = size - plaintext.len() % size;
    let mut data = plaintext.to_vec();
    data.extend(random(padding - 1)?);
    data.push(padding as u8);
    let mut out = vector;
    for chunk in data.chunks_exact(size) {
        let mut block = Block::<C>::try_from(chunk).map_err(|_| Refusal::check())?;
        encryptor.encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    Ok(out)
}

fn decrypt_cbc<C: BlockCipherDecrypt + KeyInit>(key: &[u8], message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let size = C::block_size();
    let (vector, data) = message.split_at_checked(size).ok_or_else(Refusal::check)?;
    if data.is_empty() || data.len() % size != 0 {
        return Err(Refusal::check());
    }
    let mut decryptor = cbc::Decryptor::<C>::new_from_slices(key, vector).map_err(|_| Refusal::check())?;
    let mut out = Vec::with_capacity(data.len());
    for chunk in data.chunks_exact(size) {
        let mut block = Block::<C>::try_from(chunk).map_err(|_| Refusal::check())?;
        decryptor.decrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    let padding = out.last().map_or(0, |last| usize::from(*last));
    if padding == 0 || padding > size {
        return Err(Refusal::check());
    }
    out.truncate(out.len() - padding);
    Ok(out)
}

/// Bytes of the initialization vector of GCM.
const GCM_VECTOR_BYTES: usize = 12;

fn encrypt_gcm<C: Aead<NonceSize = U12> + KeyInit>(key: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Refusal> {
    let cipher = C::new_from_slice(key).map_err(|_| Refusal::check())?;
    let mut out = random(GCM_VECTOR_BYTES)?;
    let vector = Nonce::<U12>::try_from(&*out).map_err(|_| Refusal::check())?;
    out.extend(cipher.encrypt(&vector, plaintext).map_err(|_| Refusal::check())?);
    Ok(out)
}

fn decrypt_gcm<C: Aead<NonceSize = U12> + KeyInit>(key: &[u8], message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let cipher = C::new_from_slice(key).map_err(|_| Refusal::check())?;
    let (vector, data) = message.split_at_checked(GCM_VECTOR_BYTES).ok_or_else(Refusal::check)?;
    let vector = Nonce::<U12>::try_from(vector).map_err(|_| Refusal::check())?;
    cipher.decrypt(&vector, data).map_err(|_| Refusal::check())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_decrypted() {
        for method in [
            DataEncryption::TripleDes,
            DataEncryption::Aes128Cbc,
            DataEncryption::Aes192Cbc,
            DataEncryption::Aes256Cbc,
            DataEncryption::Aes128Gcm,
            DataEncryption::Aes192Gcm,
            DataEncryption::Aes256Gcm,
        ] {
            let key = random(method.key_bytes()).expect("random bytes");
            for length in [0, 1, 15, 16, 17, 1000] {
                let plaintext = vec![7; length];
                let message = encrypt(method, &key, &plaintext).expect("encrypted");
                assert_eq!(decrypt(method, &key, &message), Ok(plaintext), "{method:?} {length}");
                for cut in [0, 1, message.len() - 1] {
                    assert_eq!(decrypt(method, &key, &message[..cut]), Err(Refusal::check()), "{method:?} {cut}");
                }
            }
            assert_eq!(encrypt(method, &key[1..], b"x"), Err(Refusal::check()));
        }
    }
}
