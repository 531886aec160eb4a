//! Tags and enumerations of KMIP (2.1, section 11), as far as they are used here, and the versions of the
//! protocol that are spoken.

/// A version of the protocol: major and minor.
pub(super) type Version = (i32, i32);

/// The versions of the protocol that are spoken, the newest first.
pub(super) const VERSIONS: [Version; 5] = [(2, 1), (2, 0), (1, 4), (1, 3), (1, 2)];
/// From this one on, attributes are items with tags of their own.
pub(super) const V2: Version = (2, 0);
/// From this one on, messages have a place for additional data and a tag, and keys can be sensitive.
pub(super) const V1_4: Version = (1, 4);
/// From this one on, the response to Locate tells how many objects were found.
pub(super) const V1_3: Version = (1, 3);

/// Tags of items.
pub(super) mod tag {
    pub(in crate::kmip) const ACTIVATION_DATE: u32 = 0x42_0001;
    pub(in crate::kmip) const ASYNCHRONOUS: u32 = 0x42_0007;
    pub(in crate::kmip) const ATTRIBUTE: u32 = 0x42_0008;
    pub(in crate::kmip) const ATTRIBUTE_INDEX: u32 = 0x42_0009;
    pub(in crate::kmip) const ATTRIBUTE_NAME: u32 = 0x42_000a;
    pub(in crate::kmip) const ATTRIBUTE_VALUE: u32 = 0x42_000b;
    pub(in crate::kmip) const AUTHENTICATION: u32 = 0x42_000c;
    pub(in crate::kmip) const BATCH_COUNT: u32 = 0x42_000d;
    pub(in crate::kmip) const BATCH_ERROR_CONTINUATION: u32 = 0x42_000e;
    pub(in crate::kmip) const BATCH_ITEM: u32 = 0x42_000f;
    pub(in crate::kmip) const BATCH_ORDER_OPTION: u32 = 0x42_0010;
    pub(in crate::kmip) const BLOCK_CIPHER_MODE: u32 = 0x42_0011;
    pub(in crate::kmip) const COMPROMISE_OCCURRENCE_DATE: u32 = 0x42_0021;
    pub(in crate::kmip) const CRYPTOGRAPHIC_ALGORITHM: u32 = 0x42_0028;
    pub(in crate::kmip) const CRYPTOGRAPHIC_LENGTH: u32 = 0x42_002a;
    pub(in crate::kmip) const CRYPTOGRAPHIC_PARAMETERS: u32 = 0x42_002b;
    pub(in crate::kmip) const CRYPTOGRAPHIC_USAGE_MASK: u32 = 0x42_002c;
    pub(in crate::kmip) const DEACTIVATION_DATE: u32 = 0x42_002f;
    pub(in crate::kmip) const INITIAL_DATE: u32 = 0x42_0039;
    pub(in crate::kmip) const IV: u32 = 0x42_003d;
    pub(in crate::kmip) const MAXIMUM_ITEMS: u32 = 0x42_004f;
    pub(in crate::kmip) const MAXIMUM_RESPONSE_SIZE: u32 = 0x42_0050;
    pub(in crate::kmip) const NAME: u32 = 0x42_0053;
    pub(in crate::kmip) const NAME_TYPE: u32 = 0x42_0054;
    pub(in crate::kmip) const NAME_VALUE: u32 = 0x42_0055;
    pub(in crate::kmip) const OBJECT_TYPE: u32 = 0x42_0057;
    pub(in crate::kmip) const OPERATION: u32 = 0x42_005c;
    pub(in crate::kmip) const PADDING_METHOD: u32 = 0x42_005f;
    pub(in crate::kmip) const PROTOCOL_VERSION: u32 = 0x42_0069;
    pub(in crate::kmip) const MAJOR: u32 = 0x42_006a;
    pub(in crate::kmip) const MINOR: u32 = 0x42_006b;
    pub(in crate::kmip) const QUERY_FUNCTION: u32 = 0x42_0074;
    pub(in crate::kmip) const REQUEST_HEADER: u32 = 0x42_0077;
    pub(in crate::kmip) const REQUEST_MESSAGE: u32 = 0x42_0078;
    pub(in crate::kmip) const REQUEST_PAYLOAD: u32 = 0x42_0079;
    pub(in crate::kmip) const RESPONSE_HEADER: u32 = 0x42_007a;
    pub(in crate::kmip) const RESPONSE_MESSAGE: u32 = 0x42_007b;
    pub(in crate::kmip) const RESPONSE_PAYLOAD: u32 = 0x42_007c;
    pub(in crate::kmip) const RESULT_MESSAGE: u32 = 0x42_007d;
    pub(in crate::kmip) const RESULT_REASON: u32 = 0x42_007e;
    pub(in crate::kmip) const RESULT_STATUS: u32 = 0x42_007f;
    pub(in crate::kmip) const REVOCATION_MESSAGE: u32 = 0x42_0080;
    pub(in crate::kmip) const REVOCATION_REASON: u32 = 0x42_0081;
    pub(in crate::kmip) const REVOCATION_REASON_CODE: u32 = 0x42_0082;
    pub(in crate::kmip) const STATE: u32 = 0x42_008d;
    pub(in crate::kmip) const TEMPLATE_ATTRIBUTE: u32 = 0x42_0091;
    pub(in crate::kmip) const TIME_STAMP: u32 = 0x42_0092;
    pub(in crate::kmip) const UNIQUE_BATCH_ITEM_ID: u32 = 0x42_0093;
    pub(in crate::kmip) const UNIQUE_IDENTIFIER: u32 = 0x42_0094;
    pub(in crate::kmip) const VALIDITY_INDICATOR: u32 = 0x42_009b;
    pub(in crate::kmip) const VENDOR_IDENTIFICATION: u32 = 0x42_009d;
    pub(in crate::kmip) const DATA: u32 = 0x42_00c2;
    pub(in crate::kmip) const RANDOM_IV: u32 = 0x42_00c5;
    pub(in crate::kmip) const MAC_DATA: u32 = 0x42_00c6;
    pub(in crate::kmip) const TAG_LENGTH: u32 = 0x42_00ce;
    pub(in crate::kmip) const ATTESTATION_CAPABLE: u32 = 0x42_00d3;
    pub(in crate::kmip) const OFFSET_ITEMS: u32 = 0x42_00d4;
    pub(in crate::kmip) const LOCATED_ITEMS: u32 = 0x42_00d5;
    pub(in crate::kmip) const ADDITIONAL_DATA: u32 = 0x42_00fe;
    pub(in crate::kmip) const AUTHENTICATION_TAG: u32 = 0x42_00ff;
    pub(in crate::kmip) const CLIENT_CORRELATION_VALUE: u32 = 0x42_0105;
    pub(in crate::kmip) const SERVER_CORRELATION_VALUE: u32 = 0x42_0106;
    pub(in crate::kmip) const SENSITIVE: u32 = 0x42_0120;
    pub(in crate::kmip) const EXTRACTABLE: u32 = 0x42_0122;
    pub(in crate::kmip) const ATTRIBUTES: u32 = 0x42_0125;
    pub(in crate::kmip) const ATTRIBUTE_REFERENCE: u32 = 0x42_013b;
}

