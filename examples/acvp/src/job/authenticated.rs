//! GCM and CMAC.

use anyhow::{Result, bail, ensure};
use polyclave_api::Mode;

use super::{Asked, Job, Plan, Task, bytes, not_supported, whole_bytes};

pub(super) fn gcm(asked: &Asked<'_>) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.aes_key()?, asked.encrypts()?);
    let data = asked.data(encrypts)?;
    let additional = bytes("aad", asked.test.aad.as_deref())?;
    let tag_bytes = whole_bytes("tagLen", asked.group.tag_len)?;
    if let Err(why) = Mode::Gcm.check_tag(tag_bytes) {
        return not_supported(why);
    }
    let task = if encrypts {
        let nonce = match (asked.group.iv_gen.as_deref(), asked.group.iv_gen_mode.as_deref()) {
            (Some("external"), _) => Some(bytes("iv", asked.test.iv.as_deref())?),
            (Some("internal"), Some("8.2.2")) => None,
            (Some("internal"), how) => {
                return not_supported(format!(
                    "nodes draw nonces (8.2.2), and do not construct them ({})",
                    how.unwrap_or("no ivGenMode")
                ));
            }
            _ => bail!("ivGen is external or internal"),
        };
        Task::GcmEncrypt { nonce, additional, data, tag_bytes }
    } else {
        let (nonce, tag) = (bytes("iv", asked.test.iv.as_deref())?, bytes("tag", asked.test.tag.as_deref())?);
        ensure!(
            tag.len() == tag_bytes,
            "its group has tags of {tag_bytes} bytes, and this has {}",
            tag.len()
        );
        Task::GcmDecrypt { nonce, additional, data, tag }
    };
    if let Task::GcmEncrypt { nonce: Some(nonce), .. } | Task::GcmDecrypt { nonce, .. } = &task
        && let Err(why) = Mode::Gcm.check_nonce(nonce.len())
    {
        return not_supported(why);
    }
    Ok(Plan::Ask(Job { cipher, key, task }))
}

pub(super) fn cmac(asked: &Asked<'_>, algorithm: &str) -> Result<Plan> {
    let (cipher, key) = asked.key(algorithm)?;
    let message = bytes("message", asked.test.message.as_deref())?;
    let length = whole_bytes("macLen", asked.group.mac_len)?;
    let most = if cipher.starts_with("3des") { 8 } else { 16 };
    ensure!((1..=most).contains(&length), "codes of {cipher} have 1 to {most} bytes, not {length}");
    let task = match asked.group.direction.as_deref() {
        Some("gen") => Task::Cmac { message, bytes: length },
        Some("ver") => {
            let code = bytes("mac", asked.test.mac.as_deref())?;
            ensure!(
                code.len() == length,
                "its group has codes of {length} bytes, and this has {}",
                code.len()
            );
            Task::CmacVerify { message, code }
        }
        other => bail!("the direction is gen or ver, not {}", other.unwrap_or("missing")),
    };
    Ok(Plan::Ask(Job { cipher, key, task }))
}
