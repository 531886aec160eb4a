//! Encrypts and decrypts with the crate `cryptoki` under a new key of the nodes.
//!
//! `cargo run -p polyclave-pkcs11 --example cryptoki -- MODULE PIN`

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::Attribute;
use cryptoki::session::UserType;
use cryptoki::types::AuthPin;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(module), Some(pin)) = (arguments.next(), arguments.next()) else {
        return Err("usage: cryptoki MODULE PIN".into());
    };
    let pkcs11 = Pkcs11::new(module)?;
    pkcs11.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))?;
    let slot = *pkcs11.get_slots_with_token()?.first().ok_or("no token")?;
    let session = pkcs11.open_rw_session(slot)?;
    session.login(UserType::User, Some(&AuthPin::new(pin.into())))?;
    let template = [
        Attribute::Token(true),
        Attribute::ValueLen(32.into()),
        Attribute::Encrypt(true),
        Attribute::Decrypt(true),
        Attribute::Label(b"rust".to_vec()),
    ];
    let key = session.generate_key(&Mechanism::AesKeyGen, &template)?;
    let mut iv = [0; 12];
    session.generate_random_slice(&mut iv)?;
    let gcm = || -> Result<Mechanism<'_>, Box<dyn std::error::Error>> {
        Ok(Mechanism::AesGcm(GcmParams::new(iv.to_vec().leak(), b"header", 128.into())?))
    };
    let sealed = session.encrypt(&gcm()?, key, b"a secret of rust")?;
    let opened = session.decrypt(&gcm()?, key, &sealed)?;
    session.destroy_object(key)?;
    if opened != b"a secret of rust" {
        return Err("another text came back".into());
    }
    println!("rust: the secret came back");
    Ok(())
}