/// Operations.
pub(super) mod operation {
    pub(in crate::kmip) const CREATE: u32 = 0x01;
    pub(in crate::kmip) const REGISTER: u32 = 0x03;
    pub(in crate::kmip) const REKEY: u32 = 0x04;
    pub(in crate::kmip) const LOCATE: u32 = 0x08;
    pub(in crate::kmip) const GET: u32 = 0x0a;
    pub(in crate::kmip) const GET_ATTRIBUTES: u32 = 0x0b;
    pub(in crate::kmip) const GET_ATTRIBUTE_LIST: u32 = 0x0c;
    pub(in crate::kmip) const ACTIVATE: u32 = 0x12;
    pub(in crate::kmip) const REVOKE: u32 = 0x13;
    pub(in crate::kmip) const DESTROY: u32 = 0x14;
    pub(in crate::kmip) const QUERY: u32 = 0x18;
    pub(in crate::kmip) const DISCOVER_VERSIONS: u32 = 0x1e;
    pub(in crate::kmip) const ENCRYPT: u32 = 0x1f;
    pub(in crate::kmip) const DECRYPT: u32 = 0x20;
    pub(in crate::kmip) const MAC: u32 = 0x23;
    pub(in crate::kmip) const MAC_VERIFY: u32 = 0x24;
    pub(in crate::kmip) const IMPORT: u32 = 0x2a;
    pub(in crate::kmip) const EXPORT: u32 = 0x2b;

