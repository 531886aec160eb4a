//! What a request for approval says, in words, from the bytes that are signed.

use polyclave_api::{Approval, Statement, Subject};
use polyclave_config::{Moment, certificate_fingerprint, is_signed_by};
use polyclave_transport::{CertificateDer, check_identity};

use crate::say;

/// Prints what a request is for, and who has signed it.
pub fn tell(approval: &Approval, statement: &Statement) {
    say!("what:      {}", what(statement));
    for key in &statement.keys {
        say!("key:       '{}', version {}, with the id {}", key.name, key.version, hex::encode(key.id));
    }
    if let Subject::Operation { requester, operation } = &statement.subject {
        say!("asked by:  {}", who(requester));
        say!("in full:   {operation:?}");
    }
    say!("cluster:   {}", hex::encode(statement.cluster));
    let end = Moment::from_seconds(statement.not_after);
    let over = if Moment::now() > end { " (over by this machine's clock)" } else { "" };
    say!("until:     {end}{over}");
    say!("purpose:   {:?} (as the one who asks says)", statement.purpose);
    say!("digest:    {}", hex::encode(approval.digest()));
    if approval.signatures.is_empty() {
        say!("signed by: nobody yet");
    }
    for (certificate, verifies) in signers(approval) {
        let not = if verifies { "" } else { " (THIS SIGNATURE DOES NOT VERIFY)" };
        say!("signed by: {certificate}{not}");
    }
}

/// The certificates of all signatures, and whether they verify.
pub fn signers(approval: &Approval) -> Vec<(String, bool)> {
    let of = |s: &polyclave_api::ApprovalSignature| {
        let verifies = is_signed_by(approval, &CertificateDer::from(s.certificate.as_slice()));
        (fingerprint(&s.certificate), verifies)
    };
    approval.signatures.iter().map(of).collect()
}

/// The client that will ask: by its certificate, or by the identity that an authority vouches for.
fn who(requester: &[u8]) -> String {
    match str::from_utf8(requester) {
        Ok(identity) if check_identity(identity).is_ok() => {
            format!("the client {identity}, by its authority")
        }
        _ => format!("the client with the certificate {}", fingerprint(requester)),
    }
}

fn fingerprint(certificate: &[u8]) -> String {
    certificate_fingerprint(&CertificateDer::from(certificate))
}

/// What will be done, in words. Names are shown with quotes and escapes: a foreign file can have any bytes in
/// them.
pub fn what(statement: &Statement) -> String {
    match &statement.subject {
        Subject::Policy { digest } => {
            format!("put the rules for clients with the digest {} into use", hex::encode(digest))
        }
        Subject::Reshare { from, to } => format!(
            "move all keys from the nodes of the cluster file with the fingerprint {} to those of the one with {}",
            hex::encode(from),
            hex::encode(to)
        ),
        Subject::Refresh { secrets, despite_failures } => format!(
            "give all keys fresh shares, in the place of those under the common secrets {}{}",
            hex::encode(secrets),
            if *despite_failures { ", DESPITE MORE FAILED CHECKS THAN A NODE ACCEPTS" } else { "" }
        ),
        Subject::Operation { operation, .. } => operation.describe().in_words(),
    }
}