    /// Those that are served, with their names in logs and metrics.
    pub(in crate::kmip) const SERVED: [(u32, &str); 14] = [
        (CREATE, "create"),
        (REKEY, "re-key"),
        (LOCATE, "locate"),
        (GET_ATTRIBUTES, "get-attributes"),
        (GET_ATTRIBUTE_LIST, "get-attribute-list"),
        (ACTIVATE, "activate"),
        (REVOKE, "revoke"),
        (DESTROY, "destroy"),
        (QUERY, "query"),
        (DISCOVER_VERSIONS, "discover-versions"),
        (ENCRYPT, "encrypt"),
        (DECRYPT, "decrypt"),
        (MAC, "mac"),
        (MAC_VERIFY, "mac-verify"),
    ];
}

/// Cryptographic algorithms.
pub(super) const TRIPLE_DES: u32 = 2;
pub(super) const AES: u32 = 3;
pub(super) const HMAC_SHA_256: u32 = 9;
pub(super) const HMAC_SHA_384: u32 = 10;
pub(super) const HMAC_SHA_512: u32 = 11;

/// Whether an algorithm is one of HMAC.
pub(super) fn is_hmac(algorithm: u32) -> bool {
    [HMAC_SHA_256, HMAC_SHA_384, HMAC_SHA_512].contains(&algorithm)
}

/// Block cipher modes.
pub(super) const CBC: u32 = 1;
pub(super) const ECB: u32 = 2;
pub(super) const CTR: u32 = 6;
pub(super) const CMAC: u32 = 7;
pub(super) const GCM: u32 = 9;
/// Paddings.
pub(super) const NO_PADDING: u32 = 1;
pub(super) const PKCS5: u32 = 3;
/// What keys may be used for: bits of a mask.
pub(super) mod mask {
    pub(in crate::kmip) const ENCRYPT: u32 = 0x04;
    pub(in crate::kmip) const DECRYPT: u32 = 0x08;
    pub(in crate::kmip) const WRAP: u32 = 0x10;
    pub(in crate::kmip) const UNWRAP: u32 = 0x20;
    pub(in crate::kmip) const MAC_GENERATE: u32 = 0x80;
    pub(in crate::kmip) const MAC_VERIFY: u32 = 0x100;
    pub(in crate::kmip) const DERIVE: u32 = 0x200;
}
/// The states of objects.
pub(super) const ACTIVE: u32 = 2;
pub(super) const DEACTIVATED: u32 = 3;
pub(super) const COMPROMISED: u32 = 4;
/// Whether a code is that of its data.
pub(super) const VALID: u32 = 1;
pub(super) const NOT_VALID: u32 = 2;
/// Reasons to revoke: somebody may know the key, or that of an authority.
pub(super) const KEY_COMPROMISE: u32 = 2;
pub(super) const CA_COMPROMISE: u32 = 3;
/// The last of the reasons to revoke.
pub(super) const LAST_REVOCATION: u32 = 7;
/// The type of objects that are symmetric keys.
pub(super) const SYMMETRIC_KEY: u32 = 2;
/// The type of names that are just texts.
pub(super) const UNINTERPRETED: u32 = 1;
/// What is done with the rest of a batch when an item fails.
pub(super) const CONTINUE: u32 = 1;
pub(super) const STOP: u32 = 2;
